/* SPDX-License-Identifier: MIT
 * Measures what each thread of a tree does, for the tuner.
 */
#define _GNU_SOURCE
#include "tuning.h"
#include "pool.h"

#define INTERVAL  0.005 /* seconds between two reports of a thread, at least */
#define WORK_SIZE 65536 /* bytes that count as much as an entry */

/* The pool has another number of threads now: its entries take another time each. */
static void restart(struct worker_time *m, unsigned change)
{
	m->change = change;
	m->began = 0;
	m->sum = (struct tuner_report){0};
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

void tuning_end_entry(struct worker *w, int fd)
{
	struct worker_time *m = &w->time;
	const struct pool *p = &w->tree->pool;
	if (!p->tunes || __atomic_load_n(&p->change, __ATOMIC_RELAXED) != m->change)
		return;
	double now = io_now();
	m->sum.work += 1 + (double)(w->sum.count[FCOPY_COUNT_BYTES] - m->bytes) / WORK_SIZE;
	m->sum.busy += now - m->began;
	m->began = now;
	if (now - m->reported < INTERVAL)
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
	m->reported = now;
	m->cpu = cpu;
	m->runnable = runnable;
}
