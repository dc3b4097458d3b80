/* SPDX-License-Identifier: MIT
 * How many threads copy a tree: the rule of pool.h.
 */
#include "pool.h"

#define MOSTLY     0.5  /* of the time of the threads: they wait */
#define LITTLE     0.25 /* ... they do not */
#define ALONE      0.5  /* threads that are on a CPU or want one: none has a lock for long */
#define LEAP       8    /* times as many threads at once, at most */
#define FADES      0.9  /* of the looks before, at each look */
#define BEYOND     1.2  /* of the step: more than so many threads can gain */
#define GAIN       0.5  /* of the step, which more threads have to reach */
#define GAIN_MOST  1.5  /* ... but no more than that */
#define KEEPS      0.95 /* of the speed, which fewer threads may not fall below */
#define FEW        4    /* fewer are not tried, unless it started with them */
#define PAUSE      8    /* looks, after the first trial that failed */
#define PAUSE_MOST 256

void tuner_start(struct tuner *t, unsigned threads, unsigned limit)
{
	*t = (struct tuner){.threads = threads,
			    .start = threads,
			    .limit = limit > threads ? limit : threads,
			    .pause = PAUSE,
			    .reason = TUNER_CPUS};
}

/* Sets the number of threads. before: the number to return to if it fails; 0: it is no trial. */
static bool tuner_set(struct tuner *t, unsigned threads, unsigned before)
{
	t->before = before;
	t->threads = threads;
	return true;
}

/* Are more threads faster by more than their number? What was measured before them was a moment in
 * which the storage was slow. */
static bool tuner_exceeded(const struct tuner *t, double rate)
{
	return t->threads > t->before && rate * t->before > BEYOND * t->rate * t->threads;
}

/* Has the trial reached what it had to? */
static bool tuner_succeeded(const struct tuner *t, double rate)
{
	if (t->threads < t->before)
		return rate >= t->rate * KEEPS;
	const double gain = GAIN * (t->threads - t->before) / t->before;
	return rate >= t->rate * (1 + (gain < GAIN_MOST ? gain : GAIN_MOST));
}

static void tuner_wait(struct tuner *t)
{
	t->paused = t->pause;
	t->pause = t->pause < PAUSE_MOST ? 2 * t->pause : PAUSE_MOST;
}

/* After more threads have failed, fewer ones are tried, unless a trial has shown that they are
 * slower; not below FEW, or the number at the start. */
static bool tuner_try_fewer(struct tuner *t)
{
	unsigned fewer = t->threads / 2;
	if (t->threads > t->start && fewer < t->start)
		fewer = t->start;
	if ((fewer < FEW && fewer < t->start) || t->threads <= t->proven)
		return false;
	return tuner_set(t, fewer, t->threads);
}

/* The trial has failed. After more threads have failed, the way back leads over fewer ones. */
static bool tuner_return(struct tuner *t, double rate)
{
	const bool more = t->threads > t->before;
	tuner_wait(t);
	if (!more) {
		t->proven = t->before;
		return tuner_set(t, t->before, 0);
	}
	t->reason = TUNER_NO_GAIN;
	t->failed = true;
	t->rate = rate;
	return tuner_try_fewer(t) || tuner_set(t, t->before, 0);
}

/* So many threads that as many as at the start are on a CPU. running: of the threads, those that
 * are there or want to be. */
static unsigned tuner_wanted(const struct tuner *t, double running, unsigned most)
{
	const double wanted = running > 0 ? t->threads * t->start / running : most;
	return wanted < most ? (unsigned)wanted : most;
}

/* The threads wait, and no trial has just failed. running: as above. */
static bool tuner_try(struct tuner *t, double running, bool queued)
{
	if (t->paused > 0)
		return false;
	if (t->threads >= t->limit) {
		t->reason = t->limit > t->start ? TUNER_LIMIT : t->reason;
		if (t->threads <= t->proven || !tuner_try_fewer(t))
			return false;
		return true;
	}
	unsigned more = 2 * t->threads;
	if (!t->failed && running < ALONE)
		more = tuner_wanted(t, running, LEAP * t->threads);
	return queued && tuner_set(t, more < t->limit ? more : t->limit, t->threads);
}

/* Adds the look to those before. Do the threads mostly wait for the storage? In a single look they
 * may have waited for one of them that had a lock, but no CPU (on a busy host for 5 to 90 ms), or
 * for XFS, which after a removal makes all wait for 100 ms: so the look before must say it, too. */
static bool tuner_waits(struct tuner *t, double running)
{
	const bool before = t->waits;
	t->waits = t->sum.waited >= MOSTLY * t->sum.busy;
	t->recent.busy = FADES * t->recent.busy + t->sum.busy;
	t->recent.waited = FADES * t->recent.waited + t->sum.waited;
	return before && t->waits &&
	       (t->recent.waited >= MOSTLY * t->recent.busy || (!t->failed && running < ALONE));
}

static bool tuner_look(struct tuner *t, double rate, bool queued)
{
	const double waits = t->sum.waited / t->sum.busy;
	const double running = t->threads * (1 - waits);
	const bool mostly = tuner_waits(t, running);
	t->paused -= t->paused > 0;
	if (t->before > 0) {
		if (!t->doubted && tuner_exceeded(t, rate)) {
			t->doubted = true;
			t->waits = false;
			return tuner_set(t, t->before, 0);
		}
		if (!tuner_succeeded(t, rate))
			return tuner_return(t, rate);
		const bool more = t->threads > t->before;
		t->before = 0;
		t->rate = rate;
		if (!more && tuner_try_fewer(t))
			return true;
		if (more) {
			t->proven = t->threads;
			t->pause = PAUSE;
			t->reason = TUNER_WAITING;
		}
	}
	t->rate = rate;
	if (mostly)
		return tuner_try(t, running, queued);
	if (waits >= LITTLE)
		return false;
	t->doubted = false;
	if (t->threads == t->start)
		return false;
	t->reason = TUNER_CPUS;
	t->proven = 0;
	t->failed = false;
	if (t->threads < t->start)
		return tuner_set(t, t->start, 0);
	return tuner_set(t, t->threads / 2 > t->start ? t->threads / 2 : t->start, 0);
}

bool tuner_begin(struct tuner *t, const struct tuner_report *r)
{
	const unsigned threads = tuner_wanted(&(struct tuner){.threads = 1, .start = t->start},
					      1 - r->waited / r->busy, t->limit);
	if (threads <= t->threads)
		return false;
	if (threads == t->limit) /* time to fill the queue of the storage before fewer are tried */
		t->paused = t->pause;
	return tuner_set(t, threads, 0);
}

bool tuner_note(struct tuner *t, const struct tuner_report *r, bool queued)
{
	t->sum.work += r->work;
	t->sum.busy += r->busy;
	t->sum.waited += r->waited;
	t->reported |= (uint64_t)1 << r->thread;
	const unsigned seen = (unsigned)__builtin_popcountll(t->reported);
	if ((++t->reports < t->threads * 2 && seen < t->threads) || t->sum.busy <= 0)
		return false;
	const double rate = seen * t->sum.work / t->sum.busy;
	t->second = !t->second && t->before > 0 && !tuner_succeeded(t, rate);
	const bool changed = !t->second && tuner_look(t, rate, queued);
	t->sum = (struct tuner_report){0};
	t->reports = 0;
	t->reported = 0;
	return changed;
}

void tuner_lower_limit(struct tuner *t, unsigned threads)
{
	t->limit = threads;
	t->threads = threads;
	t->before = 0;
	t->start = t->start < threads ? t->start : threads;
	t->reason = TUNER_LIMIT;
}
