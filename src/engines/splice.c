/* SPDX-License-Identifier: MIT
 * splice(2): references to pages move through a pipe; the destination copies them once, a socket
 * not at all. Where neither end is a pipe, the engine brings one of its own.
 */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPE_SIZE ((size_t)1 << 20) /* the kernel's limit for everybody, fs.pipe-max-size */

/* What comes from a socket is still in the CPU's cache when it goes on, if the pieces are small. */
#define SOCKET_PIECE ((size_t)128 << 10)

/* While a pipe is emptied into a file its lock is held, and its writer waits (splice_from_pipe in
 * fs/splice.c). So the pages move into a pipe of our own first, by reference, and the writer goes
 * on. */
#define PIPE_PIECE ((size_t)512 << 10)

static bool is_pipe(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Makes the pipe as large as the kernel allows, up to `size`; returns what it got. To splice more
 * than a pipe holds can wait for ever. */
static size_t enlarge(int pipe, size_t size)
{
	for (; size > (size_t)sysconf(_SC_PAGESIZE); size /= 2)
		if (fcntl(pipe, F_SETPIPE_SZ, (int)size) >= 0)
			break;
	int got = fcntl(pipe, F_GETPIPE_SZ);
	return got > 0 ? (size_t)got : (size_t)sysconf(_SC_PAGESIZE);
}

/* One splice call from `in` to `out`. Returns the count, 0 at the end, -errno, or -ENGINE_NEXT,
 * which is no errno that splice gives. */
static ssize_t move(struct transfer *t, int in, off_t *in_at, int out, off_t *out_at, size_t n,
		    enum side side)
{
	for (;;) {
		ssize_t got = splice(in, in_at, out, out_at, n, 0);
		t->io.calls++;
		if (got >= 0)
			return got;
		int r = transfer_judge(t, "splice", side);
		if (r)
			return r < 0 ? r : -ENGINE_NEXT;
	}
}

/* The next bytes of the source. A 0 is the end only if a read finds nothing there either. */
static ssize_t take(struct transfer *t, int out, off_t *out_at, size_t n, enum side side)
{
	off_t from = t->offset;
	off_t *at = t->src_positional ? &from : NULL;
	ssize_t got = move(t, t->src, at, out, out_at, n, side);
	if (got != 0)
		return got;
	int r = transfer_end(t, "splice");
	if (r != ENGINE_NEXT)
		return r;
	got = move(t, t->src, at, out, out_at, n, side);
	return got ? got : -ENGINE_NEXT;
}

static int outcome(ssize_t r)
{
	return r == -ENGINE_NEXT ? ENGINE_NEXT : (int)r;
}

/* One end is a pipe already, and the other takes its pages as they are. */
static int copy_directly(struct transfer *t)
{
	size_t want;
	while ((want = transfer_chunk(t, ENGINE_CHUNK)) > 0) {
		off_t to = t->offset;
		ssize_t n = take(t, t->dst, t->dst_positional ? &to : NULL, want, SIDE_BOTH);
		if (n <= 0)
			return outcome(n);
		int r = transfer_advance(t, (size_t)n);
		if (r)
			return r;
	}
	return 0;
}

/* The destination refused with n bytes in our pipe. A source without offsets cannot give them
 * again, so they go on by read and write; otherwise they are dropped with the pipe. */
static int rescue(struct transfer *t, int pipe, size_t n)
{
	char buffer[4096];
	while (n > 0 && !t->src_positional) {
		size_t want = n < sizeof(buffer) ? n : sizeof(buffer), put;
		ssize_t got = io_read(&t->io, pipe, buffer, want, IO_AT_POSITION);
		if (got <= 0)
			return transfer_fail(t, "read", SIDE_NONE, got < 0 ? (int)got : -EIO);
		int r = io_write_all(&t->io, t->dst, buffer, (size_t)got, transfer_dst_at(t), &put);
		int stop = transfer_advance(t, put);
		if (r < 0)
			return transfer_fail(t, "write", SIDE_DST, r);
		if (stop)
			return stop;
		n -= (size_t)got;
	}
	return ENGINE_NEXT;
}

/* Moves the n bytes in our pipe to the destination. */
static int drain(struct transfer *t, int pipe, size_t n)
{
	while (n > 0) {
		off_t to = t->offset;
		ssize_t put = move(t, pipe, NULL, t->dst, t->dst_positional ? &to : NULL, n,
				   SIDE_DST);
		if (put == 0)
			return transfer_fail(t, "splice", SIDE_DST, -EIO);
		if (put == -ENGINE_NEXT)
			return rescue(t, pipe, n);
		if (put < 0)
			return (int)put;
		n -= (size_t)put;
		int r = transfer_advance(t, (size_t)put);
		if (r)
			return r;
	}
	return 0;
}

static int copy_through(struct transfer *t, const int pipe[2], size_t size)
{
	size_t want;
	while ((want = transfer_chunk(t, size)) > 0) {
		ssize_t n = take(t, pipe[1], NULL, want, SIDE_SRC);
		if (n <= 0)
			return outcome(n);
		int r = drain(t, pipe[0], (size_t)n);
		if (r)
			return r;
	}
	return 0;
}

static size_t piece(const struct transfer *t, bool from_pipe)
{
	if (t->buffer_size)
		return t->buffer_size;
	return from_pipe ? PIPE_PIECE : t->src_positional ? PIPE_SIZE : SOCKET_PIECE;
}

static int copy(struct transfer *t)
{
	int pipe[2];
	bool from_pipe = is_pipe(t->src), to_pipe = is_pipe(t->dst);
	size_t most = t->buffer_size ? t->buffer_size : PIPE_SIZE;
	if (from_pipe)
		enlarge(t->src, most);
	if (to_pipe)
		enlarge(t->dst, most);
	if (to_pipe || (from_pipe && !t->dst_positional))
		return copy_directly(t);
	if (pipe2(pipe, O_CLOEXEC) < 0) /* others need no descriptor */
		return transfer_refuse(t, "pipe2", SIDE_NONE, errno);
	int r = copy_through(t, pipe, enlarge(pipe[1], piece(t, from_pipe)));
	close(pipe[0]);
	close(pipe[1]);
	return r;
}

const struct engine engine_splice = {.name = "splice", .falls_back = true, .copy = copy};
