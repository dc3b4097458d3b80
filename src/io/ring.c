/* SPDX-License-Identifier: MIT
 * Implements ring.h; empty without liburing.
 */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>

#ifdef HAVE_LIBURING

#include <liburing.h>
#include <time.h>

struct ring {
	struct io_uring uring;
	int fixed;        /* the memory is registered, as buffer 0 */
	unsigned pending; /* operations queued or in flight */
};

struct ring *ring_open(unsigned depth, void *memory, size_t size)
{
	struct iovec all = {.iov_base = memory, .iov_len = size};
	struct ring *r = malloc(sizeof(*r));
	if (!r)
		return NULL;
	int err = -io_uring_queue_init(depth, &r->uring, 0);
	if (err == 0) {
		/* A seccomp filter may allow the setup alone. */
		err = -io_uring_enter((unsigned)r->uring.ring_fd, 0, 0, 0, NULL);
		if (err)
			io_uring_queue_exit(&r->uring);
	}
	if (err) {
		free(r);
		errno = err;
		return NULL;
	}
	r->pending = 0;
	r->fixed = io_uring_register_buffers(&r->uring, &all, 1) == 0;
	return r;
}

void ring_close(struct ring *r)
{
	io_uring_queue_exit(&r->uring);
	free(r);
}

void ring_read(struct ring *r, int fd, void *buf, size_t n, off_t at, unsigned id)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);
	r->pending++;
	if (r->fixed)
		io_uring_prep_read_fixed(sqe, fd, buf, (unsigned)n, (__u64)at, 0);
	else
		io_uring_prep_read(sqe, fd, buf, (unsigned)n, (__u64)at);
	io_uring_sqe_set_data64(sqe, id);
}

void ring_write(struct ring *r, int fd, const void *buf, size_t n, off_t at, unsigned id)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->uring);
	r->pending++;
	if (r->fixed)
		io_uring_prep_write_fixed(sqe, fd, buf, (unsigned)n, (__u64)at, 0);
	else
		io_uring_prep_write(sqe, fd, buf, (unsigned)n, (__u64)at);
	io_uring_sqe_set_data64(sqe, id);
}

int ring_wait(struct ring *r, unsigned *id, int *result)
{
	struct io_uring_cqe *cqe;
	int n;
	do
		n = io_uring_submit_and_wait(&r->uring, 1);
	while (n == -EINTR);
	if (n < 0)
		return n;
	do
		n = io_uring_wait_cqe(&r->uring, &cqe);
	while (n == -EINTR);
	if (n < 0)
		return n;
	*id = (unsigned)io_uring_cqe_get_data64(cqe);
	*result = cqe->res;
	io_uring_cqe_seen(&r->uring, cqe);
	r->pending--;
	return 0;
}

/* Does not need io_uring_enter(2), which may be what failed: completions appear in shared memory,
 * and the kernel posts them when this thread returns from any call. */
void ring_drain(struct ring *r)
{
	struct io_uring_sync_cancel_reg all = {.flags = IORING_ASYNC_CANCEL_ANY,
					       .timeout = {.tv_sec = -1, .tv_nsec = -1}};
	struct io_uring_cqe *cqe;
	io_uring_register_sync_cancel(&r->uring, &all); /* since 6.0; only to save time */
	while (r->pending > io_uring_sq_ready(&r->uring)) {
		if (io_uring_peek_cqe(&r->uring, &cqe) == 0) {
			io_uring_cqe_seen(&r->uring, cqe);
			r->pending--;
		} else {
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		}
	}
}

#endif
