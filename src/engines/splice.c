/* SPDX-License-Identifier: MIT
 * splice(2): references to pages move through a pipe. The destination copies them once, a socket
 * not at all. Where neither side is a pipe, the engine creates one.
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIPE_SIZE ((size_t)1 << 20) /* the default limit for users, fs.pipe-max-size */

/* Bytes from a socket are still in the CPU's cache when they are written, if the chunks are small.
 */
#define SOCKET_CHUNK ((size_t)128 << 10)

/* splice(2) from a pipe into a file holds the pipe's lock, so the writer of the pipe waits
 * (splice_from_pipe in fs/splice.c). Move the pages into a pipe of the engine's own first, which
 * copies no bytes, so that the writer can continue. */
#define PIPE_CHUNK ((size_t)512 << 10)

static bool is_pipe(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Makes the pipe as large as the kernel allows, at most `size` bytes. Returns its size: a splice of
 * more than that into an empty pipe may block for ever. */
static size_t enlarge_pipe(int pipe, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	for (size = size < page ? page : size; size >= page; size /= 2)
		if (fcntl(pipe, F_SETPIPE_SZ, (int)size) >= 0)
			break;
	int got = fcntl(pipe, F_GETPIPE_SZ);
	return got > 0 ? (size_t)got : page;
}

/* Stores whether fd is a socket with input that a read would return. Returns 0, or -errno: recv
 * takes a pending error such as ECONNRESET off the socket, so this is its only report. */
static int has_socket_input(int fd, bool *input)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	*input = n > 0;
	return n >= 0 || errno == EAGAIN || errno == EINTR || errno == ENOTSOCK ? 0 : -errno;
}

/* Splices at most n bytes once, from the source or to the destination, or both. Returns 0 with
 * their number in *moved (0 at the end), RESULT_NEXT or -errno. */
static int splice_once(struct transfer *t, int in, int out, size_t n, size_t *moved)
{
	bool had_input = false, reads = in == t->src, writes = out == t->dst;
	off_t from = t->offset, to = t->offset;
	off_t *in_at = reads && t->src_positional ? &from : NULL;
	off_t *out_at = writes && t->dst_positional ? &to : NULL;
	enum side side = !reads ? SIDE_DST : writes ? SIDE_BOTH : SIDE_SRC;
	*moved = 0;
	for (;;) {
		ssize_t got = splice(in, in_at, out, out_at, n, 0);
		t->io.calls++;
		if (got >= 0) {
			*moved = (size_t)got;
			t->io.waits = 0;
			return 0;
		}
		/* TCP urgent data: EAGAIN for ever, while poll(2) reports input. */
		if (errno == EAGAIN && had_input)
			return transfer_refuse(t, "splice", SIDE_SRC, EOPNOTSUPP);
		int r = transfer_judge(t, "splice", side);
		if (r)
			return r;
		if (reads && (r = has_socket_input(in, &had_input)) < 0)
			return transfer_fail(t, "recv", SIDE_SRC, r);
	}
}

/* Splices the next bytes of the source. If splice reports the end, a read checks that there are no
 * more bytes. If the source grew between the two calls, splice is called again. */
static int splice_source(struct transfer *t, int out, size_t n, size_t *moved)
{
	int r = splice_once(t, t->src, out, n, moved);
	if (r || *moved > 0)
		return r;
	r = transfer_end(t, "splice");
	if (r != RESULT_NEXT)
		return r;
	r = splice_once(t, t->src, out, n, moved);
	return r || *moved > 0 ? r : transfer_refuse(t, "splice", SIDE_SRC, EOPNOTSUPP);
}

/* Copies if one side is a pipe and the other side accepts its pages. */
static int splice_directly(struct transfer *t)
{
	size_t want, moved;
	while ((want = transfer_chunk(t, ENGINE_CHUNK)) > 0) {
		int r = splice_source(t, t->dst, want, &moved);
		if (r || moved == 0)
			return r;
		if ((r = transfer_advance(t, moved)))
			return r;
	}
	return 0;
}

/* The destination refused while n bytes were in the engine's pipe. A source with offsets can return
 * them again; those of a stream exist only there: read and write them. */
static int rescue_pipe(struct transfer *t, int pipe, size_t n)
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
			return transfer_fail(t, t->dst_positional ? "pwrite" : "write", SIDE_DST,
					     r);
		if (stop)
			return stop;
		n -= (size_t)got;
	}
	return RESULT_NEXT;
}

/* Moves the n bytes in the engine's pipe to the destination. */
static int drain_pipe(struct transfer *t, int pipe, size_t n)
{
	while (n > 0) {
		size_t moved;
		int r = splice_once(t, pipe, t->dst, n, &moved);
		if (r == RESULT_NEXT)
			return rescue_pipe(t, pipe, n);
		if (r < 0)
			return r;
		if (moved == 0)
			return transfer_fail(t, "splice", SIDE_DST, -EIO);
		n -= moved;
		if ((r = transfer_advance(t, moved)))
			return r;
	}
	return 0;
}

static int splice_through_pipe(struct transfer *t, const int pipe[2], size_t size)
{
	size_t want, moved;
	while ((want = transfer_chunk(t, size)) > 0) {
		int r = splice_source(t, pipe[1], want, &moved);
		if (r || moved == 0)
			return r;
		if ((r = drain_pipe(t, pipe[0], moved)))
			return r;
	}
	return 0;
}

static int splice_copy(struct transfer *t)
{
	int pipe[2];
	bool from_pipe = is_pipe(t->src), to_pipe = is_pipe(t->dst);
	size_t size = t->buffer_size ? t->buffer_size : PIPE_SIZE;
	if (from_pipe)
		enlarge_pipe(t->src, size);
	if (to_pipe)
		enlarge_pipe(t->dst, size);
	if (to_pipe || (from_pipe && !t->dst_positional))
		return splice_directly(t);
	if (pipe2(pipe, O_CLOEXEC) < 0) /* other engines need no descriptor */
		return transfer_refuse(t, "pipe2", SIDE_NONE, errno);
	if (!t->buffer_size && !t->src_positional)
		size = from_pipe ? PIPE_CHUNK : SOCKET_CHUNK;
	size_t capacity = enlarge_pipe(pipe[1], size);
	int r = splice_through_pipe(t, pipe, capacity < size ? capacity : size);
	close(pipe[0]);
	close(pipe[1]);
	return r;
}

const struct engine engine_splice = {
    .name = "splice", .positional = true, .leaves_zeros = true, .copy = splice_copy};
