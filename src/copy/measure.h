/* SPDX-License-Identifier: MIT
 *
 * Two ways to copy data that is in the page cache. One thread of splice(2) copies each byte once.
 * Threads of pread and pwrite copy it twice, but at the same time on several CPUs. Which one is
 * faster depends on the memory, on the file system and on what else runs, so auto measures it.
 */
#ifndef COPY_MEASURE_H
#define COPY_MEASURE_H

#include <stdbool.h>
#include <sys/types.h>

enum way { WAY_SPLICE, WAY_THREADS, WAYS };

/* What a copy has measured so far; all zero: nothing. One for the whole file: an extent continues
 * with what the extents before it have shown. */
struct measure {
	enum way way;      /* the one to continue with, if enough CPUs are idle */
	unsigned threads;  /* for WAY_THREADS; 0: not asked yet */
	unsigned most;     /* threads that may be tried */
	bool refused;      /* splice returned ENGINE_NEXT: readwrite moves the rest */
	bool waits;        /* the reader waits for the storage: idle CPUs do not matter */
	bool doubled;      /* twice as many threads are tried as those that won */
	bool busy;         /* the last count found no idle CPU */
	unsigned pieces;   /* left in this trial; the ways take turns */
	off_t piece;       /* bytes of each of them */
	double cost[WAYS]; /* lowest seconds per byte in this trial; 0: not measured */
	off_t settled;     /* bytes to copy before the next trial */
	off_t interval;    /* settled after the last trial */
};

/* Where the next piece of a range goes. */
struct choice {
	enum way way;
	off_t size; /* bytes, at most what was left */
	bool trial; /* its time counts */
};

/* Chooses for the next of `left` bytes. idle: CPUs without work, the caller's own among them. */
struct choice measure_choose(struct measure *, off_t left, unsigned idle);

/* Notes how many bytes the choice has copied, and its seconds per byte. */
void measure_note(struct measure *, const struct choice *, off_t bytes, double cost);

/* Does the next choice depend on idle? To count idle CPUs costs some microseconds. */
bool measure_asks(const struct measure *, off_t left);

#endif
