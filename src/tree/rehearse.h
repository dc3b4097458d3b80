/* SPDX-License-Identifier: MIT
 *
 * The walk of one SRC.
 */
#ifndef TREE_REHEARSE_H
#define TREE_REHEARSE_H

#include "root.h"

/* Copies what is in the directory. */
void root_walk(struct building *, struct directory *);
/* Walks as a copy does, and changes nothing. A directory that DST lacks has the descriptor -1.
 * Closes r->dst. Returns 0 or -errno, reported. */
int root_rehearse(struct building *, enum flushing);

#endif
