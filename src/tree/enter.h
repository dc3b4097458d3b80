/* SPDX-License-Identifier: MIT
 *
 * Subdirectories.
 */
#ifndef TREE_ENTER_H
#define TREE_ENTER_H

#include "tree.h"

/* Opens or creates a subdirectory; pushes what is in it. Takes fd. */
void directory_enter(struct worker *, const struct entry *, int fd, const struct stat *);
/* Creates an empty directory with mode 0700, for a mount point that cannot be read. */
void directory_make_mount_point(struct worker *, const struct entry *);

#endif
