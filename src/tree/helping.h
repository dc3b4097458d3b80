/* SPDX-License-Identifier: MIT
 *
 * Idle threads of the pool help with large files, so that a large file among small ones does not
 * end as the work of one thread. The thread that opened the file, its owner, offers the pieces of a
 * range and copies pieces itself. It commits the file when the last helper has left.
 */
#ifndef TREE_HELPING_H
#define TREE_HELPING_H

#include "tree.h"

/* Prepares worker->helpers for copy.helpers. */
void helping_prepare(struct worker *);
/* Is there a file that this thread can help with? Then joins it. The caller holds the lock of the
 * pool. Returns NULL if there is none. */
struct helped *helping_join(struct worker *);
/* Copies pieces of the file that this thread has joined until none is left. */
void helping_run(struct worker *, struct helped *);

#endif
