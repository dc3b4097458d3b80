/* SPDX-License-Identifier: MIT
 *
 * Merges that leave entries alone.
 */
#ifndef TREE_UPDATE_H
#define TREE_UPDATE_H

#include "tree.h"

/* Is it certain, before the source is opened, that the entry is an unchanged file? Then this is its
 * outcome. */
bool update_is_untouched(struct worker *, const struct entry *);
/* Has DST the same content? w->facts are known; fd is the open source, or -1 for a symlink or a
 * special file. Returns 1, with *dst open for update_leave(); 0; or -errno, reported. */
int update_is_equal(struct worker *, const struct entry *, int fd, int *dst);
/* It has: sets the attributes that differ, and closes dst. Returns 1; 0: the entry must be replaced
 * for that; or -errno, reported. */
int update_leave(struct worker *, const struct entry *, int fd, int dst);
/* Is old not older than the source? */
bool update_keeps(const struct tree *, const struct entry *, const struct stat *,
		  const struct stat *old);

#endif
