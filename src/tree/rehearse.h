/* SPDX-License-Identifier: MIT
 *
 * The walk of one SRC.
 */
#ifndef TREE_REHEARSE_H
#define TREE_REHEARSE_H

#include "root.h"

/* Begins this operand: its directory, whose entries are copied or rehearsed next. It takes r->dst,
 * unless it is NULL after a failure, reported. */
struct directory *root_start(struct building *, const struct ground *);
/* Copies what is in the directory. */
void root_walk(struct building *, struct directory *);
/* Walks as a copy does, and changes nothing. A directory that DST lacks has the descriptor -1.
 * Closes r->dst. Returns 0 or -errno, reported. */
int root_rehearse(struct building *, enum flushing);

#endif
