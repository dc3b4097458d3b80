/* SPDX-License-Identifier: MIT
 * What the engines share: see engine.h.
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CREDIT 0.1 /* seconds of delay that a limited rate may make up for */
#define SLEEP  0.1 /* seconds, at most, until a thread looks whether it is cancelled */

size_t transfer_chunk(const struct transfer *t, size_t most)
{
	uint64_t left = t->end > t->offset ? (uint64_t)(t->end - t->offset) : 0;
	uint64_t rate = t->monitor ? t->monitor->limit_rate : 0;
	if (rate > 0 && most > rate / 10) /* ten steps a second look smooth */
		most = rate < 10 ? 1 : (size_t)(rate / 10);
	return left < most ? (size_t)left : most;
}

/* Returns how many seconds too early the bytes were moved. After a stall the start moves forward,
 * so that at most CREDIT is made up for. */
static double pace_wait(struct monitor *m, uint64_t moved)
{
	double start, now = io_now(), due = (double)moved / (double)m->limit_rate;
	__atomic_load(&m->start, &start, __ATOMIC_RELAXED);
	if (start + due >= now - CREDIT)
		return start + due - now;
	start = now - CREDIT - due;
	__atomic_store(&m->start, &start, __ATOMIC_RELAXED);
	return 0;
}

/* Sleeps until the limited rate allows the bytes moved so far. */
static void pace_keep(const struct transfer *t, uint64_t moved)
{
	double wait = pace_wait(t->monitor, moved);
	while (wait > 0 && !io_cancelled(&t->io)) {
		struct timespec pause = {.tv_nsec = (long)((wait < SLEEP ? wait : SLEEP) * 1e9)};
		nanosleep(&pause, NULL);
		wait = pace_wait(t->monitor, moved);
	}
}

int transfer_account(struct transfer *t, size_t n)
{
	if (t->monitor && t->monitor->progress)
		__atomic_fetch_add(&t->monitor->progress->bytes, n, __ATOMIC_RELAXED);
	return transfer_pace(t, n);
}

int transfer_pace(struct transfer *t, size_t n)
{
	struct monitor *m = t->monitor;
	if (n > 0)
		t->io.waits = 0;
	if (m) {
		uint64_t moved = __atomic_add_fetch(&m->moved, n, __ATOMIC_RELAXED);
		if (m->progress)
			__atomic_fetch_add(&m->progress->moved, n, __ATOMIC_RELAXED);
		if (m->limit_rate)
			pace_keep(t, moved);
	}
	return io_cancelled(&t->io) ? -EINTR : 0;
}

int transfer_advance(struct transfer *t, size_t n)
{
	struct ahead *ahead = t->src_positional ? t->ahead : NULL;
	t->offset += (off_t)n;
	if (ahead)
		ahead_look(ahead, t->io.idle, t->src, t->offset, MIN(t->end, t->size));
	int r = transfer_account(t, n);
	if (ahead && t->monitor && t->monitor->limit_rate) /* its pauses do not count */
		ahead_start(ahead, t->io.idle);
	return r;
}

void transfer_skip(struct transfer *t, off_t offset)
{
	if (t->monitor && t->monitor->progress)
		__atomic_fetch_add(&t->monitor->progress->bytes, (uint64_t)(offset - t->offset),
				   __ATOMIC_RELAXED);
	t->offset = offset;
}

/* Does this errno mean "unsupported for this pair of descriptors"? The kernel may return it at any
 * time, also after some bytes. */
static bool means_next(int err)
{
	switch (err) {
	case ENOSYS:     /* the kernel, or a seccomp filter, lacks the call */
	case EOPNOTSUPP: /* the file system lacks it */
	case EXDEV:      /* two file systems: copy_file_range since 5.19 */
	case EINVAL:     /* procfs without splice, O_APPEND, unaligned direct I/O */
	case EBADF:      /* copy_file_range onto O_APPEND */
	case ESPIPE:     /* explicit offsets on something that has none */
	case ETXTBSY:    /* copy_file_range on a swap file */
	case EPERM:      /* seccomp filters of containers; immutable files, before any byte */
	case EACCES:     /* security modules */
	case ENOENT:     /* copy_file_range on CIFS */
	case ECANCELED:  /* io_uring got no worker thread: pids cgroup, RLIMIT_NPROC */
	case EFBIG:      /* copy_file_range in 6.17, wrongly; readwrite reports it if it is true */
		return true;
	default: return false;
	}
}

/* Waits for whichever side is a stream: either may be the one that was not ready. Returns -EAGAIN
 * if neither is a stream. */
static int wait_for_sides(struct transfer *t, enum side side)
{
	int src = -EAGAIN, dst = -EAGAIN;
	if (side != SIDE_DST)
		src = io_wait_again(&t->io, t->src, POLLIN);
	if (side != SIDE_SRC && (src == 0 || src == -EAGAIN))
		dst = io_wait_again(&t->io, t->dst, POLLOUT);
	return dst == -EAGAIN ? src : dst;
}

int transfer_judge(struct transfer *t, const char *call, enum side side)
{
	int err = errno;
	if (err == EINTR && !io_cancelled(&t->io))
		return 0;
	if (err == EAGAIN) {
		int r = wait_for_sides(t, side);
		return r < 0 ? transfer_fail(t, call, side, r) : 0;
	}
	if (means_next(err))
		return transfer_refuse(t, call, side, err);
	return transfer_fail(t, call, side, -err);
}

int transfer_fail(struct transfer *t, const char *call, enum side side, int r)
{
	t->call = call;
	t->side = side;
	return r;
}

int transfer_refuse(struct transfer *t, const char *call, enum side side, int err)
{
	t->refusal = err;
	return transfer_fail(t, call, side, RESULT_NEXT);
}

int transfer_end(struct transfer *t, const char *call)
{
	char byte;
	struct stat st;
	off_t at = t->offset;
	ssize_t got;
	if (!t->src_positional) {
		if (fstat(t->src, &st) < 0)
			return transfer_fail(t, "fstat", SIDE_SRC, -errno);
		if (S_ISSOCK(st.st_mode)) {
			got = recv(t->src, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
			if (got < 0 && errno != EAGAIN)
				return transfer_fail(t, "recv", SIDE_SRC, -errno);
			return got == 0 ? 0 : transfer_refuse(t, call, SIDE_SRC, EOPNOTSUPP);
		}
		if (!S_ISREG(st.st_mode))
			return 0; /* a pipe or a device has no other end than this */
		at = lseek(t->src, 0, SEEK_CUR);
		if (at < 0) /* a read without an offset would take the byte */
			return transfer_refuse(t, call, SIDE_SRC, errno);
	}
	got = io_read(&t->io, t->src, &byte, 1, at);
	if (got < 0)
		return transfer_fail(t, "pread", SIDE_SRC, (int)got);
	return got == 0 ? 0 : transfer_refuse(t, call, SIDE_SRC, EOPNOTSUPP);
}

/* Reads ahead: see struct ahead. */

#define INTERVAL 0.002              /* seconds between two looks, at least */
#define MOSTLY   0.5                /* of the time: the reader waits */
#define FIRST    ((off_t)1 << 20)   /* bytes of the first window */
#define STEP     ((off_t)128 << 10) /* the kernel reads no more for one call (6.18: ra_pages) */

/* runnable: io_runnable_seconds(), which costs three system calls, or negative. */
static void ahead_restart(struct ahead *a, double idle, double runnable)
{
	a->wall = io_now();
	a->idle = idle;
	a->cpu = io_thread_seconds();
	a->runnable = runnable;
}

void ahead_start(struct ahead *a, double idle)
{
	if (a->most > 0)
		ahead_restart(a, idle, -1);
}

/* Has the reader waited most of the time since the last look? On a busy host it may only have had
 * no CPU: then a second look decides. Restarts the measurement. */
static bool ahead_waited(struct ahead *a, double now, double idle)
{
	const double least = MOSTLY * (now - a->wall), before = a->runnable;
	const double other = MAX(0, idle - a->idle); /* less: another transfer of this copy */
	double waited = now - a->wall - other - (io_thread_seconds() - a->cpu);
	double runnable = waited > least ? io_runnable_seconds() : -1;
	bool known = runnable >= 0 && before >= 0;
	ahead_restart(a, idle, runnable);
	return known && waited - (runnable - before) > least;
}

/* Asks for the first STEP bytes of a range. */
static bool ahead_ask(int fd, off_t from, off_t to)
{
	return posix_fadvise(fd, from, MIN(STEP, to - from), POSIX_FADV_WILLNEED) == 0;
}

void ahead_look(struct ahead *a, double idle, int fd, off_t at, off_t end)
{
	if (a->most == 0)
		return;
	double now = io_now();
	if (now - a->wall >= INTERVAL) {
		if (ahead_waited(a, now, idle)) {
			a->window = MIN(a->window > 0 ? 2 * a->window : FIRST, a->most);
			a->done = at; /* FUSE ignores what it is asked for above some requests */
		}
	}
	if (a->window == 0)
		return;
	const off_t until = MIN(end, at + a->window);
	for (a->done = MAX(a->done, at); a->done < until; a->done += STEP)
		if (!ahead_ask(fd, a->done, until))
			a->most = a->window = 0; /* it cannot */
}

void ahead_request(const struct ahead *a, int fd, off_t from, off_t to)
{
	while (a->window > 0 && from < to && ahead_ask(fd, from, to))
		from += STEP;
}
