/* SPDX-License-Identifier: MIT
 * The threads of a tree: measures what each does, for the tuner, starts them and ends them.
 */
#include "copy/move.h"
#include "directory.h"
#include "report.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>

#define READERS       8                   /* of large files at once, in most trees */
#define THREAD_MEMORY ((size_t)512 << 10) /* its buffer, its stack and its worker */
#define HELPER_MEMORY ((size_t)1 << 20)   /* the same of one that helps with large files */
#define MAY_HELP      32                  /* threads; pool.c limits those of one file */
#define INTERVAL      0.005               /* seconds between two reports of a thread, at least */
#define FIRST         0.001               /* ... until the first one with this number of threads */
#define ALONE         0.8                 /* of the time, and ... */
#define LEAST         5e-4  /* ... seconds that the first thread waits: the storage is slow */
#define WORK_SIZE     65536 /* bytes that count as much as an entry */

static void *threads_run_one(void *arg)
{
	struct tree *t = arg;
	struct pool *p = &t->pool;
	struct worker *w = pool_join(t);
	pthread_mutex_lock(&p->lock);
	if (w) {
		w->number = ++p->threads.joined;
	} else { /* without memory this thread does not take part */
		__atomic_sub_fetch(&p->threads.workers, 1, __ATOMIC_RELAXED);
		pthread_cond_broadcast(&p->wake);
	}
	pthread_mutex_unlock(&p->lock);
	if (w)
		pool_work(w);
	return NULL;
}

/* Starts the threads that are missing. If one cannot start, fewer threads do the same work. The
 * caller holds the lock. */
static void threads_start(struct tree *t)
{
	struct pool *p = &t->pool;
	while (p->threads.started + 1 < p->threads.active) {
		if (cpus_start_thread(&p->threads.thread[p->threads.started], threads_run_one, t) !=
		    0) {
			__atomic_store_n(&p->threads.active, p->threads.started + 1,
					 __ATOMIC_RELAXED);
			tuner_lower_limit(&p->tuning.tuner, p->threads.active);
			break;
		}
		p->threads.started++;
		__atomic_add_fetch(&p->threads.workers, 1, __ATOMIC_RELAXED);
	}
	if (t->report->threads_most < p->threads.active)
		t->report->threads_most = p->threads.active;
}

/* Adds up the time with this number of threads. */
static void threads_count_time(struct tree *t)
{
	struct pool *p = &t->pool;
	double now = io_now();
	t->times.pool += now - p->tuning.since;
	t->times.threads += (now - p->tuning.since) * p->threads.active;
	p->tuning.since = now;
}

/* The tuner has another number of threads. The caller holds the lock. */
static void threads_change(struct tree *t)
{
	struct pool *p = &t->pool;
	threads_count_time(t);
	__atomic_store_n(&p->threads.active, p->tuning.tuner.threads, __ATOMIC_RELAXED);
	threads_start(t);
	__atomic_add_fetch(&p->tuning.change, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&p->wake);
	pthread_cond_broadcast(&p->threads.needed);
}

/* Is there work for more threads? Each may open several directories. The caller holds the lock. */
static bool threads_have_more(const struct worker *w, int fd)
{
	const struct pool *p = &w->tree->pool;
	return (p->used > 0 || w->left > 1 || w->own.dir) && fd < p->tuning.descriptors / 4;
}

/* Passes to the tuner what this thread has done; may wake, start or stop threads. alone: it was the
 * only thread, and this is before the first report. fd: a descriptor that was opened lately, which
 * shows how many are open. */
static void threads_report(struct worker *w, const struct tuner_report *report, int fd, bool alone)
{
	struct pool *p = &w->tree->pool;
	pthread_mutex_lock(&p->lock);
	const bool more = threads_have_more(w, fd);
	if (alone ? more && tuner_begin(&p->tuning.tuner, report)
		  : tuner_note(&p->tuning.tuner, report, more))
		threads_change(w->tree);
	pthread_mutex_unlock(&p->lock);
}

/* Measures what each thread does. */

void tuning_begin_operand(struct tree *t)
{
	if (t->options->copy.threads == 0) {
		t->times.began = io_now();
		t->times.cpu = io_thread_seconds();
	}
}

/* One thread has no lock of another one to wait for. The time that it waited for a CPU is that
 * since it started: a little too much does no harm. */
void tuning_begin_walk(struct worker *w, int fd)
{
	struct tree *t = w->tree;
	if (!t->pool.tuning.tunes || w->number > 0 || t->times.began <= 0)
		return;
	struct tuner_report r = {.busy = io_now() - t->times.began};
	r.waited = r.busy - (io_thread_seconds() - t->times.cpu);
	t->times.began = 0;
	if (r.waited < LEAST || r.waited < ALONE * r.busy)
		return;
	const double runnable = io_runnable_seconds();
	r.waited -= runnable;
	if (runnable >= 0 && r.waited >= LEAST && r.waited >= ALONE * r.busy)
		threads_report(w, &r, fd, true);
}

/* The pool has another number of threads now: its entries take another time each. */
static void tuning_restart(struct worker_time *m, unsigned change)
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
	if (!p->tuning.tunes)
		return;
	unsigned change = __atomic_load_n(&p->tuning.change, __ATOMIC_RELAXED);
	if (m->change != change)
		tuning_restart(m, change);
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
	if (!p->tuning.tunes || __atomic_load_n(&p->tuning.change, __ATOMIC_RELAXED) != m->change)
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
	m->sum.thread = w->number;
	m->sum.waited = waited > 0 && known ? waited : 0;
	if (!known)
		__atomic_store_n(&w->tree->pool.tuning.blind, true, __ATOMIC_RELAXED);
	threads_report(w, &m->sum, fd, false);
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

/* Starts and ends them. */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* As many as fit into a quarter of the cgroup's memory, of which each takes `size` bytes. opened.c
 * limits them, too. */
static unsigned threads_that_fit(size_t size, unsigned most)
{
	uint64_t n = cpus_memory(CPUS_CGROUP, CPUS_CGROUP_ROOT) / 4 / size;
	return n < most ? (unsigned)n : most;
}

static void threads_prepare(struct tree *t)
{
	struct pool *p = &t->pool;
	struct rlimit files;
	*p = (struct pool){
	    .lock = PTHREAD_MUTEX_INITIALIZER,
	    .wake = PTHREAD_COND_INITIALIZER,
	    .read_ahead = cpus_read_ahead(READERS),
	    .helpers = threads_that_fit(HELPER_MEMORY, MAY_HELP),
	    .threads = {.needed = PTHREAD_COND_INITIALIZER, .workers = 1},
	    .tuning = {.tunes = t->options->copy.threads == 0, .change = 1, .since = io_now()}};
	/* With one more than there are CPUs, 12,000 files take 1.5 times as long on XFS, 1.04 on
	 * ext4 and 0.99 on tmpfs (2 CPUs, median of paired times). */
	p->threads.active = least(p->tuning.tunes ? cpus_allowed() : t->options->copy.threads,
				  t->opened.threads);
	p->threads.active = least(p->threads.active, FCOPY_THREADS_MAX);
	const unsigned most = least(threads_that_fit(THREAD_MEMORY, FCOPY_THREADS_MAX),
				    t->opened.threads);
	/* Threads that wait for a limited rate do not wait for storage. */
	const bool grows = p->tuning.tunes && !t->options->copy.limit_rate;
	tuner_start(&p->tuning.tuner, p->threads.active, grows ? most : 0);
	bool known = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < INT_MAX;
	p->tuning.descriptors = known ? (int)files.rlim_cur : INT_MAX;
}

static void threads_end(struct tree *t)
{
	struct pool *p = &t->pool;
	static const char *const reasons[] = {[TUNER_CPUS] = "the CPUs are the limit",
					      [TUNER_WAITING] = "more threads were faster",
					      [TUNER_NO_GAIN] = "more threads were not faster",
					      [TUNER_LIMIT] = "the limit of threads was reached"};
	threads_count_time(t);
	free(p->stack);
	t->report->threads_average = t->times.threads / t->times.pool;
	t->report->threads_reason = !p->tuning.tunes ? NULL
				    : p->tuning.blind
					? "without schedstat, waiting cannot be measured"
					: reasons[p->tuning.tuner.reason];
}

/* The caller is one of the threads. */
void threads_run(struct tree *t, struct directory *root,
		 void (*run)(struct worker *, const struct item *))
{
	struct pool *p = &t->pool;
	struct worker *w = pool_join(t);
	if (!w) {
		tree_stop(t, ENOMEM);
		return;
	}
	threads_prepare(t);
	p->run = run;
	pool_push(w, (struct item){.dir = root});
	/* First, because it takes what has been copied by now for that of earlier operands. */
	struct census *census = census_start(t, root);
	pthread_mutex_lock(&p->lock);
	threads_start(t);
	pthread_mutex_unlock(&p->lock);
	pool_work(w);
	while (p->threads.started > 0)
		pthread_join(p->threads.thread[--p->threads.started], NULL);
	census_stop(census);
	threads_end(t);
}
