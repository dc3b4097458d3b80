/* SPDX-License-Identifier: MIT
 * The choice between splice and threads: trials of both, and what follows from them.
 */
#include "measure.h"

#define MIB              ((off_t)1 << 20)
#define TRIAL_LEAST      (32 * MIB) /* a shorter range is not worth a trial */
#define PIECE_LEAST      (4 * MIB)  /* below, the start of the threads shows */
#define PIECE_MOST       (16 * MIB)
#define BUSY_SEGMENT     (32 * MIB) /* by splice if no CPU was idle: that may have been one instant */
#define SEGMENT          (64 * MIB)  /* without a trial; other tasks may need the CPUs after that */
#define INTERVAL         (256 * MIB) /* after a trial that splice won, and longer while they agree */
#define INTERVAL_MOST    (512 * MIB)
#define INTERVAL_THREADS (1024 * MIB) /* after one that threads won: SLOWER notices a change */
#define SLOWER           1.3 /* threads that take this much longer than in the trial are tried again */
#define THREADS_GAIN     0.85 /* threads need more CPU time: they have to save 15 % */

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

/* The ways take turns, threads last. In a large file both have two turns, because a piece may be
 * disturbed. The first piece of all is one of threads whose time does not count. */
static void start_trial(struct measure *m, off_t left)
{
	off_t piece = left / 16 / MIB * MIB;
	m->piece = piece < PIECE_LEAST ? PIECE_LEAST : measure_min(piece, PIECE_MOST);
	m->pieces = (piece > PIECE_LEAST ? 4 : 2) + !m->warm;
	m->cost[WAY_SPLICE] = m->cost[WAY_THREADS] = 0;
}

struct choice measure_choose(struct measure *m, off_t left, unsigned idle)
{
	if (measure_asks(m, left)) {
		if (idle < 2)
			return (struct choice){WAY_SPLICE, measure_min(left, BUSY_SEGMENT), false};
		if (may_try(m, left))
			start_trial(m, left);
	}
	if (left < PIECE_LEAST)
		return (struct choice){.way = WAY_SPLICE, .size = left};
	if (m->pieces == 0)
		return (struct choice){.way = m->way, .size = measure_min(left, SEGMENT)};
	if (!m->warm)
		return (struct choice){
		    .way = WAY_THREADS, .size = measure_min(left, PIECE_LEAST), .trial = true};
	return (struct choice){.way = m->pieces % 2 ? WAY_THREADS : WAY_SPLICE,
			       .size = measure_min(left, m->piece),
			       .trial = true};
}

static void settle(struct measure *m, enum way way)
{
	bool same = m->interval > 0 && m->way == way;
	m->interval = way == WAY_THREADS ? INTERVAL_THREADS : same ? INTERVAL_MOST : INTERVAL;
	m->settled = m->interval;
	m->way = way;
	m->pieces = 0;
}

static void note_trial(struct measure *m, enum way way, double now)
{
	m->pieces--;
	if (!m->warm) {
		m->warm = true;
		return;
	}
	if (m->cost[way] == 0 || now < m->cost[way])
		m->cost[way] = now;
	if (way == WAY_SPLICE)
		return;
	bool wins = m->cost[WAY_THREADS] <= m->cost[WAY_SPLICE] * THREADS_GAIN;
	if (m->pieces == 0)
		settle(m, wins ? WAY_THREADS : WAY_SPLICE);
	else if (m->cost[WAY_THREADS] > m->cost[WAY_SPLICE]) /* no second turn */
		settle(m, WAY_SPLICE);
}

void measure_note(struct measure *m, const struct choice *choice, off_t bytes, double seconds)
{
	if (bytes <= 0)
		return;
	double now = seconds / (double)bytes;
	m->settled -= bytes;
	if (choice->trial)
		note_trial(m, choice->way, now);
	else if (choice->way == WAY_THREADS && now > m->cost[WAY_THREADS] * SLOWER)
		m->settled = 0;
}
