/* SPDX-License-Identifier: MIT
 *
 * An unfinished tree, DST.fcopy-part: how an earlier copy left it, and how --resume continues it.
 */
#ifndef TREE_RESUME_H
#define TREE_RESUME_H

#include "tree.h"

/* resume.c: a file that marks a directory as an unfinished copy by fcopy. */
#define RESUME_MARK "fcopy-unfinished.txt"
/* Creates and removes it. Both return 0 or -errno; -EEXIST: the directory has an entry of that
 * name. In a new tree this is the copy of an entry of the source, not a mark. */
int resume_mark(int part);
int resume_unmark(int part);
/* Notes in the mark that each file with the time of its source is on the disk, or removes this
 * note, durably. Returns 0 or -errno. */
int resume_prove(int part, bool proven);
bool resume_is_proven(int part); /* has it this note? */
/* Makes the entry `name` of a part a directory. An existing directory gets S_IRWXU, because the
 * earlier copy may have given it the mode of its source. Anything else is replaced by a new
 * directory with `mode`, and *fresh is set. Returns 0 or -errno. */
int resume_make_directory(int dir, const char *name, mode_t mode, bool *fresh);
/* Is the entry's copy in the part complete? Otherwise an old one is removed, unless the tree has
 * stopped: then it is unknown. */
bool resume_is_complete(struct worker *, const struct entry *, int fd, const struct stat *);
/* The same for a file with this stat that may have other names, without a removal. Both, and
 * resume_update for any entry that is not a symlink, give the copy the mode and attributes that a
 * new one would have now. */
bool resume_is_current(struct worker *, const struct entry *, int fd, const struct stat *old,
		       const struct stat *);
bool resume_update(const struct worker *, const struct entry *, int fd, const struct stat *old,
		   const struct stat *);
/* Has the copy of this entry the bytes of the open file? */
bool resume_has_same_bytes(struct worker *, const struct entry *, int fd, const struct stat *);
/* Is an unfinished copy of this file kept as DST.fcopy-part? Not in a new tree, which is resumed as
 * a whole, and not if another entry of the source has that name. */
bool resume_keeps_part(const struct worker *, const struct entry *);
/* Opens, or creates with this mode, and locks the directory `part` beside the operand's
 * destination; follow: symlinks below the source are followed. *proven: are the files that look
 * complete on the disk? Returns a descriptor, or -errno with the failure in *error. */
int resume_open(const struct operand *from, const struct operand *to, const char *part, mode_t mode,
		bool follow, bool *proven, struct fcopy_error *);

/* unmarked.c: would the copy of this entry replace the mark, or delete it at the end? */
bool resume_is_mark(const struct tree *, const struct entry *);
/* Does the source have every entry of the part, and is each file complete as far as
 * size and modification time show? Then --resume removes nothing that is not a copy. Both are
 * descriptors of directories. */
bool unmarked_is_copy(int part, int src, bool follow);
/* Has the symlink of this name the same text in both directories? */
bool unmarked_same_link(int part, int src, const char *name);
/* May the part's file have its source's modification time, as its file system stores it? */
bool unmarked_near_time(const struct stat *part, const struct stat *src);

/* What record.c knows of a new tree. */
struct record {
	int parent, dst; /* descriptors of the directories: where the tree is, and the tree */
	int fd;          /* of the file; -1: none */
	off_t size;
	bool failed; /* no more is added; atomic */
	unsigned buffers;
	struct record_buffer {
		char *data;
		size_t size;
	} buffer[FCOPY_THREADS_MAX]; /* the last ones of threads that have ended */
};

/* record.c: notes that an entry's copy is complete; st: the source when it was opened. */
void record_add(struct worker *, const struct entry *, const struct stat *);
/* The worker has ended. */
void record_leave(struct worker *);
/* The tree is kept: its files get the times of their sources. */
void record_keep(const struct record *);
/* The tree has ended. */
void record_end(struct record *);

/* remove.c: removes everything below `root`, an open directory that only this process writes to,
 * and then its name in `dir`. Adds the number of removed entries to *count, unless count is NULL.
 * Returns 0, or -errno with the rest left there. */
int remove_tree(int root, int dir, const char *name, uint64_t *count);
/* Removes an entry of a part, of any type. Returns 0 or -errno. */
int remove_entry(int dir, const char *name);

/* prune.c: removes from a destination directory what the source does not have. Reports a failure if
 * two copies have one name there, as on a file system that ignores case. */
void prune_directory(struct worker *, struct directory *);

#endif
