/* SPDX-License-Identifier: MIT
 * read(2) and write(2) through a buffer in user space: works everywhere, so it never returns
 * RESULT_NEXT. The CPU copies each byte twice.
 */
#include "engine.h"
#include "io/hash.h"

#include <errno.h>
#include <string.h>

#define BUFFER_SIZE ((size_t)128 << 10)
#define BLOCK_SIZE  ((size_t)4096) /* the smallest hole */

/* Returns the length of the run of blocks at p that are all zeros, or of those that are not; *zeros
 * says which. Only the last block may be partial. */
static size_t zeros_run(const char *p, size_t n, bool *zeros)
{
	size_t done = 0;
	while (done < n) {
		size_t block = n - done < BLOCK_SIZE ? n - done : BLOCK_SIZE;
		bool zero = p[done] == 0 && memcmp(p + done, p + done + 1, block - 1) == 0;
		if (done > 0 && zero != *zeros)
			break;
		*zeros = zero;
		done += block;
	}
	return done;
}

/* Writes n bytes at t->offset, except for blocks of zeros. */
static int write_sparsely(struct transfer *t, const char *p, size_t n, size_t *put)
{
	int r = 0;
	for (*put = 0; r == 0 && *put < n;) {
		bool zeros = false;
		size_t run = zeros_run(p + *put, n - *put, &zeros), wrote = run;
		off_t at = t->offset + (off_t)*put;
		if (!zeros)
			r = io_write_all(&t->io, t->dst, p + *put, run, at, &wrote);
		else if (t->zeros == ZEROS_PUNCH)
			r = io_zero(&t->io, t->dst, at, at + (off_t)run);
		else /* XFS has preallocated past the last write */
			io_punch(t->dst, at, at + (off_t)run);
		*put += zeros && r < 0 ? 0 : wrote;
	}
	return r;
}

static int readwrite_through(struct transfer *t, void *buffer, size_t size)
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
		int r = t->zeros && t->dst_positional
			    ? write_sparsely(t, buffer, (size_t)got, &put)
			    : io_write_all(&t->io, t->dst, buffer, (size_t)got, transfer_dst_at(t),
					   &put);
		if (t->sum)
			*t->sum = sum_add(*t->sum, buffer, put);
		int stop = transfer_advance(t, put);
		if (r < 0)
			return transfer_fail(t, t->dst_positional ? "pwrite" : "write", SIDE_DST,
					     r);
		if (stop)
			return stop;
		t->ended = t->exact && (size_t)got < want && t->offset == t->size;
		if (t->ended)
			return 0;
	}
	return 0;
}

static int readwrite_copy(struct transfer *t)
{
	size_t size = t->buffer_size ? t->buffer_size : BUFFER_SIZE;
	if (t->buffer)
		return readwrite_through(t, t->buffer, size);
	void *buffer = io_alloc(size);
	if (!buffer)
		return transfer_fail(t, "mmap", SIDE_NONE, -errno);
	int r = readwrite_through(t, buffer, size);
	io_free(buffer, size);
	return r;
}

const struct engine engine_readwrite = {
    .name = "readwrite", .positional = true, .copy = readwrite_copy};
