/* SPDX-License-Identifier: MIT
 *
 * Pieces of a file on their way through io_uring, several at once, each read and then written.
 */
#ifndef ENGINES_PIECES_H
#define ENGINES_PIECES_H

#include "engine.h"
#include "io/ring.h"

#define PIECES_DEPTH 16
#define PIECE_SIZE   ((size_t)1 << 20)

struct piece {
	bool busy, writing;
	off_t at;
	size_t want; /* bytes to read */
	size_t have; /* bytes read */
	size_t put;  /* bytes written */
	char *buffer;
};

struct pieces {
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
	struct piece piece[PIECES_DEPTH];
};

/* Keeps the pieces moving until the end, or until a failure has let all of them come home. Returns
 * what an engine returns; t->offset is then the end of the finished prefix. */
int pieces_run(struct pieces *);

#endif
