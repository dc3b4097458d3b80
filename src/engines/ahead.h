/* SPDX-License-Identifier: MIT
 *
 * Reads ahead of a sequential reader that waits for its storage. The kernel's own readahead is one
 * request of 128 KiB at a time on FUSE, and little more on many disks. Where the data is cached, or
 * the storage is as fast as the CPU, nothing is done.
 */
#ifndef ENGINES_AHEAD_H
#define ENGINES_AHEAD_H

#include <stdbool.h>
#include <sys/types.h>

struct ahead {
	off_t most;   /* bytes in the page cache that are not copied yet, at most; 0: do nothing */
	off_t window; /* the same now: it doubles while the reader waits; 0: it did not wait */
	off_t done;   /* up to here the kernel was asked to read */
	double wall;  /* io_now() at the last look; 0: there was none */
	double idle;  /* seconds that the reader had waited for something else until then */
	double cpu;   /* seconds of this thread on a CPU until then */
	double runnable; /* ... and in the run queue; negative: not asked */
};

/* The reader begins, or continues after a pause that must not count. idle: the seconds that it has
 * waited for something else than the storage so far, such as a socket. */
void ahead_start(struct ahead *, double idle);

/* The reader has copied up to `at`, and will read up to `end`. Asks the kernel to read what follows
 * if the reader has waited most of the time since the last look. Changes nothing else. */
void ahead_look(struct ahead *, double idle, int fd, off_t at, off_t end);

/* One of several readers is about to read this range. Asks the kernel to read it at once if the
 * reader before them has waited. */
void ahead_request(const struct ahead *, int fd, off_t from, off_t to);

#endif
