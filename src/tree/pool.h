/* SPDX-License-Identifier: MIT
 *
 * The pool of threads, and the items that they work on.
 */
#ifndef TREE_POOL_H
#define TREE_POOL_H

#include "tree.h"

/* Runs `run` for an item of root, whose `pending` is 1, and for each item that it pushes,
 * in tree->threads threads. Returns when nothing is left: after tree_stop, as soon as each thread
 * has finished its entry. */
void pool_run(struct tree *, struct directory *root,
	      void (*run)(struct worker *, const struct item *));
/* Adds an item. If there is no memory for it, stops the tree, and runs the item in this thread. */
void pool_push(struct worker *, struct item);
/* The same, but this thread runs it next, if it has nothing else to run and no thread is idle. */
void pool_push_own(struct worker *, struct item);
/* How many threads have nothing to do. */
unsigned pool_idle(const struct tree *);
/* The same, less the items that wait for them. */
unsigned pool_unserved(const struct tree *);
/* Wakes idle threads after a series of pushes; one thread after one push. */
void pool_wake(struct tree *);
void pool_wake_one(struct tree *);
/* A worker for this thread, or NULL; and its end, which adds up what it did. */
struct worker *pool_join(struct tree *);
void pool_leave(struct worker *);
/* Passes to the tuner what this thread has done; may wake, start or stop threads. fd: a descriptor
 * that was opened lately, which shows how many are open. */
void pool_report(struct worker *, const struct tuner_report *, int fd);
/* The same for what the first thread has done while it was alone, and before the first report. */
void pool_begin(struct worker *, const struct tuner_report *, int fd);
/* Prepares worker->copy and worker->file for the next file. Returns the copy. */
struct copy *pool_start_copy(struct worker *);

#endif
