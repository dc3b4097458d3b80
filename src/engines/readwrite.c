/* SPDX-License-Identifier: MIT
 * read(2) and write(2) through a buffer in user space: the engine that works everywhere, and so
 * never answers ENGINE_NEXT. Each byte is copied twice by the CPU.
 */
#include "engine.h"

#include <errno.h>

#define BUFFER_SIZE ((size_t)128 << 10)

static int copy_through(struct transfer *t, void *buffer, size_t size)
{
	size_t want;
	while ((want = transfer_chunk(t, size)) > 0) {
		ssize_t got = io_read(&t->io, t->src, buffer, want, transfer_src_at(t));
		if (got < 0)
			return transfer_fail(t, t->src_positional ? "pread" : "read", SIDE_SRC,
					     (int)got);
		if (got == 0)
			return 0;
		size_t put;
		int r = io_write_all(&t->io, t->dst, buffer, (size_t)got, transfer_dst_at(t), &put);
		int stop = transfer_advance(t, put);
		if (r < 0)
			return transfer_fail(t, t->dst_positional ? "pwrite" : "write", SIDE_DST,
					     r);
		if (stop)
			return stop;
	}
	return 0;
}

static int copy(struct transfer *t)
{
	size_t size = t->buffer_size ? t->buffer_size : BUFFER_SIZE;
	if (t->buffer)
		return copy_through(t, t->buffer, size);
	void *buffer = io_alloc(size);
	if (!buffer)
		return transfer_fail(t, "mmap", SIDE_NONE, -errno);
	int r = copy_through(t, buffer, size);
	io_free(buffer, size);
	return r;
}

const struct engine engine_readwrite = {.name = "readwrite", .positional = true, .copy = copy};
