/* SPDX-License-Identifier: MIT
 *
 * One file in several threads.
 */
#ifndef COPY_RANGES_H
#define COPY_RANGES_H

#include "copy.h"

/* Hands pieces of t to `threads` threads, each running the engine, which has to be
 * positional. The caller's thread is one of them. t->buffer has room for t->buffer_size bytes of
 * each thread. NULL: ranges_run allocates it, and runs one thread if there is too little memory for
 * all. The first failure stops all threads and is returned; t->offset is the finished prefix, and
 * t->threads the threads that could be created, plus one. start_writeback: start writeback of the
 * finished pieces while others are copied. */
int ranges_run(const struct engine *, struct transfer *t, unsigned threads, bool start_writeback);

#endif
