/* SPDX-License-Identifier: MIT
 *
 * The engine contract. An engine is one kernel mechanism that moves a range of bytes between two
 * descriptors. It opens no file, closes none that the caller opened, prints nothing, never exits,
 * and calls no other engine. A new engine is one file, its declaration here, and its row in
 * engine.c.
 */
#ifndef ENGINES_ENGINE_H
#define ENGINES_ENGINE_H

#include "fcopy.h"
#include "io/io.h"

/* A transfer is a range of bytes being copied from one descriptor to another: the argument of an
 * engine. These functions split it into chunks, account for moved bytes, and classify errno values.
 */

#define TRANSFER_TO_EOF INT64_MAX /* transfer.end: until the source ends */

/* The most that one call inside the kernel may move: progress, cancellation and rate limits act
 * between calls. */
#define ENGINE_CHUNK ((size_t)16 << 20)

enum side { SIDE_NONE, SIDE_SRC, SIDE_DST, SIDE_BOTH };

/* Shared by all transfers of one copy, also by several threads. */
struct monitor {
	struct fcopy_progress *progress; /* may be NULL */
	uint64_t limit_rate;             /* bytes per second; 0: no limit */
	uint64_t moved;                  /* bytes moved by all threads; atomic */
	double start; /* io_now() at the start, moved forward by stalls; atomic */
};

/* What an engine keeps between its calls, for many extents or files. */
struct kept;

/* What readwrite does with blocks of zeros. */
enum zeros { ZEROS_WRITE, ZEROS_SKIP /* the destination has no data there */, ZEROS_PUNCH };

/* Only an engine, or ranges_run(), changes `offset`: the bytes before it are in dst, in order. The
 * last four members mean something only after a failure or RESULT_NEXT. */
struct transfer {
	int src, dst;
	bool src_positional; /* use explicit offsets; otherwise the descriptor's file offset */
	bool dst_positional;
	off_t offset; /* end of the finished prefix, whatever an engine returned */
	off_t end;    /* stop here, or earlier if the source ends */
	off_t size;   /* st_size of a regular source when it was opened; 0: unknown */
	bool exact;   /* for readwrite: a read that ends at `size` with room left is the end */
	bool fresh;   /* dst was empty before the copy; for reflink only */
	bool ended;   /* the engine knows that the source ends at offset */
	size_t buffer_size;  /* bytes per call (splice: the pipe's size); 0: the engine's default */
	enum zeros zeros;    /* for readwrite */
	struct ahead *ahead; /* of a regular source; NULL: rely on the kernel's readahead */
	void *buffer;        /* buffer_size bytes; NULL: the engine allocates its own */
	struct kept **kept;  /* what the engine keeps for its next call, see engine.h; or NULL */
	uint64_t *sum;       /* for readwrite: sum_add() of the written bytes; NULL: not needed */
	struct monitor *monitor; /* may be NULL */
	struct io io;
	/* Set by ranges_run, unused by engines: the number of threads, the bytes that a thread
	 * takes at a time, and what they copied while all of them were at work: without their
	 * start, without the first use of each buffer and without the wait for the last one. 0:
	 * they never were. */
	unsigned threads;
	size_t piece;
	off_t steady_bytes;
	double steady_seconds;

	const char *call;      /* after a failure or RESULT_NEXT: the system call, or NULL */
	const char *operation; /* ... what the call was part of, or NULL */
	enum side side;        /* ... the descriptor that it failed on */
	int refusal;           /* ... after RESULT_NEXT: its errno, never 0 */
};

/* Reads ahead of a sequential reader that waits for its storage. The kernel's own readahead is one
 * request of 128 KiB at a time on FUSE, and little more on many disks. Where the data is cached, or
 * the storage is as fast as the CPU, nothing is done. */

struct ahead {
	off_t most;   /* bytes in the page cache that are not copied yet, at most; 0: do nothing */
	off_t window; /* the same now: it doubles while the reader waits; 0: it did not wait */
	off_t done;   /* up to here the kernel was asked to read */
	double wall;  /* io_now() at the last look; 0: there was none */
	double idle;  /* seconds that the reader had waited for something else until then */
	double cpu;   /* seconds of this thread on a CPU until then */
	double runnable; /* ... and in the run queue; negative: not asked */
};

/* The reader begins, or continues after a pause that must not count. idle: the seconds that it has
 * waited for something else than the storage so far, such as a socket. */
void ahead_start(struct ahead *, double idle);

/* The reader has copied up to `at`, and will read up to `end`. Asks the kernel to read what follows
 * if the reader has waited most of the time since the last look. Changes nothing else. */
void ahead_look(struct ahead *, double idle, int fd, off_t at, off_t end);

/* One of several readers is about to read this range. Asks the kernel to read it at once if the
 * reader before them has waited. */
void ahead_request(const struct ahead *, int fd, off_t from, off_t to);

/* Returns how many bytes to ask for next: at most `most`, fewer near the end or under a rate limit,
 * 0 at the end. */
size_t transfer_chunk(const struct transfer *t, size_t most);

/* Accounts for n moved bytes and sleeps to keep the rate limit. Returns 0, or -EINTR if cancelled.
 * transfer_advance also adds n to t->offset; engines whose pieces end out of order use
 * transfer_account. */
int transfer_account(struct transfer *t, size_t n);
int transfer_advance(struct transfer *t, size_t n);
/* Accounts for n zeros that were written in place of a hole; transfer_skip accounts for the hole.
 */
int transfer_pace(struct transfer *t, size_t n);

/* Sets t->offset to `offset` without moved bytes, after a hole or a clone: no rate limit applies.
 */
void transfer_skip(struct transfer *t, off_t offset);

/* Call with errno after `call` failed on `side`. Returns 0: call again; RESULT_NEXT or -errno:
 * return that. Waits for a stream that is not ready. */
int transfer_judge(struct transfer *t, const char *call, enum side side);

/* Records a failure that no other engine could avoid. Returns r, which is -errno. */
int transfer_fail(struct transfer *t, const char *call, enum side side, int r);

/* Records a refusal. err must not be 0; call is NULL if the engine refuses before any call. Returns
 * RESULT_NEXT. */
int transfer_refuse(struct transfer *t, const char *call, enum side side, int err);

/* After `call` reported the end of the source: checks it by a read. Files of procfs and FUSE may
 * have more bytes than st_size, which some calls believe, and splice(2) stops at TCP urgent data.
 * Returns 0: the source has ended; RESULT_NEXT: `call` cannot read on; or -errno. */
int transfer_end(struct transfer *t, const char *call);

/* The offset for a pread or pwrite of this transfer. */
static inline off_t transfer_src_at(const struct transfer *t)
{
	return t->src_positional ? t->offset : IO_AT_POSITION;
}

static inline off_t transfer_dst_at(const struct transfer *t)
{
	return t->dst_positional ? t->offset : IO_AT_POSITION;
}

struct engine {
	const char *name;
	/* Several threads may copy ranges of one file: the engine uses explicit offsets on both
	 * sides and changes nothing else of the descriptors. */
	bool positional;
	/* The engine writes from the source's pages. If the source is truncated during the copy,
	 * the kernel may write zeros for the bytes that are gone. */
	bool leaves_zeros;
	/* Copies [offset, end) of the transfer, whose offset is the end of the finished prefix
	 * afterwards, whatever is returned, and nothing is in flight any more:
	 *   0            the range is done, or the source ended
	 *   RESULT_NEXT  unsupported for this pair of descriptors; another engine may continue at
	 *                offset; call, side and refusal (never 0) say why
	 *   -errno       a real failure; call and side name what failed */
	int (*copy)(struct transfer *);
	/* Returns why the running kernel or this build lacks the engine, as a static string, or
	 * NULL. The pointer is NULL if the engine is always there. */
	const char *(*probe)(void);
};

extern const struct engine engine_readwrite, engine_sendfile, engine_splice, engine_copy_file_range,
    engine_mmap, engine_direct, engine_reflink;

/* All engines; NULL ends the table. */
extern const struct engine *const engine_table[];

/* Frees what transfers with this t->kept have left there, and sets it to NULL. */
void engine_free_kept(struct kept **);

/* Returns the engine of that name, or NULL. */
const struct engine *engine_find(const char *name);

#endif
