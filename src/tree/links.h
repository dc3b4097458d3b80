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
	LINK_COPY,    /* copy it, then call links_done */
	LINK_MADE,    /* it is a link now */
	LINK_SAME,    /* it was one already */
	LINK_FAILED,  /* it could not be linked; reported */
	LINK_SKIPPED, /* DST has got another entry since, which an option leaves there; counted */
	LINK_TWICE,   /* its directory lists it twice */
	LINK_WAITS,   /* the thread that is copying the first name will copy this entry later */
};
/* May another name of this inode be in the tree? Where symlinks are followed, a file may have any
 * number of names, as with cp -aL. */
static inline bool links_may_exist(const struct worker *w, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	return o->hard_links && (st->st_nlink > 1 || o->follow == FCOPY_FOLLOW_ALWAYS);
}
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
