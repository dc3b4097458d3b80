/* SPDX-License-Identifier: MIT
 *
 * One file in several threads.
 */
#ifndef COPY_RANGES_H
#define COPY_RANGES_H

#include "copy.h"

struct ranges;

/* Threads of the caller that may join while a range is copied: those of a tree's pool. */
struct helpers {
	void *user;
	const unsigned *idle; /* how many have nothing to do now; atomic */
	/* Lets threads that have nothing to do call ranges_help(). */
	void (*invite)(void *user, struct ranges *);
	/* Lets no thread join any more. Returns when those that did have left. */
	void (*dismiss)(void *user, struct ranges *);
};

/* Hands pieces of t to `threads` threads, each running the engine, which has to be
 * positional. The caller's thread is one of them. t->buffer has room for t->buffer_size bytes of
 * each thread. NULL: ranges_run allocates it, and runs one thread if there is too little memory for
 * all. The first failure stops all threads and is returned; t->offset is the finished prefix, and
 * t->threads the threads that could be created, plus one. start_writeback: start writeback of the
 * finished pieces while others are copied. helpers: join the threads; NULL: there are none. */
int ranges_run(const struct engine *, struct transfer *t, unsigned threads, bool start_writeback,
	       const struct helpers *helpers);
/* Of a thread that was invited: copies pieces through a buffer of ranges_buffer_size() bytes until
 * no piece is left. */
void ranges_help(struct ranges *, void *buffer);
size_t ranges_buffer_size(const struct ranges *);

#endif
