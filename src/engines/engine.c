/* SPDX-License-Identifier: MIT
 * The engine table, and what every engine needs: chunks, progress, and the judgement of an errno.
 */
#include "engine.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CREDIT 0.1 /* seconds that a limited rate may be behind and make up for */

const struct engine *engine_find(const char *name)
{
	static const struct engine *const table[] = {
	    &engine_readwrite, &engine_sendfile, &engine_splice, &engine_copy_file_range,
	    &engine_mmap,      &engine_direct,   &engine_reflink};
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	return NULL;
}

size_t transfer_chunk(const struct transfer *t, size_t most)
{
	uint64_t left = t->end > t->offset ? (uint64_t)(t->end - t->offset) : 0;
	uint64_t rate = t->monitor ? t->monitor->limit_rate : 0;
	if (rate > 0 && most > rate / 10) /* ten steps a second look smooth to a person */
		most = rate < 10 ? 1 : (size_t)(rate / 10);
	return left < most ? (size_t)left : most;
}

/* How long the bytes moved so far have to wait. What a stall has cost is not caught up with, but
 * for CREDIT: the start moves on instead. */
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

/* Sleeps until the bytes moved so far are due. */
static void keep_pace(const struct transfer *t, uint64_t moved)
{
	double wait = pace_wait(t->monitor, moved);
	while (wait > 0 && !io_cancelled(&t->io)) {
		struct timespec pause = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
		nanosleep(&pause, NULL);
		wait = pace_wait(t->monitor, moved);
	}
}

int transfer_account(struct transfer *t, size_t n)
{
	struct monitor *m = t->monitor;
	if (m) {
		uint64_t moved = __atomic_add_fetch(&m->moved, n, __ATOMIC_RELAXED);
		if (m->progress)
			__atomic_fetch_add(&m->progress->bytes, n, __ATOMIC_RELAXED);
		if (m->limit_rate)
			keep_pace(t, moved);
	}
	return io_cancelled(&t->io) ? -EINTR : 0;
}

int transfer_advance(struct transfer *t, size_t n)
{
	t->offset += (off_t)n;
	return transfer_account(t, n);
}

void transfer_skip(struct transfer *t, off_t offset)
{
	if (t->monitor && t->monitor->progress)
		__atomic_fetch_add(&t->monitor->progress->bytes, (uint64_t)(offset - t->offset),
				   __ATOMIC_RELAXED);
	t->offset = offset;
}

/* Is this errno the kernel's way to say "not this pair of descriptors"? It may come at any time. */
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
	case EFBIG: /* copy_file_range on 32-bit limits in 6.17; write(2) tells if it is true */
		return true;
	default: return false;
	}
}

/* Either end may be the one that was not ready. */
static int wait_until_ready(const struct transfer *t, enum side side)
{
	int r = 0;
	if (side != SIDE_DST && !t->src_positional)
		r = io_wait(&t->io, t->src, POLLIN);
	if (side != SIDE_SRC && r == 0)
		r = io_wait(&t->io, t->dst, POLLOUT);
	return r;
}

int transfer_judge(struct transfer *t, const char *call, enum side side)
{
	int err = errno;
	if (err == EINTR && !io_cancelled(&t->io))
		return 0;
	if (err == EAGAIN) {
		int r = wait_until_ready(t, side);
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

int transfer_end(struct transfer *t, const char *call)
{
	char byte;
	off_t at = t->offset;
	if (!t->src_positional) {
		struct stat st;
		if (fstat(t->src, &st) < 0 || !S_ISREG(st.st_mode))
			return 0; /* a stream has no other end than this */
		at = lseek(t->src, 0, SEEK_CUR);
		if (at < 0) /* to look would take the byte */
			return transfer_refuse(t, call, SIDE_SRC, errno);
	}
	ssize_t got = io_read(&t->io, t->src, &byte, 1, at);
	if (got < 0)
		return transfer_fail(t, "pread", SIDE_SRC, (int)got);
	return got == 0 ? 0 : transfer_refuse(t, call, SIDE_SRC, EOPNOTSUPP);
}

int transfer_refuse(struct transfer *t, const char *call, enum side side, int err)
{
	t->call = call;
	t->side = side;
	t->refusal = err;
	return ENGINE_NEXT;
}
