/* SPDX-License-Identifier: MIT
 * Threads are a loop, not an engine: each takes the next piece of the range until no piece is left.
 */
#define _GNU_SOURCE
#include "ranges.h"
#include "cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#define PIECE_SIZE     ((off_t)1 << 20)
#define PIECE_MIN      ((size_t)128 << 10)
#define WRITEBACK_SIZE (FCOPY_THREADS_MAX * PIECE_SIZE) /* threads are rarely this far apart */

struct ranges {
	const struct engine *engine;
	const struct transfer *whole;
	size_t buffer_size; /* of each thread */
	char *buffers;      /* one for each thread */
	unsigned threads;   /* wanted */
	unsigned started;   /* of them, that have taken their buffer */
	unsigned helpers;   /* that have joined */
	off_t piece;        /* bytes that a thread takes at a time */
	bool start_writeback;
	pthread_mutex_t lock;
	unsigned warm;         /* threads that have copied a piece */
	double since;          /* when all were warm; 0: not yet */
	off_t since_next;      /* `next` at that time */
	double until;          /* when the last piece was taken ... */
	off_t until_next;      /* ... and `next` before it was */
	off_t next;            /* where the next piece starts */
	off_t prefix;          /* no piece before this was left unfinished */
	bool stop;             /* a thread failed, or reached the end of the source */
	int result;            /* of the first failure */
	struct transfer first; /* ... and its details */
	uint64_t calls;
};

/* Measures from one piece that is taken to another: at both times the threads are in the middle of
 * their work. */
static void note_steady(struct ranges *r)
{
	if (r->warm < r->threads)
		return;
	r->until = io_now();
	r->until_next = r->next;
	if (r->since == 0) {
		r->since = r->until;
		r->since_next = r->next;
	}
}

/* Takes the next piece; second: the thread has copied its first one. Returns false if nothing is
 * left to do. */
static bool take_piece(struct ranges *r, struct transfer *piece, bool second)
{
	pthread_mutex_lock(&r->lock);
	r->warm += second;
	bool more = !r->stop && r->next < r->whole->end;
	if (more) {
		note_steady(r);
		piece->offset = r->next;
		piece->end = r->whole->end - r->next > r->piece ? r->next + r->piece
								: r->whole->end;
		r->next = piece->end;
	}
	pthread_mutex_unlock(&r->lock);
	return more;
}

/* Starts writeback of finished pieces while the rest is copied. fsync still reports a failed
 * writeback: this call does not clear the error (sync_file_range(2)). */
static void start_range_writeback(const struct ranges *r, off_t at)
{
	off_t done = at - r->whole->offset - WRITEBACK_SIZE;
	if (r->start_writeback && done > 0 && done % WRITEBACK_SIZE == 0)
		sync_file_range(r->whole->dst, at - 2 * WRITEBACK_SIZE, WRITEBACK_SIZE,
				SYNC_FILE_RANGE_WRITE);
}

/* Records a piece that ended early and the engine's result, and stops the other threads. */
static void stop_ranges(struct ranges *r, const struct transfer *piece, int result)
{
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	if (piece->offset < r->prefix)
		r->prefix = piece->offset;
	if (result && !r->result) {
		r->result = result;
		r->first = *piece;
	}
	pthread_mutex_unlock(&r->lock);
}

static void copy_pieces(struct ranges *r, void *buffer)
{
	struct transfer piece = *r->whole;
	piece.io.calls = 0;
	piece.ahead = NULL; /* several threads read at once instead */
	piece.kept = NULL;
	piece.buffer = buffer;
	piece.buffer_size = r->buffer_size;
	for (int taken = 0; take_piece(r, &piece, taken == 1); taken++) {
		start_range_writeback(r, piece.offset);
		if (r->whole->ahead)
			ahead_request(r->whole->ahead, piece.src, piece.offset, piece.end);
		int result = r->engine->copy(&piece);
		if (result || piece.offset < piece.end)
			stop_ranges(r, &piece, result);
	}
	pthread_mutex_lock(&r->lock);
	r->calls += piece.io.calls;
	pthread_mutex_unlock(&r->lock);
}

static void *run_thread(void *arg)
{
	struct ranges *r = arg;
	unsigned number = __atomic_fetch_add(&r->started, 1, __ATOMIC_RELAXED);
	copy_pieces(r, r->buffers + number * r->buffer_size);
	return NULL;
}

void ranges_help(struct ranges *r, void *buffer)
{
	__atomic_fetch_add(&r->helpers, 1, __ATOMIC_RELAXED);
	copy_pieces(r, buffer);
}

size_t ranges_buffer_size(const struct ranges *r)
{
	return r->buffer_size;
}

/* The caller's thread copies too: if a thread cannot be created, there is one thread less, which is
 * not a failure. */
static void run_threads(struct ranges *r, unsigned threads, const struct helpers *helpers)
{
	pthread_t thread[FCOPY_THREADS_MAX];
	unsigned started = 0;
	while (started + 1 < threads && cpus_start_thread(&thread[started], run_thread, r) == 0)
		started++;
	if (helpers)
		helpers->invite(helpers->user, r);
	run_thread(r);
	if (helpers)
		helpers->dismiss(helpers->user, r);
	while (started > 0)
		pthread_join(thread[--started], NULL);
}

/* A piece is one buffer, so that the threads finish at about the same time. Smaller pieces than
 * PIECE_MIN would take the lock too often. */
static off_t piece_size(size_t buffer_size)
{
	bool usual = buffer_size >= PIECE_MIN && buffer_size < (size_t)PIECE_SIZE;
	return usual ? (off_t)buffer_size : PIECE_SIZE;
}

int ranges_run(const struct engine *engine, struct transfer *t, unsigned threads,
	       bool start_writeback, const struct helpers *helpers)
{
	struct ranges r = {.engine = engine,
			   .whole = t,
			   .buffer_size = t->buffer_size ? t->buffer_size : (size_t)PIECE_SIZE,
			   .threads = threads,
			   .piece = piece_size(t->buffer_size),
			   .start_writeback = start_writeback,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .next = t->offset,
			   .prefix = TRANSFER_TO_EOF};
	t->threads = 1;
	t->piece = (size_t)r.piece;
	t->steady_bytes = 0;
	if (!engine->positional)
		return transfer_refuse(t, NULL, SIDE_BOTH, ESPIPE);
	if (threads > SIZE_MAX / r.buffer_size)
		threads = 1;
	r.buffers = t->buffer ? t->buffer : io_alloc(threads * r.buffer_size);
	if (!r.buffers) {
		threads = 1;
		r.buffers = io_alloc(r.buffer_size);
	}
	if (!r.buffers)
		return transfer_fail(t, "mmap", SIDE_NONE, -errno);
	run_threads(&r, threads, helpers);
	if (!t->buffer)
		io_free(r.buffers, threads * r.buffer_size);
	t->offset = r.prefix < r.next ? r.prefix : r.next;
	t->io.calls += r.calls;
	t->threads = r.started + r.helpers;
	t->steady_bytes = r.until_next - r.since_next;
	t->steady_seconds = r.until - r.since;
	if (r.result) {
		t->call = r.first.call;
		t->operation = r.first.operation;
		t->side = r.first.side;
		t->refusal = r.first.refusal;
	}
	return r.result;
}
