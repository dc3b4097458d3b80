/* SPDX-License-Identifier: MIT
 *
 * Counts what a tree will copy, for the progress line.
 */
#ifndef TREE_CENSUS_H
#define TREE_CENSUS_H

#include "tree.h"

/* Starts to count the entries and bytes of a tree for options.progress, if the caller
 * wants that; stops it. NULL: nothing is counted. */
struct census;
struct census *census_start(const struct tree *, const struct directory *root);
void census_stop(struct census *);

#endif
