/* SPDX-License-Identifier: MIT
 * The choice between splice and threads: trials of both, and what follows from them.
 */
#include "measure.h"

#include <sys/param.h>

#define MIB              ((off_t)1 << 20)
#define TRIAL_MIN        (32 * MIB) /* a shorter range is not worth a trial */
#define WAITS_MIN        (8 * MIB)  /* the same if the reader waits */
#define PIECE_MIN        (4 * MIB)  /* below, the start of the threads shows */
#define SPLICE_MIN       (2 * MIB)  /* which splice copies in a trial, at least */
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

static bool may_try(const struct measure *m, off_t left)
{
	return m->threads > 1 && m->settled <= 0 && left >= (m->waits ? WAITS_MIN : TRIAL_MIN);
}

/* Is it the turn of the threads? Splice has the first turn: by its end, the tasks that the start of
 * this process woke up have finished. */
static bool threads_are_next(const struct measure *m, off_t left)
{
	return m->pieces > 0 ? m->pieces % 2 : m->way == WAY_THREADS && !may_try(m, left);
}

bool measure_asks(const struct measure *m, off_t left)
{
	return !m->waits && threads_are_next(m, left) && left >= PIECE_MIN;
}

/* In a large file both ways have two turns, because other tasks may delay one piece. */
static void start_trial(struct measure *m, off_t left)
{
	off_t piece = left / 32 / MIB * MIB;
	m->piece = piece < SPLICE_MIN ? SPLICE_MIN : MIN(piece, PIECE_MAX);
	m->pieces = piece > SPLICE_MIN ? 4 : 2;
	m->cost[WAY_SPLICE] = m->cost[WAY_THREADS] = 0;
}

/* One count of idle CPUs proves little: choose splice for long only after two busy counts. */
static struct choice choose_when_busy(struct measure *m, off_t left)
{
	off_t size = m->busy ? BUSY_SEGMENT : PIECE_MIN;
	m->busy = true;
	return (struct choice){.way = WAY_SPLICE, .size = MIN(left, size)};
}

struct choice measure_choose(struct measure *m, off_t left, unsigned idle)
{
	if (left < PIECE_MIN)
		return (struct choice){.way = WAY_SPLICE, .size = left};
	if (measure_asks(m, left) && idle < 2)
		return choose_when_busy(m, left);
	m->busy = false;
	const off_t segment = m->doubled              ? SEGMENT_DOUBLED
			      : m->way == WAY_THREADS ? SEGMENT_THREADS
						      : SEGMENT_SPLICE;
	if (m->pieces == 0 && may_try(m, left))
		start_trial(m, left);
	if (m->pieces == 0)
		return (struct choice){.way = m->way, .size = MIN(left, segment)};
	bool threads = threads_are_next(m, left);
	off_t size = threads ? MAX(m->piece, PIECE_MIN) + THREADS_START : m->piece;
	return (struct choice){
	    .way = threads ? WAY_THREADS : WAY_SPLICE, .size = MIN(left, size), .trial = true};
}

/* A reader that waits may need more threads than there are CPUs. */
static void try_double(struct measure *m)
{
	m->doubled = m->waits && m->threads * 2 <= m->most;
	if (m->doubled)
		m->threads *= 2;
}

static void settle(struct measure *m, enum way way)
{
	bool same = m->interval > 0 && m->way == way;
	m->interval = way == WAY_THREADS ? INTERVAL_THREADS : same ? INTERVAL_MAX : INTERVAL;
	m->settled = m->interval;
	m->way = way;
	m->pieces = 0;
	m->doubled = false;
	if (way == WAY_THREADS)
		try_double(m);
}

/* Twice as many threads have copied a segment. */
static void judge_double(struct measure *m, double cost)
{
	m->doubled = false;
	if (cost > m->cost[WAY_THREADS] * THREADS_GAIN) {
		m->threads /= 2;
		return;
	}
	m->cost[WAY_THREADS] = cost;
	try_double(m);
}

static void note_trial(struct measure *m, enum way way, double cost)
{
	m->pieces--;
	if (m->cost[way] == 0 || cost < m->cost[way])
		m->cost[way] = cost;
	if (way == WAY_SPLICE)
		return;
	bool wins = m->cost[WAY_THREADS] <= m->cost[WAY_SPLICE] * THREADS_GAIN;
	if (m->pieces == 0)
		settle(m, wins ? WAY_THREADS : WAY_SPLICE);
	else if (m->cost[WAY_THREADS] > m->cost[WAY_SPLICE]) /* no second turn */
		settle(m, WAY_SPLICE);
}

void measure_note(struct measure *m, const struct choice *choice, off_t bytes, double cost)
{
	if (bytes <= 0)
		return;
	m->settled -= bytes;
	if (m->doubled && choice->way == WAY_THREADS)
		judge_double(m, cost);
	else if (choice->trial)
		note_trial(m, choice->way, cost);
	else if (choice->way == WAY_THREADS && cost > m->cost[WAY_THREADS] * SLOWER)
		m->settled = 0;
}
