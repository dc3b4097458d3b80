/* SPDX-License-Identifier: MIT
 * The loops of io.h.
 */
#include "io.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

bool io_cancelled(const struct io *io)
{
	return io->cancel && __atomic_load_n(io->cancel, __ATOMIC_RELAXED);
}

/* After a failed call on fd: 0 to try again, or the -errno to give up with. */
static int again(const struct io *io, int fd, short events)
{
	if (errno == EINTR)
		return io_cancelled(io) ? -EINTR : 0;
	if (errno == EAGAIN)
		return io_wait(io, fd, events);
	return -errno;
}

ssize_t io_read(struct io *io, int fd, void *buf, size_t n, off_t at)
{
	for (;;) {
		ssize_t got = at < 0 ? read(fd, buf, n) : pread(fd, buf, n, at);
		io->calls++;
		if (got >= 0)
			return got;
		int r = again(io, fd, POLLIN);
		if (r < 0)
			return r;
	}
}

int io_write_all(struct io *io, int fd, const void *buf, size_t n, off_t at, size_t *done)
{
	*done = 0;
	while (*done < n) {
		const char *from = (const char *)buf + *done;
		ssize_t put = at < 0 ? write(fd, from, n - *done)
				     : pwrite(fd, from, n - *done, at + (off_t)*done);
		io->calls++;
		if (put > 0) {
			*done += (size_t)put;
			continue;
		}
		if (put == 0)
			return -EIO; /* POSIX leaves it open; a loop here could last for ever */
		int r = again(io, fd, POLLOUT);
		if (r < 0)
			return r;
	}
	return 0;
}

int io_wait(const struct io *io, int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	for (;;) {
		int r = poll(&p, 1, io->timeout_ms > 0 ? io->timeout_ms : -1);
		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
		if (io_cancelled(io))
			return -EINTR;
	}
}

void *io_alloc(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void io_free(void *p, size_t n)
{
	if (p)
		munmap(p, n);
}

double io_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
