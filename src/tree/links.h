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
/* May another name of this inode be in the tree? Where symlinks are followed, a file may have any
 * number of names, as with cp -aL. */
static inline bool links_may_exist(const struct worker *w, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	return ground_links(&w->tree->root.ground, o) &&
	       (st->st_nlink > 1 || o->follow == FCOPY_FOLLOW_ALWAYS);
}
/* Of an entry whose st_nlink is above 1: true if it has to be copied, or left as it is, and
 * links_done() called then. false: the outcome is known: it became a link, failed, or waits for the
 * thread that is copying the first name. confirmed: see struct entry. */
bool links_claim(struct worker *, const struct entry *, const struct stat *, bool confirmed);
/* The copy that links_claim() asked for is complete or failed. Returns the names that waited for
 * it: the caller copies each like any entry, frees it, and releases its directory. */
struct waiter {
	struct waiter *next;
	struct directory *dir; /* held, and pending */
	bool confirmed;
	char name[];
};
struct waiter *links_done(struct worker *, const struct entry *, const struct stat *,
			  bool complete);

#endif
