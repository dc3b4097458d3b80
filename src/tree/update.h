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
/* Is the existing entry of DST left alone, or has it failed? fd is the open source, or -1 for a
 * symlink or a special file. true: the outcome is known; false: it is absent or has to be copied.
 */
bool update_leave(struct worker *, const struct entry *, int fd, const struct stat *);
/* An entry of another type is in the way of a mirror: do the options leave it alone? As
 * update_leave.
 */
bool update_leave_other(struct worker *, const struct entry *, const struct stat *);

#endif
