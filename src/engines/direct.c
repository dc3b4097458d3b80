/* SPDX-License-Identifier: MIT
 * O_DIRECT on both sides through io_uring: the device moves the bytes to and from the engine's
 * buffers, the CPU copies none of them, and the page cache stays as it was. pieces.h shows the
 * pieces in flight. The last block of a file is written whole, so the caller must truncate the
 * destination to t->offset. A device cannot be truncated: write(2) writes its last, partial block.
 */
#define _GNU_SOURCE
#include "engine.h"
#include "io/system.h"
#include "pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Writes the partial last block without O_DIRECT, which the caller restores, and flushes it, so
 * that this block is on the device like the others. */
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

/* Extends the destination first: a write past the end holds the inode's lock exclusively until it
 * is done (ext4_dio_write_checks, xfs_file_write_checks), so no two would be in flight, and
 * io_uring's threads would spin on the lock. The caller truncates what is too much with the
 * padding. Returns the size before, or -1 if it was not changed. */
static off_t extend_destination(const struct pieces *d)
{
	struct stat st;
	off_t end = d->t->end < d->size ? d->t->end : d->size;
	if (!d->pads || fstat(d->t->dst, &st) < 0 || st.st_size >= end ||
	    io_truncate(d->t->dst, end) < 0) /* then a write reports the reason */
		return -1;
	return st.st_size;
}

/* After a failure: a file written in place must not look complete by its size. */
static void shrink_destination(const struct pieces *d, off_t before)
{
	off_t end = before > d->t->offset ? before : d->t->offset;
	if (before >= 0)
		(void)io_truncate(d->t->dst, end); /* report the first failure, not this one */
}

/* The kernel pins the memory of a ring: that takes milliseconds, and is not done for each extent.
 */
struct kept {
	struct ring *ring;
	char *memory;
};

#define MEMORY (PIECES_DEPTH * PIECE_SIZE)

void engine_free_kept(struct kept **kept)
{
	if (!*kept)
		return;
	ring_close((*kept)->ring);
	io_free((*kept)->memory, MEMORY);
	free(*kept);
	*kept = NULL;
}

/* Returns 0, or a refusal: other engines need less. */
static int direct_open(struct transfer *t, struct kept **kept)
{
	struct kept *k = malloc(sizeof(*k));
	if (!k)
		return transfer_refuse(t, "malloc", SIDE_NONE, errno);
	k->memory = io_alloc(MEMORY);
	if (!k->memory) {
		free(k);
		return transfer_refuse(t, "mmap", SIDE_NONE, errno);
	}
	k->ring = ring_open(PIECES_DEPTH, k->memory, MEMORY);
	if (!k->ring) {
		const int err = errno;
		io_free(k->memory, MEMORY);
		free(k);
		return transfer_refuse(t, "io_uring_setup", SIDE_NONE, err);
	}
	*kept = k;
	return 0;
}

/* Copies with a ring in which nothing is in flight. */
static int direct_run(struct pieces *d, const struct kept *k)
{
	d->ring = k->ring;
	for (unsigned i = 0; i < PIECES_DEPTH; i++)
		d->piece[i].buffer = k->memory + i * PIECE_SIZE;
	d->size = lseek(d->t->src, 0, SEEK_END); /* st_size of a block device is 0 */
	int r = d->size < 0 ? transfer_fail(d->t, "lseek", SIDE_SRC, -errno) : 0;
	off_t before = r == 0 ? extend_destination(d) : -1;
	if (r == 0)
		r = pieces_run(d);
	if (r != 0)
		shrink_destination(d, before);
	if (r == 0 && d->tail_size > 0)
		r = write_tail(d);
	return r;
}

/* O_DIRECT is set on both descriptors. */
static int direct_with_flags(struct transfer *t)
{
	struct stat st;
	if (fstat(t->dst, &st) < 0)
		return transfer_fail(t, "fstat", SIDE_DST, -errno);
	struct pieces d = {.t = t,
			   .align = io_direct_align(t->src, t->dst),
			   .next = t->offset,
			   .pads = S_ISREG(st.st_mode)};
	bool aligned = d.align > 0 && PIECE_SIZE % d.align == 0 && t->offset % (off_t)d.align == 0;
	if (!aligned) {
		t->operation = "O_DIRECT";
		return transfer_refuse(t, NULL, SIDE_BOTH, EINVAL);
	}
	struct kept *own = NULL, **kept = t->kept ? t->kept : &own;
	int r = *kept ? 0 : direct_open(t, kept);
	if (*kept)
		r = direct_run(&d, *kept);
	if (r != 0 || kept == &own) /* the ring itself may have failed */
		engine_free_kept(kept);
	return r;
}

/* On FUSE with direct_io and without asynchronous direct I/O, io_uring continues after a short read
 * or write at the old offset, and reports success (Linux 6.18): the copy would have wrong bytes.
 * FUSE itself may refuse fstatfs(2). */
static bool is_on_fuse(int fd)
{
	const unsigned type = system_type(fd);
	return type == 0 || system_type_has(type, SYSTEM_SERVED);
}

/* Returns 0, RESULT_NEXT or -errno. */
static int direct_set(struct transfer *t, int fd, int flags, enum side side)
{
	while (fcntl(fd, F_SETFL, flags) < 0) {
		int r = transfer_judge(t, "fcntl(O_DIRECT)", side);
		if (r)
			return r;
	}
	return 0;
}

static int direct_copy(struct transfer *t)
{
	if (!t->src_positional || !t->dst_positional)
		return transfer_refuse(t, NULL, SIDE_BOTH, ESPIPE);
	if (ring_missing)
		return transfer_refuse(t, NULL, SIDE_BOTH, ENOSYS);
	bool src_fuse = is_on_fuse(t->src);
	if (src_fuse || is_on_fuse(t->dst)) {
		t->operation = "io_uring on FUSE";
		return transfer_refuse(t, NULL, src_fuse ? SIDE_SRC : SIDE_DST, EOPNOTSUPP);
	}
	int src = fcntl(t->src, F_GETFL), dst = fcntl(t->dst, F_GETFL);
	if (src < 0 || dst < 0)
		return transfer_fail(t, "fcntl(F_GETFL)", src < 0 ? SIDE_SRC : SIDE_DST, -errno);
	int r = direct_set(t, t->src, src | O_DIRECT, SIDE_SRC);
	if (r)
		return r;
	r = direct_set(t, t->dst, dst | O_DIRECT, SIDE_DST);
	if (r == 0)
		r = direct_with_flags(t);
	fcntl(t->src, F_SETFL, src);
	fcntl(t->dst, F_SETFL, dst);
	return r;
}

static const char *direct_probe(void)
{
	struct ring *ring = ring_open(1, NULL, 0);
	if (!ring)
		return ring_missing ? ring_missing : "the kernel, or a sandbox, refuses io_uring";
	ring_close(ring);
	return NULL;
}

const struct engine engine_direct = {.name = "direct", .copy = direct_copy, .probe = direct_probe};
