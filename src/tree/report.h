/* SPDX-License-Identifier: MIT
 *
 * Failures, warnings, counts and entries: what fcopy_tree() reports.
 */
#ifndef TREE_REPORT_H
#define TREE_REPORT_H

#include "tree.h"

/* Failures, warnings and finished entries. All are serialised. */
/* What error.path is until report.c replaces it by the entry's whole path. */
extern const char entry_src[], entry_dst[];
int report_failure(struct worker *, const struct entry *, const struct fcopy_error *);
/* The same, for a failed call and for another reason. All return -err. */
int report_call(struct worker *, const struct entry *, const char *call, const char *path, int err);
int report_refusal(struct worker *, const struct entry *, const char *path, int err,
		   const char *reason);
void report_warning(struct worker *, const struct entry *, const struct fcopy_error *);
/* Reports a listed name below `root` that the walk did not reach, perhaps because it is below a
 * symlink that is not followed. */
void report_unmet(struct worker *, struct directory *root, const char *name);
/* The destination is written under its final name: reports the first one and the static reason. */
void report_not_atomic(struct tree *, const char *path, const char *reason);
/* With one_file_system, a mount point becomes an empty directory. A subvolume does, too, but is no
 * mount point, and nobody may know that it is one: a warning. */
void report_not_entered(struct worker *, const struct entry *, bool mounted);
/* Other users may enter the directory in which something is made: reports the first one. */
void report_not_private(struct tree *, const char *path);
/* Reports the failure of an operand, whose path is in the error. Returns -err. */
int report_operand(struct tree *, const struct fcopy_error *);
void report_operand_warning(struct tree *, const struct fcopy_error *);
/* Ends the copy early: err is ECANCELED, ENOSPC … */
void tree_stop(struct tree *, int err);
bool tree_stopped(const struct tree *);
/* For copy.notify of each file, with the worker as user. */
void report_event(void *worker, const struct fcopy_event *);
/* Announces a large file that takes long; NULL: it is done. */
void report_large(struct worker *, const struct entry *);
/* Adds what the report of a file says to the outcome of the entry at work, and to the steps. */
void report_file(struct worker *, const struct stat *, bool complete);
/* Adds a worker's counts and steps to the report. */
void report_add(struct fcopy_tree_report *, const struct fcopy_tree_report *);
void report_add_steps(struct fcopy_tree_report *, const struct fcopy_step *, size_t n);

/* report_entry.c: the paths of entries; what a caller gets for each entry, and for each SRC. */

/* Writes the entry's path of the source, or of the destination; only the end of a long one. */
void entry_path(const struct entry *, bool src, char *path, size_t size);
/* The same below the operand, as filters know it. Returns false if its start was cut off. */
bool entry_path_below(const struct entry *, char *path, size_t size);
/* Calls the caller's notify; the lock is held, or no other thread runs. */
void report_notify(const struct tree *, const struct fcopy_event *);
/* What becomes of an entry is known: counts it, adds it to the progress and sends it. Nothing else
 * does that. */
void report_outcome(struct worker *, const struct entry *, const struct outcome *);
/* The same for a failure; the lock is held. */
void report_failed_outcome(struct worker *, const struct entry *, const struct outcome *,
			   const struct fcopy_error *);
/* The same for the SRC itself: a stream, the directory that is in place now, or a failure. The lock
 * is held, or no other thread runs. */
void report_operand_outcome(struct tree *, const struct outcome *, const char *dst,
			    const struct fcopy_error *);
/* A directory is finished. Its outcome is counted and sent, unless its own failure was, or it is
 * UNCHANGED. */
void report_directory(struct worker *, struct directory *, const struct outcome *);
/* Before and after the copy of one SRC: keeps the counts of the SRCs before it, and sends
 * FCOPY_EVENT_OPERAND. */
void report_operand_begin(struct tree *, const char *src, struct fcopy_tree_report *before);
void report_operand_end(struct tree *, size_t index, const struct fcopy_tree_report *before);

/* Why a directory of SRC has no copy: what has its name in DST. */
#define NO_DIRECTORY_HERE "is not a directory: a directory cannot replace it"
#define SYMLINK_FOREIGN                                                                            \
	"is, or leads through, a symlink that another user made or can move: it is not followed "  \
	"to a directory"
#define SYMLINK_STAYS "is a symlink: a directory cannot replace it"

#define NO_DIRECTORY(path_of_dst)                                                                  \
	((struct fcopy_error){.err = ENOENT, .path = (path_of_dst), .reason = "no such directory"})

/* Report a failure of an operand, and return -err. */
int tree_fail(struct tree *, const char *call, const char *path, int err);
int tree_refuse(struct tree *, const char *path, int err, const char *reason, enum fcopy_advice);
/* A call that looked up what was typed has failed. */
int tree_look_up(struct tree *, const char *call, const char *path, int err);
/* The same for one that follows from what SRC and DST are. */
int tree_unsuitable(struct tree *, struct fcopy_error);

#endif
