/* SPDX-License-Identifier: MIT
 *
 * Measures what a thread does, for the tuner.
 */
#ifndef TREE_TUNING_H
#define TREE_TUNING_H

#include "tree.h"

/* An operand begins, in the only thread. Called again when the first names of a directory are
 * queued: if the thread has mostly waited until then, more threads start at once. */
void tuning_begin_operand(struct tree *);
void tuning_begin_walk(struct worker *, int fd);
/* Called before and after each entry, and after the last one of an item; measures the
 * work and the waiting of this thread. */
void tuning_begin_entry(struct worker *);
void tuning_end_entry(struct worker *, int fd); /* fd: as in pool_report */
void tuning_end_names(struct worker *, int fd); /* no entry was copied, but names were read */
void tuning_end_item(struct worker *);

#endif
