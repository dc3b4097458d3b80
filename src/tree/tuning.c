/* SPDX-License-Identifier: MIT
 * Measures what each thread of a tree does, for the tuner.
 */
#define _GNU_SOURCE
#include "tuning.h"
#include "pool.h"

#define INTERVAL  0.005 /* seconds between two reports of a thread, at least */
#define FIRST     0.001 /* ... until the first one with this number of threads */
#define ALONE     0.8   /* of the time, and ... */
#define LEAST     5e-4  /* ... seconds that the first thread waits: the storage is slow */
#define WORK_SIZE 65536 /* bytes that count as much as an entry */

void tuning_begin_operand(struct tree *t)
{
	if (t->threads == 0)
		t->alone = (struct alone){io_now(), io_thread_seconds()};
}

/* One thread has no lock of another one to wait for. The time that it waited for a CPU is that
 * since it started: a little too much does no harm. */
void tuning_begin_walk(struct worker *w, int fd)
{
	struct tree *t = w->tree;
	if (!t->pool.tunes || w->number > 0 || t->alone.wall <= 0)
		return;
	const struct alone then = t->alone;
	t->alone.wall = 0;
	struct tuner_report r = {.busy = io_now() - then.wall};
	r.waited = r.busy - (io_thread_seconds() - then.cpu);
	if (r.waited < LEAST || r.waited < ALONE * r.busy)
		return;
	const double runnable = io_runnable_seconds();
	r.waited -= runnable;
	if (runnable >= 0 && r.waited >= LEAST && r.waited >= ALONE * r.busy)
		pool_begin(w, &r, fd);
}

/* The pool has another number of threads now: its entries take another time each. */
static void restart(struct worker_time *m, unsigned change)
{
	m->change = change;
	m->began = 0;
	m->sum = (struct tuner_report){0};
	m->interval = FIRST;
	m->reported = io_now();
	m->cpu = io_thread_seconds();
	m->runnable = io_runnable_seconds();
}

void tuning_begin_entry(struct worker *w)
{
	struct worker_time *m = &w->time;
	const struct pool *p = &w->tree->pool;
	if (!p->tunes)
		return;
	unsigned change = __atomic_load_n(&p->change, __ATOMIC_RELAXED);
	if (m->change != change)
		restart(m, change);
	if (m->began == 0)
		m->began = io_now();
	m->bytes = w->sum.count[FCOPY_COUNT_BYTES];
}

void tuning_end_item(struct worker *w)
{
	w->time.began = 0;
}

static void tuning_end(struct worker *w, double work, int fd)
{
	struct worker_time *m = &w->time;
	const struct pool *p = &w->tree->pool;
	if (!p->tunes || __atomic_load_n(&p->change, __ATOMIC_RELAXED) != m->change)
		return;
	double now = io_now();
	m->sum.work += work;
	m->sum.busy += now - m->began;
	m->began = now;
	if (now - m->reported < m->interval)
		return;
	double cpu = io_thread_seconds(), runnable = io_runnable_seconds();
	double waited = m->sum.busy - (cpu - m->cpu) - (runnable - m->runnable);
	/* Where the time in the run queue is unknown, a busy host would look like slow storage. */
	const bool known = runnable >= 0 && m->runnable >= 0;
	m->sum.waited = waited > 0 && known ? waited : 0;
	if (!known)
		__atomic_store_n(&w->tree->pool.blind, true, __ATOMIC_RELAXED);
	pool_report(w, &m->sum, fd);
	m->sum = (struct tuner_report){0};
	m->interval = INTERVAL;
	m->reported = now;
	m->cpu = cpu;
	m->runnable = runnable;
}

void tuning_end_entry(struct worker *w, int fd)
{
	const uint64_t bytes = w->sum.count[FCOPY_COUNT_BYTES] - w->time.bytes;
	tuning_end(w, 1 + (double)bytes / WORK_SIZE, fd);
}

void tuning_end_names(struct worker *w, int fd)
{
	tuning_end(w, 0, fd);
	tuning_end_item(w);
}
