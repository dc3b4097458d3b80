/* SPDX-License-Identifier: MIT
 *
 * Copies a file in pieces through io_uring. Up to PIECES_DEPTH pieces are in flight at once; each
 * has a buffer, is read into it, and is then written from it:
 *
 *    source   |aaaaaaaa|bbbbbbbb|cccccccc|dddddddd|                      |
 *             0        1        2        3        4 MiB ^ next           ^ size
 *             written  reading  writing  read, ended short
 *
 *             |--------|                       finished prefix: up to the first byte not written
 *
 * Pieces end in any order. The prefix is therefore known only when all of them have ended: it stops
 * at the first piece that is not written completely, here b, although parts of c are on the
 * storage. That is harmless: the next engine writes the same bytes there again, or the commit
 * truncates.
 */
#ifndef ENGINES_PIECES_H
#define ENGINES_PIECES_H

#include "engine.h"
#include "io/ring.h"

#define PIECES_DEPTH 16
#define PIECE_SIZE   ((size_t)1 << 20)

struct piece {
	bool busy;    /* in flight */
	bool writing; /* otherwise reading */
	off_t at;
	size_t want; /* bytes to read */
	size_t have; /* bytes read */
	size_t put;  /* bytes written */
	char *buffer;
};

struct pieces {
	struct transfer *t;
	struct ring *ring;
	size_t align; /* of every offset, length and address, in bytes */
	off_t next;   /* where the next piece starts, or where the prefix ends if that is before */
	off_t size;   /* of the source at the start; only one piece at a time reads past it */
	off_t grown;  /* its size after the last read that ended inside a block */
	bool ended;   /* the source ended: start no more pieces */
	bool pads;    /* the last block is written whole; otherwise its bytes are left in tail */
	char *tail;   /* bytes of a partial last block; after pieces_run those at t->offset */
	off_t tail_at;
	size_t tail_size;
	int result;    /* of the first failure; not 0: start no more pieces */
	unsigned busy; /* pieces in flight */
	struct piece piece[PIECES_DEPTH];
};

/* Copies until the end, or until all pieces in flight have ended after a failure. Returns what an
 * engine returns. */
int pieces_run(struct pieces *);

#endif
