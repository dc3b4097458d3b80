/* SPDX-License-Identifier: MIT
 *
 * io_uring, as much of it as a copy needs: the one seam between us and liburing.
 */
#ifndef IO_RING_H
#define IO_RING_H

#include <stddef.h>
#include <sys/types.h>

struct ring;

/* Why this build has no io_uring, or NULL. */
extern const char *const ring_missing;

/* A ring for `depth` operations in flight, all inside `memory`, which is registered with the kernel
 * if RLIMIT_MEMLOCK lets it. NULL with errno. ring_close waits for nothing: first collect what is
 * in flight, the kernel writes into memory until then. */
struct ring *ring_open(unsigned depth, void *memory, size_t size);
void ring_close(struct ring *);

/* Queues an operation, known by `id` from then on. At most `depth` may be in flight. */
void ring_read(struct ring *, int fd, void *buf, size_t n, off_t at, unsigned id);
void ring_write(struct ring *, int fd, const void *buf, size_t n, off_t at, unsigned id);

/* Submits what is queued and waits for one operation to end: its id, and its result as of pread or
 * pwrite, or -errno. Returns 0, or -errno if the ring itself fails; EINTR is retried. */
int ring_wait(struct ring *, unsigned *id, int *result);

#endif
