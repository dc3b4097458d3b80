/* SPDX-License-Identifier: MIT
 *
 * Measures what a thread does, for the tuner.
 */
#ifndef TREE_TUNING_H
#define TREE_TUNING_H

#include "tree.h"

/* Called before and after each entry, and after the last one of an item; measures the
 * work and the waiting of this thread. */
void tuning_begin_entry(struct worker *);
void tuning_end_entry(struct worker *, int fd); /* fd: as in pool_report */
void tuning_end_item(struct worker *);

#endif
