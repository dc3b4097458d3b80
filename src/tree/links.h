/* SPDX-License-Identifier: MIT
 *
 * Names of one inode of the source.
 */
#ifndef TREE_LINKS_H
#define TREE_LINKS_H

#include "tree.h"

/* Hard links. */
struct links *links_new(void);
void links_free(struct links *);
/* What to do with an entry whose st_nlink is above 1. */
enum link_state {
	LINK_COPY,   /* copy it, then call links_done */
	LINK_MADE,   /* it is a link now */
	LINK_SAME,   /* it was one already */
	LINK_FAILED, /* it could not be linked; reported */
	LINK_TWICE,  /* its directory lists it twice */
	LINK_WAITS,  /* the thread that is copying the first name will copy this entry later */
};
/* May another name of this inode be in the tree? */
bool links_may_exist(const struct worker *, const struct stat *);
enum link_state links_claim(struct worker *, const struct entry *, const struct stat *);
/* The copy that LINK_COPY asked for is complete (0) or failed. Returns the names that waited for
 * it: the caller copies each like any entry, frees it, and releases its directory. */
struct waiter {
	struct waiter *next;
	struct directory *dir; /* held, and pending */
	char name[];
};
struct waiter *links_done(struct worker *, const struct entry *, const struct stat *, int result);

#endif
