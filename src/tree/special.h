/* SPDX-License-Identifier: MIT
 *
 * Symlinks, FIFOs, sockets and devices.
 */
#ifndef TREE_SPECIAL_H
#define TREE_SPECIAL_H

#include "tree.h"

/* A symlink, FIFO, socket or device. */
void special_copy(struct worker *, const struct entry *, const struct stat *);
/* Of a dry run: would it be refused because DST is the source? Reported then. */
bool special_rehearse(struct worker *, const struct entry *, const struct stat *);
/* Is the existing destination the source, or what the source leads to? A symlink that replaced it
 * would lead to itself, and its data would be lost. */
bool special_is_source(const struct entry *, const struct stat *);

#endif
