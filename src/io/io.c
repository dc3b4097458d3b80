/* SPDX-License-Identifier: MIT
 * Implements io.h.
 */
#include "io.h"
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HUGE_SIZE     ((size_t)2 << 20) /* of x86-64, and of arm64 with pages of 4 KiB */
#define WAIT_SLICE_MS 1000              /* the signal that cancels may interrupt another thread */
#define WAITS_MAX     4                 /* waits without progress; each further one also sleeps */
#define PAUSE_NS      1000000

bool io_cancelled(const struct io *io)
{
	return io->cancel && __atomic_load_n(io->cancel, __ATOMIC_RELAXED);
}

/* Called after a failed call on fd. Returns 0: retry it; or the final -errno. */
static int io_retry(struct io *io, int fd, short events)
{
	if (errno == EINTR)
		return io_cancelled(io) ? -EINTR : 0;
	if (errno == EAGAIN)
		return io_wait_again(io, fd, events);
	return -errno;
}

ssize_t io_read(struct io *io, int fd, void *buf, size_t n, off_t at)
{
	struct iovec v = {.iov_base = buf, .iov_len = n};
	for (;;) {
		io->calls++;
		ssize_t got = io->flags ? preadv2(fd, &v, 1, at, io->flags)
			      : at < 0  ? read(fd, buf, n)
					: pread(fd, buf, n, at);
		if (got >= 0) {
			io->waits = 0;
			return got;
		}
		int r = io_retry(io, fd, POLLIN);
		if (r < 0)
			return r;
	}
}

int io_write_all(struct io *io, int fd, const void *buf, size_t n, off_t at, size_t *done)
{
	*done = 0;
	while (*done < n) {
		const off_t to = at < 0 ? IO_AT_POSITION : at + (off_t)*done;
		struct iovec v = {.iov_base = (char *)buf + *done, .iov_len = n - *done};
		io->calls++;
		ssize_t put = io->flags ? pwritev2(fd, &v, 1, to, io->flags)
			      : at < 0  ? write(fd, v.iov_base, v.iov_len)
					: pwrite(fd, v.iov_base, v.iov_len, to);
		if (put > 0) {
			*done += (size_t)put;
			io->waits = 0;
			continue;
		}
		if (put == 0)
			return -EIO; /* POSIX allows it; retrying might never end */
		int r = io_retry(io, fd, POLLOUT);
		if (r < 0)
			return r;
	}
	return 0;
}

int io_truncate(int fd, off_t size)
{
	int r;
	do
		r = ftruncate(fd, size);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

bool io_punch(int fd, off_t start, off_t end)
{
	int r;
	do
		r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, end - start);
	while (r < 0 && errno == EINTR);
	return r == 0;
}

int io_zero(struct io *io, int fd, off_t start, off_t end)
{
	static const char zeros[65536];
	if (io_punch(fd, start, end))
		return 0;
	while (start < end) {
		size_t n = end - start < (off_t)sizeof(zeros) ? (size_t)(end - start)
							      : sizeof(zeros),
		       put;
		int r = io_write_all(io, fd, zeros, n, start, &put);
		if (r < 0 || io_cancelled(io))
			return r < 0 ? r : -EINTR;
		start += (off_t)n;
	}
	return 0;
}

int io_reopen_directory(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (again >= 0)
		return again;
	if (errno != EACCES)
		return -errno;
	/* Its mode has changed since. */
	again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (again < 0)
		return -errno;
	if (lseek(again, 0, SEEK_SET) == 0)
		return again;
	int err = errno == EBADF ? EACCES : errno; /* O_PATH */
	close(again);
	return -err;
}

int io_close_duplicate(int fd, struct failure *fail)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return fail_at(fail, "fcntl(F_DUPFD)");
	return libc_close(copy) < 0 ? fail_at(fail, "close") : 0;
}

int io_check_written(int fd, bool flush, struct failure *fail)
{
	int r = flush ? io_close_duplicate(fd, fail) : 0;
	if (r < 0)
		return r;
	/* Since Linux 4.13 (file_check_and_advance_wb_err() in mm/filemap.c) each descriptor gets
	 * each error once, also one that another call has returned to somebody else. */
	r = sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE) < 0 ? -errno : 0;
	return r == -ENOSYS || r == -EINVAL || r == -ESPIPE || r == -EPERM
		   ? 0
		   : fail_if(fail, r, "sync_file_range");
}

int io_flush_directory(int fd)
{
	return fsync(fd) < 0 && errno != EINVAL && errno != EOPNOTSUPP ? -errno : 0;
}

int io_flush_place(int fd)
{
	const int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int r = dir < 0 ? -errno : io_flush_directory(dir);
	io_close(dir);
	return r;
}

static bool reads_wrong(int fd)
{
	struct stat st;
	return system_has(fd, SYSTEM_READS_WRONG) && fstat(fd, &st) == 0 && st.st_size > 0 &&
	       st.st_size < 4096;
}

size_t io_direct_align(int a, int b)
{
	size_t align = 512;
	for (int i = 0; i < 2; i++) {
		struct statx sx;
		size_t need = 4096; /* kernels before 6.1 do not report it: enough everywhere */
		if (statx(i ? b : a, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
		    sx.stx_mask & STATX_DIOALIGN)
			need = sx.stx_dio_offset_align > sx.stx_dio_mem_align
				   ? sx.stx_dio_offset_align
				   : sx.stx_dio_mem_align;
		else if (i == 0 && reads_wrong(a))
			need = 0;
		if (need == 0)
			return 0;
		align = need > align ? need : align;
	}
	return align;
}

/* poll(2) reports a socket with SO_RCVLOWAT readable only when that many bytes have come. */
static bool has_input(int fd, short events)
{
	int n = 0;
	return events & POLLIN && ioctl(fd, FIONREAD, &n) == 0 && n > 0;
}

/* Bytes that a socket's peer has not acknowledged. poll(2) reports a socket writable only when a
 * third of its buffer is free. A slow reader may need minutes for that, but this count falls. */
static int bytes_unacknowledged(int fd, short events)
{
	int n = 0;
	return events & POLLOUT && ioctl(fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

static int slice_ms(double left_ms)
{
	if (left_ms >= WAIT_SLICE_MS)
		return WAIT_SLICE_MS;
	return left_ms > 0 ? (int)left_ms + 1 : 0;
}

/* Bytes that a TCP connection has moved since it began: acknowledged, or received. Linux 4.1. */
static bool moved_bytes(int fd, short events, uint64_t *bytes)
{
	struct tcp_info info = {.tcpi_state = 0};
	socklen_t size = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
		return false;
	*bytes = events & POLLOUT ? info.tcpi_bytes_acked : info.tcpi_bytes_received;
	return true;
}

/* Has the peer moved too few bytes in the last timeout_ms? A byte now and then restarts the
 * timeout.
 */
static bool is_too_slow(struct io *io, int fd, short events)
{
	const double now = io_now();
	uint64_t bytes;
	if (io->least_rate == 0 || io->timeout_ms <= 0 ||
	    (io->rate_since > 0 && now - io->rate_since < io->timeout_ms / 1e3) ||
	    !moved_bytes(fd, events, &bytes))
		return false;
	const double least = io->least_rate * (now - io->rate_since);
	const bool slow = io->rate_since > 0 && (double)(bytes - io->rate_from) < least;
	io->rate_since = now;
	io->rate_from = bytes;
	return slow;
}

/* Implements io_wait; the timeout runs from *since. rated: for its least_rate, or NULL. */
static int wait_since(const struct io *io, int fd, short events, double *since, struct io *rated)
{
	struct pollfd p = {.fd = fd, .events = events};
	double limit = io->timeout_ms > 0 ? io->timeout_ms / 1e3 : HUGE_VAL;
	int before = bytes_unacknowledged(fd, events);
	for (;;) {
		if (io_cancelled(io))
			return -EINTR;
		double left = *since + limit - io_now();
		if (left <= 0 || (rated && is_too_slow(rated, fd, events)))
			return -ETIMEDOUT;
		int r = poll(&p, 1, slice_ms(left * 1e3));
		if (r > 0 || (r == 0 && has_input(fd, events)))
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		int now = bytes_unacknowledged(fd, events);
		if (now != before)
			*since = io_now();
		before = now;
	}
}

int io_wait(const struct io *io, int fd, short events)
{
	double since = io_now();
	return wait_since(io, fd, events, &since, NULL);
}

/* Implements io_wait_again, except for counting the time. */
static int wait_again(struct io *io, int fd, short events)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
		return -EAGAIN;
	if (io->waits == 0)
		io->idle_since = io_now();
	if (++io->waits > WAITS_MAX)
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	if (S_ISSOCK(st.st_mode))
		return wait_since(io, fd, events, &io->idle_since, io);
	/* The timeout applies to connections: the kernel waits for a blocking pipe without one. */
	const struct io patient = {.cancel = io->cancel};
	int r = io_wait(&patient, fd, events);
	io->idle_since = io_now();
	return r;
}

int io_wait_again(struct io *io, int fd, short events)
{
	const double start = io_now();
	const int r = wait_again(io, fd, events);
	io->idle += io_now() - start;
	return r;
}

static size_t whole_pages(size_t n)
{
	return n < HUGE_SIZE ? n : (n + HUGE_SIZE - 1) / HUGE_SIZE * HUGE_SIZE;
}

/* Returns the part of [p, p + size + HUGE_SIZE) that huge pages can hold; unmaps the rest. */
static void *align_huge(char *p, size_t size)
{
	size_t before = -(uintptr_t)p & (HUGE_SIZE - 1);
	char *start = p + before;
	if (before > 0)
		munmap(p, before);
	munmap(start + size, HUGE_SIZE - before);
	madvise(start, size, MADV_HUGEPAGE); /* only to save time: small pages work, too */
	return start;
}

/* Direct I/O from huge pages reaches the device as a few long segments instead of one for each
 * small page, and took half the time on virtio. */
void *io_alloc(size_t n)
{
	size_t size = whole_pages(n), spare = n < HUGE_SIZE ? 0 : HUGE_SIZE;
	void *p = mmap(NULL, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (p == MAP_FAILED)
		return NULL;
	return spare ? align_huge(p, size) : p;
}

void io_free(void *p, size_t n)
{
	if (p)
		munmap(p, whole_pages(n));
}
