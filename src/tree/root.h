/* SPDX-License-Identifier: MIT
 *
 * The directory that an operand names. home.c opens it if it is new, commit.c ends it.
 */
#ifndef TREE_ROOT_H
#define TREE_ROOT_H

#include "endpoints/slot.h"
#include "report.h"
#include "resume.h"

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
	bool unsound;   /* a flush failed: which files lost data is unknown */
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

#endif
