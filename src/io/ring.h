/* SPDX-License-Identifier: MIT
 *
 * io_uring, as far as a copy needs it: the only code that calls liburing. Not in a build without
 * it.
 */
#ifndef IO_RING_H
#define IO_RING_H

#include <stddef.h>
#include <sys/types.h>

struct ring;

/* Opens a ring for `depth` operations in flight, whose buffers are all inside `memory`. Registers
 * that memory with the kernel if RLIMIT_MEMLOCK allows it. Returns NULL with errno, also if
 * io_uring_enter(2) is denied. */
struct ring *ring_open(unsigned depth, void *memory, size_t size);

/* Closes the ring. No operation may be in flight, because the kernel would continue to write into
 * `memory`; if ring_wait failed, call ring_drain first. */
void ring_close(struct ring *);

/* Queues an operation under the number `id`. At most `depth` may be in flight. */
void ring_read(struct ring *, int fd, void *buf, size_t n, off_t at, unsigned id);
void ring_write(struct ring *, int fd, const void *buf, size_t n, off_t at, unsigned id);

/* Submits what is queued and waits until one operation has ended. Stores its id, and its result as
 * of pread(2) or pwrite(2), or -errno. Returns 0, or -errno if the ring itself fails. */
int ring_wait(struct ring *, unsigned *id, int *result);

/* After ring_wait failed: discards what is queued, cancels what is in flight, and returns when the
 * kernel has ended all of it. The results are lost. Only ring_close may follow. */
void ring_drain(struct ring *);

#endif
