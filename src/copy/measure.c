/* SPDX-License-Identifier: MIT
 * The choice between splice and threads: trials of both, and what follows from them.
 */
#include "measure.h"

#define MIB           ((off_t)1 << 20)
#define TRIAL_LEAST   (12 * MIB) /* a shorter range is not worth a trial */
#define PIECE_LEAST   (4 * MIB)  /* below, the start of the threads shows */
#define PIECE_MOST    (32 * MIB)
#define SEGMENT       (64 * MIB)  /* without a trial; other tasks may need the CPUs after that */
#define INTERVAL      (256 * MIB) /* between two trials, and longer while they agree */
#define INTERVAL_MOST (512 * MIB)
#define SLOWER        1.3 /* threads that take this much longer than in the trial are tried again */
#define THREADS_GAIN  0.85 /* threads need twice the CPU time: they have to save 15 % */

static off_t measure_min(off_t a, off_t b)
{
	return a < b ? a : b;
}

static bool may_try(const struct measure *m, off_t left)
{
	return m->threads > 1 && m->settled <= 0 && left >= TRIAL_LEAST;
}

bool measure_asks(const struct measure *m, off_t left)
{
	return m->pieces == 0 &&
	       (may_try(m, left) || (m->way == WAY_THREADS && left >= PIECE_LEAST));
}

/* In a large file threads have to win twice, because a piece of splice may have been disturbed. */
static void start_trial(struct measure *m, off_t left)
{
	off_t piece = left / 16 / MIB * MIB;
	m->piece = piece < PIECE_LEAST ? PIECE_LEAST : measure_min(piece, PIECE_MOST);
	m->pieces = piece > PIECE_LEAST ? 4 : 2;
	m->cost[WAY_SPLICE] = m->cost[WAY_THREADS] = 0;
}

struct choice measure_choose(struct measure *m, off_t left, unsigned idle)
{
	if (measure_asks(m, left)) {
		if (idle < 2) {
			m->way = WAY_SPLICE;
			m->settled = SEGMENT;
		} else if (may_try(m, left)) {
			start_trial(m, left);
		}
	}
	if (left < PIECE_LEAST)
		return (struct choice){.way = WAY_SPLICE, .size = left};
	if (m->pieces == 0)
		return (struct choice){.way = m->way, .size = measure_min(left, SEGMENT)};
	return (struct choice){.way = m->pieces % 2 ? WAY_THREADS : WAY_SPLICE,
			       .size = measure_min(left, m->piece),
			       .trial = true};
}

/* The next trial follows later if this one has only confirmed the one before. */
static void settle(struct measure *m, enum way way)
{
	bool same = m->interval > 0 && m->way == way;
	m->interval = same ? measure_min(2 * m->interval, INTERVAL_MOST) : INTERVAL;
	m->settled = m->interval;
	m->way = way;
	m->pieces = 0;
}

void measure_note(struct measure *m, const struct choice *choice, off_t bytes, double seconds)
{
	if (bytes <= 0)
		return;
	double *cost = &m->cost[choice->way], now = seconds / (double)bytes;
	m->settled -= bytes;
	if (!choice->trial) {
		if (choice->way == WAY_THREADS && now > *cost * SLOWER)
			m->settled = 0;
		return;
	}
	if (*cost == 0 || now < *cost)
		*cost = now;
	m->pieces--;
	if (choice->way == WAY_SPLICE)
		return;
	/* Threads have to win after each turn; splice has won after one. */
	if (m->cost[WAY_THREADS] > m->cost[WAY_SPLICE] * THREADS_GAIN)
		settle(m, WAY_SPLICE);
	else if (m->pieces == 0)
		settle(m, WAY_THREADS);
}
