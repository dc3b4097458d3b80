/* SPDX-License-Identifier: MIT
 *
 * Symlinks, FIFOs, sockets and devices.
 */
#ifndef TREE_SPECIAL_H
#define TREE_SPECIAL_H

#include "tree.h"

/* A symlink, FIFO, socket or device. */
void special_copy(struct worker *, const struct entry *, const struct stat *);
#endif
