/* SPDX-License-Identifier: MIT
 * O_DIRECT on both sides through io_uring: the device moves the bytes to and from our buffers, the
 * CPU copies none of them and the page cache stays as it was. Several pieces are in flight. The
 * last block of a file is written whole: it has to be cut to t->offset afterwards. A device cannot
 * be cut, so there the bytes of a last block that is not full, and no others, go by write(2).
 */
#define _GNU_SOURCE
#include "engine.h"
#include "io/ring.h"
#include "pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Not by O_DIRECT, which the caller restores; and flushed, so that this block too is where the
 * others are. */
static int write_tail(struct pieces *d)
{
	struct transfer *t = d->t;
	size_t done;
	int flags = fcntl(t->dst, F_GETFL);
	if (flags < 0 || fcntl(t->dst, F_SETFL, flags & ~O_DIRECT) < 0)
		return transfer_fail(t, "fcntl(O_DIRECT)", SIDE_DST, -errno);
	int r = io_write_all(&t->io, t->dst, d->tail, d->tail_size, t->offset, &done);
	int stop = transfer_advance(t, done);
	if (r < 0)
		return transfer_fail(t, "pwrite", SIDE_DST, r);
	if (fdatasync(t->dst) < 0)
		return transfer_fail(t, "fdatasync", SIDE_DST, -errno);
	return stop;
}

/* Writes beyond the end take the inode's lock alone and keep it until they are done
 * (ext4_dio_write_checks, xfs_file_write_checks): none would be in flight with another, and
 * io_uring's threads would spin on it. So the size comes first; what is too much gets cut with the
 * padding. Returns the size before, or -1 if that stays. */
static off_t extend(const struct pieces *d)
{
	struct stat st;
	off_t end = d->t->end < d->size ? d->t->end : d->size;
	if (!d->pads || fstat(d->t->dst, &st) < 0 || st.st_size >= end ||
	    ftruncate(d->t->dst, end) < 0) /* then a write tells what is wrong */
		return -1;
	return st.st_size;
}

/* After a failure: no file in place that is torn, and as long as a whole one. */
static void shrink(const struct pieces *d, off_t before)
{
	off_t end = before > d->t->offset ? before : d->t->offset;
	if (before >= 0)
		(void)!ftruncate(d->t->dst, end); /* the failure before is the one to tell */
}

static int with_buffers(struct pieces *d, char *memory)
{
	d->ring = ring_open(PIECES_DEPTH, memory, PIECES_DEPTH * PIECE_SIZE);
	if (!d->ring)
		return transfer_refuse(d->t, "io_uring_setup", SIDE_NONE, errno);
	for (unsigned i = 0; i < PIECES_DEPTH; i++)
		d->piece[i].buffer = memory + i * PIECE_SIZE;
	d->size = lseek(d->t->src, 0, SEEK_END); /* of a block device, too */
	int r = d->size < 0 ? transfer_fail(d->t, "lseek", SIDE_SRC, -errno) : 0;
	off_t before = r == 0 ? extend(d) : -1;
	if (r == 0)
		r = pieces_run(d);
	ring_close(d->ring);
	if (r != 0)
		shrink(d, before);
	if (r == 0 && d->tail_size > 0)
		r = write_tail(d);
	return r;
}

static int with_flags(struct transfer *t)
{
	struct stat st;
	if (fstat(t->dst, &st) < 0)
		return transfer_fail(t, "fstat", SIDE_DST, -errno);
	struct pieces d = {.t = t,
			   .align = io_direct_align(t->src, t->dst),
			   .next = t->offset,
			   .pads = S_ISREG(st.st_mode)};
	bool aligned = d.align > 0 && PIECE_SIZE % d.align == 0 &&
		       t->offset % (off_t)d.align == 0 &&
		       (t->end == TRANSFER_TO_EOF || t->end % (off_t)d.align == 0);
	if (!aligned)
		return transfer_refuse(t, "O_DIRECT", SIDE_BOTH, EINVAL);
	char *memory = io_alloc(PIECES_DEPTH * PIECE_SIZE);
	if (!memory) /* others need less */
		return transfer_refuse(t, "mmap", SIDE_NONE, errno);
	int r = with_buffers(&d, memory);
	io_free(memory, PIECES_DEPTH * PIECE_SIZE);
	return r;
}

static int copy(struct transfer *t)
{
	if (!t->src_positional || !t->dst_positional)
		return transfer_refuse(t, NULL, SIDE_BOTH, ESPIPE);
	if (ring_missing)
		return transfer_refuse(t, NULL, SIDE_BOTH, ENOSYS);
	int src = fcntl(t->src, F_GETFL), dst = fcntl(t->dst, F_GETFL);
	if (src < 0 || dst < 0)
		return transfer_fail(t, "fcntl(F_GETFL)", src < 0 ? SIDE_SRC : SIDE_DST, -errno);
	if (fcntl(t->src, F_SETFL, src | O_DIRECT) < 0)
		return transfer_judge(t, "fcntl(O_DIRECT)", SIDE_SRC);
	int r = fcntl(t->dst, F_SETFL, dst | O_DIRECT) < 0
		    ? transfer_judge(t, "fcntl(O_DIRECT)", SIDE_DST)
		    : with_flags(t);
	fcntl(t->src, F_SETFL, src);
	fcntl(t->dst, F_SETFL, dst);
	return r;
}

static const char *probe(void)
{
	struct ring *ring = ring_open(1, NULL, 0);
	if (!ring)
		return ring_missing ? ring_missing : "the kernel, or a sandbox, refuses io_uring";
	ring_close(ring);
	return NULL;
}

const struct engine engine_direct = {
    .name = "direct", .falls_back = true, .copy = copy, .probe = probe};
