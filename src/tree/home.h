/* SPDX-License-Identifier: MIT
 *
 * Where a new tree is built.
 */
#ifndef TREE_HOME_H
#define TREE_HOME_H

#include "root.h"

/* Who asks for the part of this tree; committed: as for part_acquire(). */
struct part_claim home_claim(const struct building *, const struct stat *committed);
/* Reports why the last call for the part failed. Returns -errno. */
int home_fail_part(const struct building *);
/* Creates the new tree, or opens the one that an earlier run began. */
int home_open(struct building *);
/* The same with --resume for a destination that exists, with this stat: the tree of an earlier run
 * that was killed after it renamed the tree. HOME_EXISTS: its part shows nothing of the kind. */
#define HOME_EXISTS 1
int home_open_committed(struct building *, const struct stat *);
/* After that, where the tree is merged into again: gives it its mode, and removes the part. Returns
 * 0 or -errno, reported; then the part stays. */
int home_leave_committed(struct building *);

#endif
