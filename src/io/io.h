/* SPDX-License-Identifier: MIT
 *
 * The only loops around read(2), write(2) and their kin: EINTR, EAGAIN and short counts end here.
 */
#ifndef IO_IO_H
#define IO_IO_H

#include "libc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define IO_AT_POSITION ((off_t)-1) /* use and move the descriptor's own position */
#define IO_UNCACHED    0x80        /* RWF_DONTCACHE of Linux 6.14: headers may be older */

/* How long a loop goes on trying, and how many calls it made. One thread owns it. */
struct io {
	const volatile int
	    *cancel;    /* non-zero: an interrupted call fails with EINTR; NULL: retried */
	int timeout_ms; /* longest wait for a descriptor that answers EAGAIN; <= 0: for ever */
	int flags;      /* RWF_… of preadv2(2) for each call; 0: the plain calls */
	uint64_t calls; /* read and write calls made so far */
};

bool io_cancelled(const struct io *io);

/* Reads once, at most n bytes, at offset `at`. Returns the count, 0 at the end, or -errno. */
ssize_t io_read(struct io *io, int fd, void *buf, size_t n, off_t at);

/* Writes all n bytes at offset `at`. Returns 0 or -errno; *done is what was written in either
 * case, and the error is the true one: a short write is followed by another (write(2), NOTES). */
int io_write_all(struct io *io, int fd, const void *buf, size_t n, off_t at, size_t *done);

/* Gives back the blocks of [start, end). False: the file system cannot. */
bool io_punch(int fd, off_t start, off_t end);

/* Makes [start, end) of a file read as zeros: punches a hole, or writes them. */
int io_zero(struct io *io, int fd, off_t start, off_t end);

/* The alignment that direct I/O needs on both files; 0: one of them does none. */
size_t io_direct_align(int a, int b);

/* Waits until poll(2) finds one of `events` on fd. Returns 0, -EINTR if cancelled, -ETIMEDOUT once
 * nothing has moved for timeout_ms: to a socket, no byte acknowledged either. */
int io_wait(const struct io *io, int fd, short events);

/* Page-aligned memory for n bytes, from 2 MiB on in huge pages where the kernel has some
 * (madvise(2), MADV_HUGEPAGE), or NULL with errno; io_free takes the same n. */
void *io_alloc(size_t n);
void io_free(void *p, size_t n);

/* Monotonic time in seconds. */
double io_now(void);

#endif
