/* SPDX-License-Identifier: MIT
 *
 * Reads directories, and passes what is in them to the pool.
 */
#ifndef TREE_WALK_H
#define TREE_WALK_H

#include "tree.h"

/* Copies everything below root, whose `pending` is 1, in tree->threads threads. */
void walk_tree(struct tree *, struct directory *root);
void walk_entry(struct tree *, const struct entry *); /* copies one entry in this thread */
/* Reports each name of options.files that root does not have. */
void walk_report_missing(struct tree *, struct directory *root);

#endif
