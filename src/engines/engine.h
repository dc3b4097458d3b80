/* SPDX-License-Identifier: MIT
 *
 * The engine contract. An engine is one kernel mechanism that moves a range of bytes between two
 * descriptors. It opens no file and closes none, never prints or exits, and knows no other engine.
 */
#ifndef ENGINES_ENGINE_H
#define ENGINES_ENGINE_H

#include "fcopy.h"
#include "io/io.h"

#define TRANSFER_TO_EOF INT64_MAX /* transfer.end: until the source ends */
#define ENGINE_NEXT     1         /* not this pair of descriptors: go on from transfer.offset */

/* In-kernel calls are cut into chunks of this size, so that progress, ^C and limits work. */
#define ENGINE_CHUNK ((size_t)16 << 20)

enum side { SIDE_NONE, SIDE_SRC, SIDE_DST, SIDE_BOTH };

/* What all transfers of one copy share, also from several threads. */
struct monitor {
	struct fcopy_progress *progress; /* may be NULL */
	uint64_t limit_rate;             /* bytes a second; 0: none */
	uint64_t moved;                  /* by all threads; atomic */
	double start; /* io_now() at the start, and later after a stall; atomic */
};

/* What readwrite does with blocks of zeros. */
enum zeros { ZEROS_WRITE, ZEROS_SKIP /* the destination is empty there */, ZEROS_PUNCH };

/* One run of bytes, and how far it got. */
struct transfer {
	int src, dst;
	bool src_positional; /* explicit offsets; otherwise the descriptor's own position */
	bool dst_positional;
	off_t offset; /* end of the finished prefix: true after success, failure and ENGINE_NEXT */
	off_t end;    /* stop here, or earlier if the source ends */
	size_t
	    buffer_size; /* what one call may move (splice: the pipe's size); 0: the engine's own */
	enum zeros zeros; /* readwrite only */
	void *buffer; /* buffer_size bytes to use, page-aligned; NULL: the engine gets its own */
	struct monitor *monitor; /* may be NULL */
	struct io io;            /* cancel flag, timeout, and the count of data calls */

	const char *call; /* after a failure or ENGINE_NEXT: the call */
	enum side side;   /* ... the descriptor that it failed on */
	int refusal;      /* ... and, after ENGINE_NEXT, its errno */
};

struct engine {
	const char *name;
	const char *missing; /* why this build or kernel lacks it; NULL: it does not */
	bool positional;     /* takes explicit offsets on both sides: threads may share a file */
	bool falls_back;     /* may answer ENGINE_NEXT */
	/* Copies [offset, end). 0: done, or the source ended; ENGINE_NEXT; -errno: a real failure.
	 */
	int (*copy)(struct transfer *);
	/* Finds out at run time what `missing` cannot tell; NULL: nothing to find out. */
	const char *(*probe)(void);
};

extern const struct engine engine_readwrite, engine_sendfile, engine_splice, engine_copy_file_range,
    engine_mmap, engine_direct, engine_reflink;

/* The engine of that name, or NULL. */
const struct engine *engine_find(const char *name);

/* For engines only from here on. */

/* How many bytes to ask for next: at most `most`, less near the end or under a rate limit; 0 at
 * the end. */
size_t transfer_chunk(const struct transfer *t, size_t most);

/* Books n bytes as moved and keeps to the rate limit. Returns 0, or -EINTR if cancelled. Advance
 * also moves t->offset; account is for engines whose pieces do not end in order. */
int transfer_account(struct transfer *t, size_t n);
int transfer_advance(struct transfer *t, size_t n);

/* Books that t has got to `offset` without moving a byte: a hole, a clone. No rate limit holds. */
void transfer_skip(struct transfer *t, off_t offset);

/* After `call` failed with errno on `side`: 0 to call again, ENGINE_NEXT or -errno to return. */
int transfer_judge(struct transfer *t, const char *call, enum side side);

/* Notes a failure that is nobody else's to take over. Returns r, a -errno. */
int transfer_fail(struct transfer *t, const char *call, enum side side, int r);

/* After `call` saw the end of the source: is it true? Files of procfs and FUSE may have more bytes
 * than their st_size, which some calls believe. Returns 0, ENGINE_NEXT or -errno. */
int transfer_end(struct transfer *t, const char *call);

/* Notes a refusal with this errno; call NULL: the engine knew without one. Returns ENGINE_NEXT. */
int transfer_refuse(struct transfer *t, const char *call, enum side side, int err);

/* The offset to hand to a pread or pwrite of this transfer. */
static inline off_t transfer_src_at(const struct transfer *t)
{
	return t->src_positional ? t->offset : IO_AT_POSITION;
}

static inline off_t transfer_dst_at(const struct transfer *t)
{
	return t->dst_positional ? t->offset : IO_AT_POSITION;
}

#endif
