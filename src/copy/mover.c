/* SPDX-License-Identifier: MIT
 * Implements mover.h: the order of the engines, the sizes from which each pays, and the trials of
 * splice and threads.
 */
#include "mover.h"

#include <sys/param.h>

#define MIB              ((off_t)1 << 20)
#define AHEAD_SIZE       (16 * MIB)          /* allocated at a time for a stream */
#define SPLICE_SIZE      (2 * MIB)           /* below, making the pipe costs more than it saves */
#define WAITING_SIZE     (4 * MIB)           /* for helpers, if the reader waits */
#define HELPED_SIZE      (64 * MIB)          /* then the helpers of a tree may have left */
#define BUFFER_SIZE      ((size_t)256 << 10) /* of one thread alone, and of its pipe */
#define WAITING_BUFFER   ((size_t)128 << 10) /* ... while SRC is read ahead */
#define READERS          4                   /* tried first if the reader waits */
#define READERS_MAX      8                   /* ... and then */
#define TRIAL_MIN        (32 * MIB)          /* a shorter range is not worth a trial */
#define WAITS_MIN        (8 * MIB)           /* the same if the reader waits */
#define PIECE_MIN        (4 * MIB)           /* below, the start of the threads shows */
#define SPLICE_MIN       (2 * MIB)           /* which splice copies in a trial, at least */
#define PIECE_MAX        (16 * MIB)
#define THREADS_START    (4 * MIB)   /* which they copy before all of them are at work */
#define BUSY_SEGMENT     (32 * MIB)  /* by splice if no CPU was idle */
#define SEGMENT_SPLICE   (64 * MIB)  /* without a trial; idle threads of a tree may join after it */
#define SEGMENT_THREADS  (128 * MIB) /* the same; other tasks may need the CPUs after it */
#define SEGMENT_DOUBLED  (16 * MIB)  /* after which the larger number of threads is judged */
#define INTERVAL         (256 * MIB) /* after a trial that splice won, and longer while they agree */
#define INTERVAL_MAX     (512 * MIB)
#define INTERVAL_THREADS (1024 * MIB) /* after one that threads won: SLOWER notices a change */
#define SLOWER           1.3 /* threads that take this much longer than in the trial are tried again */
#define THREADS_GAIN     0.85 /* threads need more CPU time: they have to save 15 % */

static bool mover_can(const struct mover_state *s, enum mover kind)
{
	return !(s->refused & 1u << kind);
}

/* Only read and write can look for zeros, and do uncached I/O. */
static bool only_readwrite(const struct mover_facts *f)
{
	return f->zeros || f->uncached;
}

static bool goes_direct(const struct mover_facts *f, const struct mover_state *s, off_t size)
{
	return f->direct && mover_can(s, MOVER_DIRECT) &&
	       (f->uncached || size >= MOVER_DIRECT_SIZE);
}

/* Has a range of this size helpers now, or will helpers be faster whenever they come? */
static bool gets_help(const struct mover_facts *f, const struct mover_now *now, off_t size)
{
	if (!f->helped)
		return false;
	return now->waits ? size >= WAITING_SIZE : size >= MOVER_PARALLEL_SIZE && now->idle_threads;
}

static struct move by_readwrite(const struct mover_facts *f, const struct mover_now *now,
				off_t size, unsigned threads)
{
	struct move m = {MOVER_READWRITE, .size = size, .threads = threads, .buffer = BUFFER_SIZE};
	if (threads > 1 || gets_help(f, now, size))
		m.buffer = MOVER_THREAD_BUFFER;
	return m;
}

/* The mode's one engine moves every byte. */
static struct move next_of_mode(const struct mover_facts *f, const struct mover_range *x)
{
	return (struct move){.kind = MOVER_MODE,
			     .size = x->left,
			     .threads = f->mode_threads && !x->rest ? f->threads : 0,
			     .buffer = f->mode_buffer};
}

/* A stream of unknown length, or what follows the expected size. After the first bytes a stream is
 * not small: from then on its blocks are allocated piece by piece. */
static struct move next_of_rest(const struct mover_facts *f, const struct mover_state *s,
				const struct mover_range *x)
{
	const bool plain = f->files || only_readwrite(f) || f->memory;
	struct move m = {.kind = MOVER_READWRITE, .size = x->left};
	if (!plain && !f->to_socket && mover_can(s, MOVER_SPLICE))
		m.kind = MOVER_SPLICE;
	else if (!plain && mover_can(s, MOVER_SENDFILE))
		m.kind = MOVER_SENDFILE;
	if (!plain && f->stored) {
		m.allocate = x->left < x->size;
		m.size = MIN(x->left, m.allocate ? AHEAD_SIZE : MOVER_SMALL_SIZE);
	}
	return m;
}

static bool may_try(const struct mover_state *s, off_t left)
{
	return s->threads > 1 && s->settled <= 0 && left >= (s->waits ? WAITS_MIN : TRIAL_MIN);
}

/* Is it the turn of the threads? Splice has the first turn: by its end, the tasks that the start of
 * this process woke up have finished. */
static bool threads_are_next(const struct mover_state *s, off_t left)
{
	return s->pieces > 0 ? s->pieces % 2 : s->way == WAY_THREADS && !may_try(s, left);
}

/* Do splice and threads compete for the range? */
static bool mover_competes(const struct mover_facts *f, const struct mover_state *s,
			   const struct mover_range *x)
{
	const bool asked = f->asked && x->size >= MOVER_PARALLEL_SIZE;
	return !f->mode && !x->rest && !only_readwrite(f) && mover_can(s, MOVER_SPLICE) && !asked &&
	       x->size >= SPLICE_SIZE;
}

static bool counts_cpus(const struct mover_state *s, off_t left)
{
	return !s->waits && threads_are_next(s, left) && left >= PIECE_MIN;
}

bool mover_asks(const struct mover_facts *f, const struct mover_state *s,
		const struct mover_range *x)
{
	return mover_competes(f, s, x) && counts_cpus(s, x->left);
}

static struct move piece_by(const struct mover_facts *f, const struct mover_state *s,
			    const struct mover_now *now, enum way way, off_t size)
{
	struct move m = {.kind = MOVER_SPLICE,
			 .size = size,
			 .buffer = now->waits ? WAITING_BUFFER : BUFFER_SIZE};
	if (way == WAY_THREADS)
		m = by_readwrite(f, now, size, MAX(s->threads, 1));
	m.piece = true;
	return m;
}

/* The first piece of a trial, or the next one. In a large file both ways have two turns, because
 * other tasks may delay one piece. */
static struct move next_of_trial(const struct mover_facts *f, const struct mover_state *s,
				 const struct mover_now *now, off_t left)
{
	struct mover_state t = *s;
	const off_t part = left / 32 / MIB * MIB;
	if (s->pieces == 0) {
		t.piece = MIN(MAX(part, SPLICE_MIN), PIECE_MAX);
		t.pieces = part > SPLICE_MIN ? 4 : 2;
	}
	const bool threads = threads_are_next(&t, left);
	const off_t size = threads ? MAX(t.piece, PIECE_MIN) + THREADS_START : t.piece;
	struct move m = piece_by(f, s, now, threads ? WAY_THREADS : WAY_SPLICE, MIN(left, size));
	m.trial = true;
	m.starts = s->pieces == 0 ? t.pieces : 0;
	m.trial_piece = t.piece;
	return m;
}

/* The next piece of a range, in the way that was fastest up to now. */
static struct move next_piece(const struct mover_facts *f, const struct mover_state *s,
			      const struct mover_now *now, off_t left)
{
	struct move m;
	if (left < PIECE_MIN)
		return piece_by(f, s, now, WAY_SPLICE, left);
	/* One count of idle CPUs proves little: splice for long only after two busy counts. */
	if (counts_cpus(s, left) && now->idle_cpus < 2) {
		m = piece_by(f, s, now, WAY_SPLICE, MIN(left, s->busy ? BUSY_SEGMENT : PIECE_MIN));
		m.busy = true;
		return m;
	}
	if (s->pieces > 0 || may_try(s, left))
		return next_of_trial(f, s, now, left);
	const off_t segment = s->doubled              ? SEGMENT_DOUBLED
			      : s->way == WAY_THREADS ? SEGMENT_THREADS
						      : SEGMENT_SPLICE;
	return piece_by(f, s, now, s->way, MIN(left, segment));
}

static struct move next_of_cached(const struct mover_facts *f, const struct mover_state *s,
				  const struct mover_range *x, const struct mover_now *now)
{
	if (!mover_competes(f, s, x))
		return by_readwrite(f, now, x->left,
				    x->left >= MOVER_PARALLEL_SIZE ? f->threads : 0);
	struct move m = next_piece(f, s, now, x->left);
	if (x->first && f->looks)
		m.size = MIN(m.size, SPLICE_SIZE);
	else if (gets_help(f, now, x->left))
		m = piece_by(f, s, now, WAY_THREADS,
			     now->waits ? x->left : MIN(x->left, HELPED_SIZE));
	else if (f->helped)
		m.size = MIN(m.size, MOVER_PARALLEL_SIZE);
	if (f->paced && !m.trial)
		m.size = MIN(m.size, MOVER_FLUSHED_SIZE);
	return m;
}

struct move mover_next(const struct mover_facts *f, const struct mover_state *s,
		       const struct mover_range *x, const struct mover_now *now)
{
	if (f->mode)
		return next_of_mode(f, x);
	if (x->rest)
		return next_of_rest(f, s, x);
	if (goes_direct(f, s, x->size))
		return (struct move){.kind = MOVER_DIRECT, .size = x->left};
	if (f->remote && mover_can(s, MOVER_REMOTE))
		return (struct move){.kind = MOVER_REMOTE, .size = x->left};
	return next_of_cached(f, s, x, now);
}

/* A reader that waits may need more threads than there are CPUs. */
static void try_double(struct mover_state *s)
{
	s->doubled = s->waits && s->threads * 2 <= s->most;
	if (s->doubled)
		s->threads *= 2;
}

static void mover_settle(struct mover_state *s, enum way way)
{
	const bool same = s->interval > 0 && s->way == way;
	s->interval = way == WAY_THREADS ? INTERVAL_THREADS : same ? INTERVAL_MAX : INTERVAL;
	s->settled = s->interval;
	s->way = way;
	s->pieces = 0;
	s->doubled = false;
	if (way == WAY_THREADS)
		try_double(s);
}

/* Twice as many threads have copied a segment. */
static void judge_double(struct mover_state *s, double cost)
{
	s->doubled = false;
	if (cost > s->cost[WAY_THREADS] * THREADS_GAIN) {
		s->threads /= 2;
		return;
	}
	s->cost[WAY_THREADS] = cost;
	try_double(s);
}

static void note_trial(struct mover_state *s, enum way way, double cost)
{
	s->pieces--;
	if (s->cost[way] == 0 || cost < s->cost[way])
		s->cost[way] = cost;
	if (way == WAY_SPLICE)
		return;
	const bool wins = s->cost[WAY_THREADS] <= s->cost[WAY_SPLICE] * THREADS_GAIN;
	if (s->pieces == 0)
		mover_settle(s, wins ? WAY_THREADS : WAY_SPLICE);
	else if (s->cost[WAY_THREADS] > s->cost[WAY_SPLICE]) /* no second turn */
		mover_settle(s, WAY_SPLICE);
}

void mover_note(struct mover_state *s, const struct move *m, off_t bytes, double cost)
{
	const enum way way = m->kind == MOVER_SPLICE ? WAY_SPLICE : WAY_THREADS;
	if (!m->piece)
		return;
	s->busy = m->busy;
	if (m->starts > 0) {
		s->pieces = m->starts;
		s->piece = m->trial_piece;
		s->cost[WAY_SPLICE] = s->cost[WAY_THREADS] = 0;
	}
	if (bytes <= 0)
		return;
	s->settled -= bytes;
	if (s->doubled && way == WAY_THREADS)
		judge_double(s, cost);
	else if (m->trial)
		note_trial(s, way, cost);
	else if (way == WAY_THREADS && cost > s->cost[WAY_THREADS] * SLOWER)
		s->settled = 0;
}

void mover_note_waiting(struct mover_state *s, uint64_t memory)
{
	const uint64_t most = memory / MOVER_THREAD_BUFFER;
	s->most = most < READERS_MAX ? (unsigned)most : READERS_MAX;
	if (s->most < READERS)
		return;
	s->waits = true;
	s->threads = READERS;
	s->settled = 0;
}

void mover_note_refusal(struct mover_state *s, enum mover kind)
{
	s->refused |= 1u << kind;
}

const char *mover_plan(const struct mover_facts *f, const struct mover_state *s)
{
	if (f->direct)
		return f->uncached  ? "direct I/O, because of --no-cache"
		       : f->exceeds ? "direct I/O: SRC is not cached, and larger than the memory"
				    : "direct I/O: SRC is not cached, and DST is flushed";
	if (f->remote)
		return "copy_file_range, so that the server can copy";
	if (f->size >= MOVER_PARALLEL_SIZE && !f->one_writer && (only_readwrite(f) || f->asked))
		return "read and write in threads";
	if (only_readwrite(f) || f->size < SPLICE_SIZE)
		return f->zeros      ? "read and write through one buffer, to find zeros"
		       : f->uncached ? "read and write through one buffer, uncached"
				     : "read and write through one buffer: the file is small";
	if (f->helped)
		return "splice, or read and write in the threads that are idle";
	if (f->size < MOVER_CHOICE_SIZE)
		return "splice: the file is too small for threads";
	if (s->threads <= 1)
		return "splice: threads would save too little here";
	return "splice, or read and write in threads where that proves faster";
}
