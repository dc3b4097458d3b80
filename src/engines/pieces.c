/* SPDX-License-Identifier: MIT
 * What becomes of a piece when its read or write comes home: short, at the end of the source, or
 * failed.
 */
#define _GNU_SOURCE
#include "pieces.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) / align * align;
}

static void submit(struct pieces *d, struct piece *p)
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
static void start(struct pieces *d)
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
		*p = (struct piece){.busy = true, .at = d->next, .want = want, .buffer = p->buffer};
		d->next += (off_t)want;
		d->busy++;
		submit(d, p);
	}
}

static void finish(struct pieces *d, struct piece *p)
{
	p->busy = false;
	d->busy--;
}

/* The piece goes no further: the first one to fail gives the result. */
static void fail(struct pieces *d, struct piece *p, int r)
{
	if (d->result == 0)
		d->result = r;
	if (p->at + (off_t)p->put < d->next)
		d->next = p->at + (off_t)p->put;
	finish(d, p);
}

/* A failed operation: again, or the end of the piece. */
static void judge(struct pieces *d, struct piece *p, int err)
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

static void write_piece(struct pieces *d, struct piece *p)
{
	memset(p->buffer + p->have, 0, round_up(p->have, d->align) - p->have);
	p->writing = true;
	submit(d, p);
}

static void end_piece(struct pieces *d, struct piece *p)
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
static void end_of_source(struct pieces *d, struct piece *p, size_t whole)
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
static void after_ragged_read(struct pieces *d, struct piece *p, size_t n)
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

static void after_read(struct pieces *d, struct piece *p, size_t n)
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

static void after_write(struct pieces *d, struct piece *p, size_t n)
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
static off_t prefix(const struct pieces *d)
{
	off_t first = d->next;
	for (unsigned i = 0; i < PIECES_DEPTH; i++)
		if (d->piece[i].busy && d->piece[i].at + (off_t)d->piece[i].put < first)
			first = d->piece[i].at + (off_t)d->piece[i].put;
	return first;
}

int pieces_run(struct pieces *d)
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
