/* SPDX-License-Identifier: MIT
 *
 * The directory that an operand names, between root.c, which opens it, and commit.c, which ends it.
 */
#ifndef TREE_ROOT_H
#define TREE_ROOT_H

#include "report.h"
#include "resume.h"

struct root {
	struct tree *tree;
	const struct operand *from, *to; /* from->fd: the open source */
	struct part part;                /* in which a new tree is built; fd -1: none */
	bool receipt;                    /* ... it stays after the commit, without data */
	int home;                        /* the directory that holds the unfinished tree */
	char temporary[NAME_MAX + 1]; /* ... and its name there; empty: the destination existed */
	mode_t mode;                  /* that the unfinished directory gets last */
	bool named;                   /* temporary is the final name: it need not be renamed */
	bool committed;               /* ... an earlier run renamed it, and was killed then */
	bool unsound;                 /* a flush failed: which files lost data is unknown */
	int dst;
	struct record record;
};

/* Report a failure of this operand, and return -err. */
static inline int root_fail(const struct root *r, const char *call, int err)
{
	return tree_fail(r->tree, call, r->to->path, err);
}

static inline int root_refuse(const struct root *r, int err, const char *reason,
			      enum fcopy_advice advice)
{
	return tree_refuse(r->tree, r->to->path, err, reason, advice);
}

/* root.c: is the directory inside the source? Then refuses the operand. */
int root_check_inside(const struct root *, int dir);
/* Refuses the operand if its DST.fcopy-part is the source, contains the source or is inside it: the
 * part is pruned and renamed. */
int root_check_part_source(const struct root *);

/* inside.c: Is dst inside src, or in a file system mounted below it? Finds what bind mounts hide;
 * false if that is unknown. Both are descriptors of directories. */
bool inside_by_mount(int src, int dst, bool one_file_system);

/* flush.c: Is all that was copied below this directory on the disk now? Flushes it if need be. */
bool flush_all(const struct tree *, int dst);

/* home.c: creates the new tree, or opens the one that an earlier run began. */
int home_open(struct root *);
/* The same with --resume for a destination that exists, with this stat: the tree of an earlier run
 * that was killed after it renamed the tree. HOME_EXISTS: its part shows nothing of the kind. */
#define HOME_EXISTS 1
int home_open_committed(struct root *, const struct stat *);

/* commit.c: sets the attributes of the complete directory, flushes and renames it. Returns 0 or
 * -errno, reported. */
int commit_root(struct root *, struct directory *);
/* Commits, keeps or removes the directory, after the pool has ended. Returns 0 or -errno,
 * reported. */
int commit_end(struct root *, struct directory *);
/* Nothing was copied: closes the open directory, and removes it if it is empty. */
void commit_abort(struct root *);

#endif
