/* SPDX-License-Identifier: MIT
 *
 * Copies through the page cache.
 */
#ifndef COPY_CACHED_H
#define COPY_CACHED_H

#include "copy.h"

/* Copies t through the page cache. Chooses among readwrite, splice and threads, and never
 * returns ENGINE_NEXT. options.threads: 1 starts no thread, more are used without a choice. Returns
 * 0 or -errno with the failure recorded. */
int cached_copy(struct copy *, struct transfer *t);
/* Decides, before the first byte, how many threads cached_copy may use. */
void cached_decide(struct copy *);
const char *cached_plan(const struct copy *); /* what cached_copy intends, as text */
void cached_free(struct copy *);              /* frees the buffer, and what is kept */
bool cached_enlarge(struct copy *, size_t);   /* makes the buffer at least this large */
/* Runs readwrite in a buffer of this size that stays for the next call: to map and touch a buffer
 * costs more than to copy a small file. threads: 0 for the engine alone; each thread has its own
 * part of the buffer. Returns what the engine returns. */
int cached_readwrite(struct copy *, struct transfer *t, size_t buffer_size, unsigned threads);
/* The threads that options.threads asks for, or that the CPUs allow: 1 to FCOPY_THREADS_MAX. */
unsigned cached_threads(const struct copy *);

#endif
