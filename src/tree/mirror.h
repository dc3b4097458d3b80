/* SPDX-License-Identifier: MIT
 *
 * Merges that remove what SRC lacks.
 */
#ifndef TREE_MIRROR_H
#define TREE_MIRROR_H

#include "tree.h"

/* Before the first entry of the operand that is merged into the open directory dst. */
void mirror_begin(struct tree *, const struct operand *, int dst);
/* Notes what a directory of DST has and its source lacks, when all of its entries are copied. */
void mirror_collect(struct worker *, struct directory *);
/* After the last entry: removes what was noted, and flushes DST. */
void mirror_end(struct tree *, struct directory *root);
/* Is it the marker of a mirror, which is never copied? */
bool mirror_is_marker(const struct entry *);

#endif
