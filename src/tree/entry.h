/* SPDX-License-Identifier: MIT
 *
 * One name of a directory.
 */
#ifndef TREE_ENTRY_H
#define TREE_ENTRY_H

#include "tree.h"

/* Copies one name, whatever it is, and reports it. Returns 0, 1 if its copy was left alone, or
 * -errno; -EINPROGRESS: later. */
int entry_copy(struct worker *, const struct entry *);

#endif
