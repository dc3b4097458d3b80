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

/* Idle threads of the pool help with large files, so that a large file among small ones does not
 * end as the work of one thread. The thread that opened the file, its owner, offers the pieces of a
 * range and copies pieces itself. It commits the file when the last helper has left. */

/* Prepares worker->helpers for copy.helpers. */
void helping_prepare(struct worker *);
/* Is there a file that this thread can help with? Then joins it. The caller holds the lock of the
 * pool. Returns NULL if there is none. */
struct helped *helping_join(struct worker *);
/* Copies pieces of the file that this thread has joined until none is left. */
void helping_run(struct worker *, struct helped *);

#endif
