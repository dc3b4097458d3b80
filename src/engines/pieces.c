/* SPDX-License-Identifier: MIT
 * Implements pieces.h: what follows when a read or a write of a piece ends.
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
