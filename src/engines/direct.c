/* SPDX-License-Identifier: MIT
 * O_DIRECT on both sides through io_uring: the device moves the bytes to and from the engine's
 * buffers, the CPU copies none of them, and the page cache stays as it was. pieces.h shows the
 * pieces in flight. The last block of a file is written whole, so the caller must truncate the
 * destination to t->offset. A device cannot be truncated: write(2) writes its last, partial block.
 */
#include "engine.h"
#include "io/system.h"
#include "pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifdef HAVE_LIBURING

/* Pieces: what follows when a read or a write of one ends. */

static size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) / align * align;
}

static void submit_piece(struct pieces *d, struct piece *p)
{
	unsigned id = (unsigned)(p - d->piece);
	d->t->io.calls++;
	if (p->writing)
		ring_write(d->ring, d->t->dst, p->buffer + p->put,
			   round_up(p->have - p->put, d->align), p->at + (off_t)p->put, id);
	else
		ring_read(d->ring, d->t->src, p->buffer + p->have,
			  round_up(p->want - p->have, d->align), p->at + (off_t)p->have, id);
}

/* Under a rate limit only a tenth of a second's bytes, or one piece, are in flight. */
static bool exceeds_rate(const struct pieces *d, size_t want)
{
	uint64_t rate = d->t->monitor ? d->t->monitor->limit_rate : 0;
	return rate > 0 && d->busy > 0 && (d->busy + 1) * (uint64_t)want > rate / 10;
}

/* Starts a piece in each free buffer. */
static void start_pieces(struct pieces *d)
{
	for (unsigned i = 0; i < PIECES_DEPTH && !d->ended && !d->result; i++) {
		struct piece *p = &d->piece[i];
		size_t want = transfer_chunk(d->t, PIECE_SIZE);
		off_t left = d->t->end - d->next;
		if (left <= 0 || (d->next >= d->size && d->busy > 0))
			return;
		if (p->busy)
			continue;
		want = round_up((off_t)want < left ? want : (size_t)left, d->align);
		if (exceeds_rate(d, want))
			return;
		*p = (struct piece){.busy = true, .at = d->next, .want = want, .buffer = p->buffer};
		d->next += (off_t)want;
		d->busy++;
		submit_piece(d, p);
	}
}

/* Where the prefix ends if all pieces before this one are complete. */
static off_t end_of_piece(const struct piece *p)
{
	return p->at + (off_t)p->put;
}

/* Ends a piece; the first result that is not 0 is that of the copy. */
static void end_piece(struct pieces *d, struct piece *p, int result)
{
	if (p->put < p->want && end_of_piece(p) < d->next)
		d->next = end_of_piece(p);
	if (d->result == 0)
		d->result = result;
	p->busy = false;
	d->busy--;
}

/* Ends a piece with what transfer_fail or transfer_refuse returned: the call is io_uring_enter. */
static void end_failed(struct pieces *d, struct piece *p, int result)
{
	d->t->operation = p->writing ? "io_uring write" : "io_uring read";
	end_piece(d, p, result);
}

static enum side side_of(const struct piece *p)
{
	return p->writing ? SIDE_DST : SIDE_SRC;
}

static void after_failure(struct pieces *d, struct piece *p, int err)
{
	if (d->result) { /* report the first failure only */
		end_piece(d, p, 0);
		return;
	}
	int r;
	errno = err;
	if (err == EAGAIN) /* the kernel lacks a resource for io_uring; plain calls need none */
		r = transfer_refuse(d->t, "io_uring_enter", side_of(p), err);
	else
		r = transfer_judge(d->t, "io_uring_enter", side_of(p));
	if (r)
		end_failed(d, p, r);
	else
		submit_piece(d, p);
}

/* Keeps the tail with the lowest offset: if the source is truncated or extended during the copy,
 * several pieces may end inside a block. The buffer is not used again, because no piece starts. */
static void keep_tail(struct pieces *d, const struct piece *p, size_t whole)
{
	off_t at = p->at + (off_t)whole;
	if (d->tail_size > 0 && d->tail_at < at)
		return;
	d->tail = p->buffer + whole;
	d->tail_at = at;
	d->tail_size = p->have - whole;
}

/* n more bytes were read. A read that ended inside a block was the last of the file, or it was
 * short, or the file has grown since. In the last two cases, read that block again: direct I/O
 * cannot continue inside it. */
static void after_read(struct pieces *d, struct piece *p, size_t n)
{
	p->have += n;
	if (p->at + (off_t)p->have > d->t->end) /* the last block was read whole */
		p->have = (size_t)(d->t->end - p->at);
	off_t at = p->at + (off_t)p->have, end = d->t->end;
	size_t whole = p->have / d->align * d->align;
	bool ragged = whole < p->have;
	if (ragged && at < end && (end = lseek(d->t->src, 0, SEEK_END)) < 0) {
		end_piece(d, p, transfer_fail(d->t, "lseek", SIDE_SRC, -errno));
		return;
	}
	bool last = n == 0 || (ragged && at >= end);
	bool grows = end != d->grown;
	d->grown = ragged ? end : d->grown;
	if (ragged && !last && whole <= p->have - n && !grows) {
		end_failed(d, p, transfer_refuse(d->t, "io_uring_enter", SIDE_SRC, EINVAL));
		return;
	}
	if (!last && (ragged || p->have < p->want)) {
		p->have = whole;
		submit_piece(d, p);
		return;
	}
	d->ended |= last;
	if (ragged && !d->pads) {
		keep_tail(d, p, whole);
		p->have = whole;
	}
	if (p->have == 0) {
		end_piece(d, p, 0);
		return;
	}
	memset(p->buffer + p->have, 0, round_up(p->have, d->align) - p->have);
	p->writing = true;
	submit_piece(d, p);
}

/* n more bytes were written, padding included. */
static void after_write(struct pieces *d, struct piece *p, size_t n)
{
	size_t left = p->have - p->put;
	size_t done = n >= left ? left : n / d->align * d->align;
	int stop = transfer_account(d->t, done);
	p->put += done;
	if (done == left)
		end_piece(d, p, stop);
	else if (done > 0)
		submit_piece(d, p); /* returns the true error, if there is one */
	else
		end_failed(d, p, transfer_fail(d->t, "io_uring_enter", SIDE_DST, -EIO));
}

/* The ring itself failed, which says nothing about the files: end all pieces, refuse. */
static int after_ring_failure(struct pieces *d, int err)
{
	ring_drain(d->ring);
	for (unsigned i = 0; i < PIECES_DEPTH; i++)
		if (d->piece[i].busy)
			end_piece(d, &d->piece[i], 0);
	return d->result ? d->result : transfer_refuse(d->t, "io_uring_enter", SIDE_NONE, err);
}

int pieces_run(struct pieces *d)
{
	for (start_pieces(d); d->busy > 0; start_pieces(d)) {
		unsigned id;
		int n, r = ring_wait(d->ring, &id, &n);
		if (r < 0) {
			d->result = after_ring_failure(d, -r);
			break;
		}
		struct piece *p = &d->piece[id];
		if (n < 0)
			after_failure(d, p, -n);
		else if (p->writing)
			after_write(d, p, (size_t)n);
		else if (d->result)
			end_piece(d, p, 0);
		else
			after_read(d, p, (size_t)n);
	}
	if (d->tail_at != d->next) /* it does not continue the finished prefix */
		d->tail_size = 0;
	d->t->offset = d->next;
	return d->result;
}

/* The engine. */

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
		return "the kernel, or a sandbox, refuses io_uring";
	ring_close(ring);
	return NULL;
}

#else

void engine_free_kept(struct kept **kept)
{
	(void)kept;
}

static int direct_copy(struct transfer *t)
{
	const bool positional = t->src_positional && t->dst_positional;
	return transfer_refuse(t, NULL, SIDE_BOTH, positional ? ENOSYS : ESPIPE);
}

static const char *direct_probe(void)
{
	return "built without liburing";
}

#endif

const struct engine engine_direct = {.name = "direct", .copy = direct_copy, .probe = direct_probe};
