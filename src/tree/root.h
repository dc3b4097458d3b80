/* SPDX-License-Identifier: MIT
 *
 * The directory that an operand names. home.c opens it if it is new, commit.c ends it.
 */
#ifndef TREE_ROOT_H
#define TREE_ROOT_H

#include "endpoints/slot.h"
#include "report.h"
#include "resume.h"
#include "tree.h"

#include <stdbool.h>

struct building {
	struct tree *tree;
	const struct operand *from, *to; /* from->fd: the open source */
	struct part part;                /* in which a new tree is built; fd -1: none */
	bool receipt;                    /* ... it stays after the commit, without data */
	/* In which the directory comes into being. HOW_PART: as `data` in the part; HOW_RENAME:
	 * beside its final name; HOW_FINAL: under it; HOW_NONE: the destination existed. */
	struct slot slot;
	mode_t mode;    /* that the unfinished directory gets last */
	bool resumes;   /* it is of an earlier run, with a journal */
	bool committed; /* HOW_FINAL: an earlier run renamed it, and was killed then */
	int dst;
	struct record record;
};

/* Is the directory new, so that it has a commit? */
static inline bool root_is_new(const struct building *r)
{
	return r->slot.how != HOW_NONE;
}

/* The name that it has in slot.home. */
static inline const char *root_name(const struct building *r)
{
	return slot_name(&r->slot, r->to->place.name);
}

/* Report a failure of this operand, and return -err. */
static inline int root_fail(const struct building *r, const char *call, int err)
{
	return tree_fail(r->tree, call, r->to->path, err);
}

static inline int root_refuse(const struct building *r, int err, const char *reason,
			      enum fcopy_advice advice)
{
	return tree_refuse(r->tree, r->to->path, err, reason, advice);
}

/* Is the directory inside the source? Then refuses the operand. */
int root_check_inside(const struct building *, int dir);
/* Refuses the operand if its DST.fcopy-part is the source, contains the source or is inside it: the
 * part is pruned and renamed. */
int root_check_part_source(const struct building *);

/* A SRC that is not a directory. Both return 0, or -errno with the failure reported. */

/* A file, symlink or special file, as the one entry of a directory. */
int single_copy(struct tree *, const struct operand *src, const struct operand *to);
/* A stream, or a device or file whose bytes are wanted, as fcopy_copy() does. */
int single_copy_stream(struct tree *, const struct operand *src);

/* options.parents: the copy of a/b/SRC is DST/a/b/SRC. */

struct parents {
	bool preserves; /* directories that exist may get attributes, too */
	bool flushes;   /* with --fsync */
	bool made;      /* at least one is new */
	bool reads;     /* a call on the source is what fails */
	bool foreign;   /* a symlink of another user is what fails */
	bool absent;    /* a dry run: the rest of them would be made */
	size_t count;
	struct parent {
		int src, dst; /* descriptors */
		bool made;
	} * noted; /* the directories above the copy, from the outermost on */
};

/* Makes the directories above src in `to`, which names src in DST, and moves `to` below them; path
 * has PATH_MAX bytes for its path. A dry run makes none: if one is missing, `to` does not exist,
 * and to->place.dir is the last one that does. Returns 0, or -errno, reported; parents_end() in
 * either case. */
int parents_make(struct tree *, const struct operand *src, struct operand *to, char path[],
		 struct parents *);
/* Gives the directories the attributes that are preserved, and flushes the new ones. */
void parents_end(struct tree *, const struct operand *to, struct parents *);

/* The operands of a tree. */

/* Looks all operands up: *t->operands. Returns 0, or
 * -errno, reported. */
int operands_find(struct tree *, const char *const *src, size_t n, const char *dst);
/* Checks operands and options before anything is created. Returns 0, or -errno, reported. */
int operands_check(struct tree *);

/* Where a new tree is built. */

/* Who asks for the part of this tree; committed: as for part_acquire(). */
struct part_claim home_claim(const struct building *, const struct stat *committed);
/* Reports why the last call for the part failed. Returns -errno. */
int home_fail_part(const struct building *);
/* Creates the new tree, or opens the one that an earlier run began. */
int home_open(struct building *);
/* The same with --resume for a destination that exists, with this stat: the tree of an earlier run
 * that was killed after it renamed the tree. RESULT_EXISTS: its part shows nothing of the kind. */
int home_open_committed(struct building *, const struct stat *);
/* After that, where the tree is merged into again: gives it its mode, and removes the part. Returns
 * 0 or -errno, reported; then the part stays. */
int home_leave_committed(struct building *);

/* The end of a directory that an operand names. */

/* Sets the attributes of the complete directory, flushes and renames it. Returns 0 or -errno,
 * reported. */
int commit_root(struct building *, struct directory *, struct outcome *);
/* Commits, keeps or removes the directory, after the pool has ended. Returns 0 or -errno,
 * reported. */
int commit_end(struct building *, struct directory *);
/* Nothing was copied: closes the open directory, and removes it if it is empty. */
void commit_abort(struct building *);
/* Flushes the directory that holds the destination. Returns 0 or -errno, reported. */
int commit_flush_parent(const struct building *);
/* Warns that this name beside the destination could not be removed. */
void commit_warn_left(const struct building *, const char *name, int err);

/* Is DST below SRC? */

/* The list of mounts, which is read when it is needed, and again after each change. */
struct mounts;
struct mounts *mounts_new(void); /* NULL: no memory */
void mounts_free(struct mounts *);

/* Is dst inside src, or in a file system mounted below it? Finds what bind mounts hide; false if
 * that is unknown. Both are descriptors of directories. Thread-safe. Takes time in proportion to
 * the depth of dst, and for the first dst of each src to the mounts below src. */
bool inside_by_mount(struct mounts *, int src, int dst, bool one_file_system);

/* --resume of a tree, where DST exists. */

/* DST exists and has this stat. Returns 0 if an earlier run was killed after it had given DST its
 * name, and DST is the complete copy: the end of that commit is missing. RESULT_COMMITTED: nothing
 * is left to do; RESULT_MERGES; or -errno, reported: it is something else. */
int finished_open(struct building *, const struct stat *);

/* The options that the copy in a part depends on, for its journal. */
uint64_t root_options(const struct tree *);

/* The walk of one SRC. */

/* Begins this operand: its directory, whose entries are copied or rehearsed next. It takes r->dst,
 * unless it is NULL after a failure, reported. */
struct directory *root_start(struct building *, const struct ground *);
/* Copies what is in the directory. */
void root_walk(struct building *, struct directory *);
/* Walks as a copy does, and changes nothing. A directory that DST lacks has the descriptor -1.
 * Closes r->dst. Returns 0 or -errno, reported. */
int root_rehearse(struct building *, enum flushing);

#endif
