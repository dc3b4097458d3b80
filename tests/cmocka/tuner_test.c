/* SPDX-License-Identifier: MIT
 * How many threads the tuner chooses for machines and storage that are modelled here, and how soon.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "tree/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define INTERVAL 0.005 /* seconds between two reports of a thread, at least */
#define MS       1e-3

/* What an entry costs, in seconds. */
struct world {
	const char *name;
	unsigned cpus, busy;  /* busy: of the CPUs, by other processes all the time */
	double cpu;           /* on a CPU */
	double latency;       /* until the storage answers, for any number of threads */
	double disk;          /* of a disk that works on one entry at a time */
	double lock;          /* with the lock of one directory */
	unsigned least, most; /* threads that it has to choose, at the end */
	double soon; /* seconds until then; and only trials may leave the range after that */
};

static const struct world worlds[] = {
    {"warm disk, 2 CPUs", 2, 0, .05 * MS, 0, 0, 0, 2, 2, 0},
    {"warm disk, 4 CPUs", 4, 0, .05 * MS, 0, 0, 0, 4, 4, 0},
    {"warm disk, 16 CPUs", 16, 0, .05 * MS, 0, 0, 0, 16, 16, 0},
    {"warm disk, 64 CPUs", 64, 0, .05 * MS, 0, 0, 0, 64, 64, 0},
    {"0.2 ms a call, 2 CPUs", 2, 0, .05 * MS, 1.6 * MS, 0, 0, 24, 64, .03},
    {"2 ms a call, 2 CPUs", 2, 0, .05 * MS, 16 * MS, 0, 0, 64, 64, .06},
    {"2 ms a call, 16 CPUs", 16, 0, .05 * MS, 16 * MS, 0, 0, 64, 64, .06},
    {"2 ms a call, 64 CPUs", 64, 0, .05 * MS, 16 * MS, 0, 0, 64, 64, .1},
    {"20 ms a call, 2 CPUs", 2, 0, .05 * MS, 160 * MS, 0, 0, 64, 64, .4},
    {"20 ms a call, 4 CPUs", 4, 0, .05 * MS, 160 * MS, 0, 0, 64, 64, .4},
    {"cold disk with a queue, 2 CPUs", 2, 0, .05 * MS, 5 * MS, .3 * MS, 0, 16, 32, .3},
    {"slow disk, 2 CPUs", 2, 0, .05 * MS, 0, 5 * MS, 0, 2, 6, .1},
    {"slow disk, 16 CPUs", 16, 0, .05 * MS, 0, 5 * MS, 0, 4, 16, 1},
    {"lock of one directory, 2 CPUs", 2, 0, .02 * MS, 0, 0, .03 * MS, 2, 2, .1},
    {"lock of one directory, 16 CPUs", 16, 0, .02 * MS, 0, 0, .03 * MS, 4, 8, .2},
    {"lock of one directory, 64 CPUs", 64, 0, .02 * MS, 0, 0, .03 * MS, 4, 8, .2},
    {"busy host, 2 CPUs", 2, 2, .05 * MS, 0, 0, 0, 2, 2, 0},
    {"busy host, 16 CPUs", 16, 16, .05 * MS, .02 * MS, 0, 0, 16, 16, 0},
    {"busy host with 2 ms a call, 2 CPUs", 2, 2, .05 * MS, 16 * MS, 0, 0, 64, 64, .3},
};

/* Seconds that an entry takes with n threads, and of them those without CPU and run queue. */
static double entry_seconds(const struct world *w, unsigned n, double *waited)
{
	/* The scheduler divides the CPUs fairly between the threads and the other processes. */
	const double share = MIN(1, (double)w->cpus / (n + w->busy));
	const double cpu = w->cpu / share, alone = cpu + w->latency + w->disk + w->lock;
	const double rate = MIN(
	    n / alone, MIN(w->disk > 0 ? 1 / w->disk : 1e9, w->lock > 0 ? 1 / w->lock : 1e9));
	/* Threads that wait for something else leave the CPUs to the others. */
	const double used = MIN(rate, w->cpus / w->cpu * (w->busy ? n / (double)(n + w->busy) : 1));
	const double whole = n / used;
	*waited = MAX(0, whole - MAX(cpu, whole - w->latency - w->disk - w->lock) * (used < rate) -
			     cpu * (used >= rate));
	if (w->lock > 0) /* its holder is on a CPU */
		*waited = MAX(0, *waited - w->lock);
	return whole;
}

static unsigned noise; /* the same in each run */

/* Between 0.9 and 1.1. */
static double noisy(void)
{
	noise = noise * 1103515245 + 12345;
	return 0.9 + 0.2 * ((noise >> 16) & 1023) / 1023;
}

static void settles(void **state)
{
	const struct world *w = *state;
	struct tuner t;
	double now = 0, outside = 0, end = MAX(4, 10 * w->soon);
	noise = 1;
	tuner_start(&t, MIN(w->cpus, 64), 64);
	while (now < end) {
		double waited, seconds = entry_seconds(w, t.threads, &waited);
		double step = MAX(seconds, INTERVAL);
		const unsigned n = t.threads;
		bool changed = false;
		for (unsigned i = 0; i < n && !changed; i++) {
			const double factor = noisy(), entries = step / seconds;
			changed = tuner_note(&t,
					     &(struct tuner_report){entries,
								    entries * seconds * factor,
								    entries * waited * factor, i},
					     true);
		}
		now += step;
		if (now > w->soon && (n < w->least || n > w->most))
			outside += step;
	}
	if (outside > 0.1 * end || (outside > 0 && w->soon == 0))
		fail_msg("%s: %.3f of %.3f s with other than %u to %u threads (at the end %u)",
			 w->name, outside, end, w->least, w->most, t.threads);
	unsigned last = t.before ? t.before : t.threads;
	assert_in_range(last, w->least, w->most);
}

/* Storage that becomes fast leaves the work to few threads again; slow storage gets them back. */
static void change_is_followed(void **state)
{
	struct world w = {"", 2, 0, .05 * MS, 16 * MS, 0, 0, 0, 0, 0};
	struct tuner t;
	(void)state;
	tuner_start(&t, 3, 64);
	for (int phase = 0; phase < 3; phase++) {
		w.latency = phase == 1 ? 0 : 16 * MS;
		for (unsigned i = 0; i < 64 * 12; i++) {
			double waited, seconds = entry_seconds(&w, t.threads, &waited);
			double entries = MAX(1, INTERVAL / seconds);
			tuner_note(&t,
				   &(struct tuner_report){entries, entries * seconds,
							  entries * waited, i % t.threads},
				   true);
		}
		assert_int_equal(t.threads, phase == 1 ? 3 : 64);
		assert_int_equal(t.reason, phase == 1 ? TUNER_CPUS : TUNER_LIMIT);
	}
}

/* One more report of the next thread, which only waits. */
static bool note_slow(struct tuner *t, bool queued)
{
	return tuner_note(t, &(struct tuner_report){1, 1, 1, t->reports % t->threads}, queued);
}

static void no_queue_no_threads(void **state)
{
	struct tuner t;
	(void)state;
	tuner_start(&t, 3, 64);
	for (int i = 0; i < 100; i++)
		assert_false(note_slow(&t, false));
	assert_int_equal(t.threads, 3);
}

static void limit_is_kept(void **state)
{
	struct tuner t;
	(void)state;
	tuner_start(&t, 3, 10);
	for (int i = 0; i < 1000; i++) {
		note_slow(&t, true);
		assert_in_range(t.threads, 3, 10);
	}
	assert_int_equal(t.threads, 10);
	assert_int_equal(t.reason, TUNER_LIMIT);
	tuner_start(&t, 3, 64);
	while (!note_slow(&t, true))
		;
	assert_int_equal(t.threads, 24);
	tuner_lower_limit(&t, 4); /* the others could not start */
	for (int i = 0; i < 1000; i++) {
		note_slow(&t, true);
		assert_in_range(t.threads, 2, 4);
	}
}

/* A busy host: now and then all threads but one wait for one that has a lock and no CPU, as
 * measured with 36 tasks for 2 CPUs. Such moments add no threads; storage that waits does. */
static void moments_of_waiting_add_no_threads(void **state)
{
	static const double looks[][3] = {/* milliseconds that each of three threads waits, of 20 */
					  {0, 20, 18}, {0, 1, 0},   {1, 0, 0}, {0, 2, 0},
					  {0, 19, 20}, {17, 20, 0}, {0, 0, 1}, {2, 0, 0},
					  {0, 0, 0},   {1, 1, 0},   {0, 0, 0}, {0, 2, 2}};
	const size_t n = sizeof(looks) / sizeof(*looks);
	struct tuner t;
	(void)state;
	tuner_start(&t, 3, 64);
	for (size_t i = 0; i < 100 * n; i++)
		for (int j = 0; j < 3; j++)
			assert_false(tuner_note(
			    &t,
			    &(struct tuner_report){10, 20 * MS, looks[i % n][j] * MS, (unsigned)j},
			    true));
	for (int i = 0; i < 6 && t.threads == 3; i++)
		note_slow(&t, true);
	assert_int_equal(t.threads, 24); /* at the second look */
}

/* One more report of the next of some threads for two CPUs: 14 entries in a millisecond of one; or
 * stalled. */
static bool note_xfs(struct tuner *t, bool stalled)
{
	struct tuner_report r = {14, .5 * MS * t->threads, 0, t->reports % t->threads};
	if (stalled)
		r = (struct tuner_report){1, 100 * MS, 97 * MS, r.thread};
	return tuner_note(t, &r, true);
}

/* On XFS after a removal, as measured: both threads wait for 100 ms, at the first look or later. */
static void stall_adds_no_threads(void **state)
{
	struct tuner t;
	(void)state;
	for (int at = 0; at < 20; at++) {
		tuner_start(&t, 2, 64);
		for (int i = 0; i < 40; i++)
			assert_false(note_xfs(&t, i / 2 == at));
	}
}

/* Two stalls at once look like slow storage. But then more threads are faster by more than their
 * number: what was measured before says nothing, and the number is that of the start again. */
static void two_stalls_are_found_out(void **state)
{
	struct tuner t;
	(void)state;
	for (int at = 0; at < 20; at++) {
		int others = 0;
		tuner_start(&t, 2, 64);
		for (int i = 0; i < 200; i++) {
			note_xfs(&t, i / 4 == at);
			others += t.threads != 2;
		}
		assert_int_equal(t.threads, 2);
		assert_in_range(others, 1, 16); /* one look */
	}
}

/* Storage that gets faster with each thread is believed at the second time. */
static void more_than_the_step_is_believed_twice(void **state)
{
	struct tuner t;
	unsigned back = 0;
	(void)state;
	tuner_start(&t, 2, 64);
	for (int i = 0; i < 2000; i++) {
		const unsigned was = t.threads;
		tuner_note(&t, &(struct tuner_report){was, 5 * MS, 4.9 * MS, t.reports % was},
			   true);
		back += t.threads < was;
	}
	assert_int_equal(t.threads, 64);
	assert_in_range(back, 1, 2); /* the second: fewer are tried */
}

/* Of threads that wait for one lock, those that get it report often. The others count as threads
 * that do nothing: a trial with them has not gained what the busy ones suggest. */
static void silent_threads_count(void **state)
{
	struct tuner t;
	(void)state;
	tuner_start(&t, 2, 64);
	for (int i = 0; i < 4; i++)
		tuner_note(&t, &(struct tuner_report){10, 5 * MS, 4.8 * MS, i & 1}, true);
	assert_int_equal(t.threads, 16);
	for (int i = 0; i < 200 && t.threads == 16; i++)
		tuner_note(&t, &(struct tuner_report){10, 5 * MS, 4.8 * MS, i % 3}, true);
	assert_true(t.failed);
}

/* What the first thread waits for while it is alone is no lock of another one. */
static void waiting_alone_adds_threads(void **state)
{
	struct tuner t;
	(void)state;
	tuner_start(&t, 3, 64);
	assert_true(tuner_begin(&t, &(struct tuner_report){0, 80 * MS, 79 * MS, 0}));
	assert_int_equal(t.threads, 64);
	tuner_start(&t, 3, 64);
	assert_true(tuner_begin(&t, &(struct tuner_report){0, 2 * MS, 1.6 * MS, 0}));
	assert_int_equal(t.threads, 15); /* each needs a fifth of a CPU */
	tuner_start(&t, 3, 10);
	assert_true(tuner_begin(&t, &(struct tuner_report){0, 80 * MS, 79 * MS, 0}));
	assert_int_equal(t.threads, 10);
	tuner_start(&t, 3, 0); /* may not grow */
	assert_false(tuner_begin(&t, &(struct tuner_report){0, 80 * MS, 79 * MS, 0}));
	assert_int_equal(t.threads, 3);
	tuner_start(&t, 3, 64);
	assert_false(tuner_begin(&t, &(struct tuner_report){0, 1 * MS, 0, 0}));
	assert_int_equal(t.threads, 3);
}

/* They were too many: the storage is warm. */
static void threads_from_the_start_return(void **state)
{
	const struct world w = {"", 2, 0, .05 * MS, 0, 0, 0, 0, 0, 0};
	struct tuner t;
	(void)state;
	tuner_start(&t, 3, 64);
	assert_true(tuner_begin(&t, &(struct tuner_report){0, 80 * MS, 79 * MS, 0}));
	for (unsigned looks = 0; t.threads > 3; looks++) {
		const unsigned n = t.threads;
		double waited, seconds = entry_seconds(&w, n, &waited);
		assert_in_range(looks, 0, 5);
		for (unsigned i = 0; i < n && t.threads == n; i++)
			tuner_note(&t, &(struct tuner_report){9, 9 * seconds, 9 * waited, i}, true);
	}
}

static struct directory pooled[3];
static bool pooled_done[3];

static bool others_wait(struct pool *p, unsigned n)
{
	return __atomic_load_n(&p->idle, __ATOMIC_ACQUIRE) == n;
}

/* The first item begins the second on the other thread. That one must copy no more when it has
 * pushed the third: the thread that waits has to take it. */
static void run_pooled(struct worker *w, const struct item *item)
{
	struct pool *p = &w->tree->pool;
	const long n = item->dir - pooled;
	__atomic_store_n(&pooled_done[n], true, __ATOMIC_RELEASE);
	if (n == 0) {
		while (!others_wait(p, 1)) /* the other thread has started */
			usleep(100);
		pool_push(w, (struct item){.dir = &pooled[1]});
		pool_wake(&w->tree->pool, false);
		while (!__atomic_load_n(&pooled_done[1], __ATOMIC_ACQUIRE))
			usleep(100);
	} else if (n == 1) {
		while (!others_wait(p, 1))
			usleep(100);
		usleep(1000); /* it waits for the condition */
		pthread_mutex_lock(&p->lock);
		__atomic_store_n(&p->threads.active, 1, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&p->lock);
		pool_push(w, (struct item){.dir = &pooled[2]});
	}
}

/* Runs the items in a pool of this many threads. */
static void run_pool(unsigned threads, void (*run)(struct worker *, const struct item *))
{
	static struct fcopy_tree_report report;
	struct fcopy_tree_options options = {0};
	struct tree *t = calloc(1, sizeof(*t));
	assert_non_null(t);
	memset(pooled_done, 0, sizeof(pooled_done));
	t->options = &options;
	t->report = &report;
	options.copy.threads = threads;
	t->opened.threads = threads;
	pthread_mutex_init(&t->lock, NULL);
	pooled[0].dst = AT_FDCWD;
	alarm(60); /* instead of waiting for ever */
	threads_run(t, &pooled[0], run);
	alarm(0);
	for (int i = 0; i < 3; i++)
		assert_true(pooled_done[i]);
	free(t);
}

static void work_is_handed_over(void **state)
{
	(void)state;
	run_pool(2, run_pooled);
}

#define PIECE   ((off_t)128 << 10)
#define PIECES  12
#define HELPING 3
static pthread_barrier_t all_copy;
static unsigned copied;

/* The first pieces wait until each thread of the pool copies one. */
static int copy_piece(struct transfer *t)
{
	if (t->offset < HELPING * PIECE)
		pthread_barrier_wait(&all_copy);
	__atomic_add_fetch(&copied, 1, __ATOMIC_RELAXED);
	t->offset = t->end;
	return 0;
}

/* The first item is a large file, which the other threads have to join; the second one is another
 * entry. The third is found when the file is complete. */
static void run_large(struct worker *w, const struct item *item)
{
	static const struct engine engine = {
	    .name = "slow", .positional = true, .copy = copy_piece};
	struct transfer t = {.end = PIECES * PIECE, .buffer_size = (size_t)PIECE};
	const long n = item->dir - pooled;
	__atomic_store_n(&pooled_done[n], true, __ATOMIC_RELEASE);
	if (n > 0)
		return;
	pool_push(w, (struct item){.dir = &pooled[1]});
	pool_wake(&w->tree->pool, false);
	assert_int_equal(ranges_run(&engine, &t, 1, false, &w->file.helpers), 0);
	assert_int_equal(t.offset, t.end);
	assert_int_equal(t.threads, HELPING);
	assert_int_equal(copied, PIECES);
	assert_int_equal(w->file.helped.helpers, 0);
	assert_null(w->tree->pool.files);
	pool_push(w, (struct item){.dir = &pooled[2]});
}

static void idle_threads_join_a_file(void **state)
{
	(void)state;
	copied = 0;
	pthread_barrier_init(&all_copy, NULL, HELPING);
	run_pool(HELPING, run_large);
	pthread_barrier_destroy(&all_copy);
}

int main(void)
{
	cases_enter("ext4");
	for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++)
		case_add(settles, &worlds[i], "%s", worlds[i].name);
	case_add(change_is_followed, NULL, "storage becomes fast, and slow again");
	case_add(no_queue_no_threads, NULL, "without work in the queue, no thread is added");
	case_add(stall_adds_no_threads, NULL, "a moment in which all threads wait adds none");
	case_add(two_stalls_are_found_out, NULL, "two of them are found out");
	case_add(more_than_the_step_is_believed_twice, NULL,
		 "what gains more than the step is believed twice");
	case_add(silent_threads_count, NULL, "threads that do not report count");
	case_add(moments_of_waiting_add_no_threads, NULL,
		 "threads that wait for one without a CPU add none");
	case_add(waiting_alone_adds_threads, NULL, "a first thread that waits gets others at once");
	case_add(threads_from_the_start_return, NULL, "too many threads at the start go again");
	case_add(limit_is_kept, NULL, "the limit is kept");
	case_add(work_is_handed_over, NULL, "a thread that stops hands its work over");
	case_add(idle_threads_join_a_file, NULL, "idle threads join a large file");
	return cases_run("tuner");
}
