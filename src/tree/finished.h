/* SPDX-License-Identifier: MIT
 *
 * --resume of a tree, where DST exists.
 */
#ifndef TREE_FINISHED_H
#define TREE_FINISHED_H

#include "root.h"

/* DST exists and has this stat. Returns 0 if an earlier run was killed after it had given DST its
 * name, and DST is the complete copy: the end of that commit is missing. 1: it is the complete
 * copy, and nothing is left to do. FINISHED_MERGES: the operands ask for a merge into it. -errno,
 * reported: it is something else. */
#define FINISHED_MERGES 2
int finished_open(struct building *, const struct stat *);

#endif
