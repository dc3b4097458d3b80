/* SPDX-License-Identifier: MIT
 * O_DIRECT on both sides through io_uring: the device moves the bytes to and from our buffers, the
 * CPU copies none of them and the page cache stays as it was. Several pieces are in flight. The
 * last block of a file is written whole: it has to be cut to t->offset afterwards. A device cannot
 * be cut, so there the bytes of a last block that is not full, and no others, go by write(2).
 */
#define _GNU_SOURCE
#include "engine.h"
#include "io/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH      16
#define PIECE_SIZE ((size_t)1 << 20)

struct piece {
	bool busy, writing;
	off_t at;
	size_t want; /* bytes to read */
	size_t have; /* bytes read */
	size_t put;  /* bytes written */
	char *buffer;
};

struct direct {
	struct transfer *t;
	struct ring *ring;
	size_t align;
	off_t next; /* where the next piece starts */
	off_t size; /* of the source, at the start: behind it only one piece looks for the end */
	bool ended; /* the end was seen: start no more */
	bool pads;  /* the destination is a file: behind its end there is nothing to lose */
	char *tail; /* what is left to write where it is not, */
	size_t tail_size;
	int result;    /* the first failure: start no more */
	unsigned busy; /* pieces in flight */
	struct piece piece[DEPTH];
};

static size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) / align * align;
}

static void submit(struct direct *d, struct piece *p)
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

/* Starts a piece in each free buffer. */
static void start(struct direct *d)
{
	for (unsigned i = 0; i < DEPTH && !d->ended && !d->result; i++) {
		struct piece *p = &d->piece[i];
		size_t want = transfer_chunk(d->t, PIECE_SIZE);
		off_t left = d->t->end - d->next;
		if (left <= 0 || (d->next >= d->size && d->busy > 0))
			return;
		if (p->busy)
			continue;
		want = round_up((off_t)want < left ? want : (size_t)left, d->align);
		*p = (struct piece){.busy = true, .at = d->next, .want = want, .buffer = p->buffer};
		d->next += (off_t)want;
		d->busy++;
		submit(d, p);
	}
}

static void finish(struct direct *d, struct piece *p)
{
	p->busy = false;
	d->busy--;
}

/* The piece goes no further: the first one to fail gives the result. */
static void fail(struct direct *d, struct piece *p, int r)
{
	if (d->result == 0)
		d->result = r;
	if (p->at + (off_t)p->put < d->next)
		d->next = p->at + (off_t)p->put;
	finish(d, p);
}

/* A failed operation: again, or the end of the piece. */
static void judge(struct direct *d, struct piece *p, int err)
{
	if (d->result) {
		fail(d, p, d->result); /* the first failure is the one that is told */
		return;
	}
	errno = err;
	int r = p->writing ? transfer_judge(d->t, "io_uring write", SIDE_DST)
			   : transfer_judge(d->t, "io_uring read", SIDE_SRC);
	if (r)
		fail(d, p, r);
	else
		submit(d, p);
}

static void write_piece(struct direct *d, struct piece *p)
{
	memset(p->buffer + p->have, 0, round_up(p->have, d->align) - p->have);
	p->writing = true;
	submit(d, p);
}

static void end_piece(struct direct *d, struct piece *p)
{
	if (p->have > 0) {
		write_piece(d, p);
		return;
	}
	if (p->at < d->next)
		d->next = p->at;
	finish(d, p);
}

/* The last piece. Its buffer stays as it is: no other piece starts. */
static void end_of_source(struct direct *d, struct piece *p, size_t whole)
{
	d->ended = true;
	if (!d->pads) {
		d->tail = p->buffer + whole;
		d->tail_size = p->have - whole;
		p->have = whole;
	}
	end_piece(d, p);
}

/* A read that ended within a block: at the end of the file, or because it may. A source that has
 * more gets asked for that block again. */
static void after_ragged_read(struct direct *d, struct piece *p, size_t n)
{
	size_t whole = p->have / d->align * d->align;
	if (p->at + (off_t)p->have >= lseek(d->t->src, 0, SEEK_END)) {
		end_of_source(d, p, whole);
	} else if (whole > p->have - n) {
		p->have = whole;
		submit(d, p);
	} else {
		fail(d, p, transfer_refuse(d->t, "io_uring read", SIDE_SRC, EINVAL));
	}
}

static void after_read(struct direct *d, struct piece *p, size_t n)
{
	p->have += n;
	d->ended |= n == 0;
	if (n > 0 && p->have % d->align != 0) {
		after_ragged_read(d, p, n);
	} else if (n > 0 && p->have < p->want) {
		submit(d, p);
	} else {
		end_piece(d, p);
	}
}

static void after_write(struct direct *d, struct piece *p, size_t n)
{
	size_t left = p->have - p->put;
	size_t done = n >= left ? left : n / d->align * d->align;
	int stop = transfer_account(d->t, done);
	p->put += done;
	if (p->put < p->have && done > 0) {
		submit(d, p); /* tells the true error, if there is one */
	} else if (p->put < p->have) {
		fail(d, p, transfer_fail(d->t, "io_uring write", SIDE_DST, -EIO));
	} else {
		if (p->have < p->want && p->at + (off_t)p->have < d->next)
			d->next = p->at + (off_t)p->have;
		if (stop && d->result == 0)
			d->result = stop;
		finish(d, p);
	}
}

/* The end of the finished prefix: everything before the first unfinished piece. */
static off_t prefix(const struct direct *d)
{
	off_t first = d->next;
	for (unsigned i = 0; i < DEPTH; i++)
		if (d->piece[i].busy && d->piece[i].at + (off_t)d->piece[i].put < first)
			first = d->piece[i].at + (off_t)d->piece[i].put;
	return first;
}

/* Keeps the pieces moving until the end, or until a failure has let all of them come home. */
static int run(struct direct *d)
{
	for (start(d); d->busy > 0; start(d)) {
		unsigned id;
		int n, r = ring_wait(d->ring, &id, &n);
		if (r < 0) {
			d->t->offset = prefix(d);
			return transfer_fail(d->t, "io_uring_enter", SIDE_NONE, r);
		}
		struct piece *p = &d->piece[id];
		if (n < 0)
			judge(d, p, -n);
		else if (p->writing)
			after_write(d, p, (size_t)n);
		else if (d->result)
			fail(d, p, d->result);
		else
			after_read(d, p, (size_t)n);
	}
	d->t->offset = prefix(d);
	return d->result;
}

/* Not by O_DIRECT, which the caller restores; and flushed, so that this block too is where the
 * others are. */
static int write_tail(struct direct *d)
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

static int with_buffers(struct direct *d, char *memory)
{
	d->ring = ring_open(DEPTH, memory, DEPTH * PIECE_SIZE);
	if (!d->ring)
		return transfer_refuse(d->t, "io_uring_setup", SIDE_NONE, errno);
	for (unsigned i = 0; i < DEPTH; i++)
		d->piece[i].buffer = memory + i * PIECE_SIZE;
	d->size = lseek(d->t->src, 0, SEEK_END); /* of a block device, too */
	int r = d->size < 0 ? transfer_fail(d->t, "lseek", SIDE_SRC, -errno) : run(d);
	ring_close(d->ring);
	if (r == 0 && d->tail_size > 0)
		r = write_tail(d);
	return r;
}

static int with_flags(struct transfer *t)
{
	struct stat st;
	if (fstat(t->dst, &st) < 0)
		return transfer_fail(t, "fstat", SIDE_DST, -errno);
	struct direct d = {.t = t,
			   .align = io_direct_align(t->src, t->dst),
			   .next = t->offset,
			   .pads = S_ISREG(st.st_mode)};
	bool aligned = d.align > 0 && t->offset % (off_t)d.align == 0 &&
		       (t->end == TRANSFER_TO_EOF || t->end % (off_t)d.align == 0);
	if (!aligned)
		return transfer_refuse(t, "O_DIRECT", SIDE_BOTH, EINVAL);
	char *memory = io_alloc(DEPTH * PIECE_SIZE);
	if (!memory)
		return transfer_fail(t, "mmap", SIDE_NONE, -errno);
	int r = with_buffers(&d, memory);
	io_free(memory, DEPTH * PIECE_SIZE);
	return r;
}

static int copy(struct transfer *t)
{
	if (!t->src_positional || !t->dst_positional)
		return transfer_refuse(t, NULL, SIDE_BOTH, ESPIPE);
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
