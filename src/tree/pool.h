/* SPDX-License-Identifier: MIT
 *
 * The pool of threads, the items that they work on, and how many threads there are.
 */
#ifndef TREE_POOL_H
#define TREE_POOL_H

#include "fcopy.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct directory;
struct names;
struct ranges;
struct tree;
struct worker;

/* tuner.c:
 *
 * How many threads copy a tree. A tree on a warm disk needs as many threads as there are CPUs. On a
 * cold disk, a network or a cloud file system the threads mostly wait, and more of them are
 * faster. The rule:
 *
 *   - The first thread is alone until it has read the first names. If it has mostly waited by then,
 *     there are at once as many threads as would keep the CPUs at work.
 *   - It looks again whenever each thread has reported, or twice as many reports have arrived as
 *     there are threads: then those that are silent do nothing. Reports follow finished entries, so
 *     slow storage gets the time that it needs.
 *   - If the threads wait most of the time, at two looks and over the last ones, and work is
 *     queued, it doubles their number. The new number stays if the work per time grows by at least
 *     half of the step; but not if it grows by more than the step: then something else has
 *     changed, and it looks again with the number before, once.
 *   - If fewer than one thread in two looks for a CPU then, none waits for another one's lock, but
 *     all of them for the storage: it adds as many threads as above, up to LEAP times as many at
 *     once.
 *   - If it does not, nor at a second look, the threads wait for a lock, for the speed of a disk or
 *     for writeback: half as many are tried, which stay if nothing is lost by it, and so on. From
 *     then on it only doubles, and the next trial comes later each time.
 *   - If the threads wait little, it goes back to the number that it started with.
 *
 * Waiting is time neither on a CPU nor in a run queue, so a busy host does not look like slow
 * storage, except for the moments in which threads wait for one that has a lock, but no CPU. The
 * functions read no clock and have no side effects.
 */

enum tuner_reason {
	TUNER_CPUS,    /* the threads wait little: the CPUs are the limit */
	TUNER_WAITING, /* more threads made it faster */
	TUNER_NO_GAIN, /* more threads did not */
	TUNER_LIMIT,   /* of threads, memory or open files */
};

/* All times are seconds, summed up over threads. */
struct tuner_report {
	double work;     /* finished entries, and 1 for each 64 KiB of them */
	double busy;     /* wall-clock time that they took */
	double waited;   /* of it: neither on a CPU nor in a run queue */
	unsigned thread; /* its number */
};

struct tuner {
	unsigned threads;        /* that copy now */
	unsigned start, limit;   /* the number at the start; the highest one */
	unsigned before;         /* threads before this trial; 0: no trial */
	unsigned proven;         /* the highest number that a trial confirmed */
	unsigned reports;        /* since the last look */
	uint64_t reported;       /* the threads that they are from: bits */
	bool second;             /* look at this trial: it has not reached its aim at the first */
	bool waits;              /* the threads mostly waited at the last look */
	bool failed;             /* more threads did not help: no leaps any more */
	bool doubted;            /* the last trial was too good, and has to be so twice */
	unsigned pause, paused;  /* looks until the next trial: after the last one; left */
	double rate;             /* work per second before the trial */
	struct tuner_report sum; /* since the last look */
	struct tuner_report recent; /* of the last looks; the earlier, the less it counts */
	enum tuner_reason reason;
};

/* Starts with this many threads; limit below it: never more. */
void tuner_start(struct tuner *, unsigned threads, unsigned limit);
/* Before the first report: what one thread has seen while it was alone. As tuner_note. */
bool tuner_begin(struct tuner *, const struct tuner_report *);
/* Notes what one thread has done since its last report, with the present number of threads.
 * queued: there is work for more threads. Returns true if tuner->threads has changed: reports
 * of entries that were begun before that must not be passed any more. */
bool tuner_note(struct tuner *, const struct tuner_report *, bool queued);
/* No more threads than these can be started. */
void tuner_lower_limit(struct tuner *, unsigned threads);

/* Work for one thread. */
struct item {
	struct directory *dir;
	struct names *names;   /* NULL: continue to read the directory */
	unsigned first, count; /* offset of the first name, and how many names */
};

/* A large file that idle threads help to copy: an item of the pool besides its stack. */
struct helped {
	struct helped *next;
	struct ranges *ranges;
	unsigned helpers;    /* threads that help now */
	bool open;           /* it is in the list: others may join */
	pthread_cond_t left; /* the last helper has left */
};

/* What one thread has measured. */
struct worker_time {
	unsigned change;         /* pool.change since when it counts */
	struct tuner_report sum; /* since the last report */
	double began;            /* io_now() when the present entry began; 0: unknown */
	uint64_t bytes;          /* sum.bytes then */
	double reported;         /* io_now() at the last report */
	double interval;         /* seconds until the next one, at least */
	double cpu, runnable;    /* the thread's seconds on a CPU and in its run queue then */
};

/* The threads of a pool. `workers` of them have not ended; those whose number is lower than
 * `active` may copy, and `asleep` of the others wait until there is work for more. */
struct pool_threads {
	pthread_cond_t needed; /* there is work for more threads */
	unsigned asleep;
	unsigned active;  /* atomic, as pool.idle */
	unsigned workers; /* with the caller of threads_run(); atomic, as pool.idle */
	unsigned joined;  /* that have a number */
	unsigned started; /* in thread[] */
	pthread_t thread[FCOPY_THREADS_MAX];
};

/* How many of them are to be active. */
struct pool_tuning {
	bool tunes;      /* pool_threads.active follows the tuner */
	bool blind;      /* how long threads wait for a CPU is unknown; atomic */
	unsigned change; /* how often `active` has changed; atomic */
	int descriptors; /* RLIMIT_NOFILE */
	double since;    /* io_now() at the last change */
	struct tuner tuner;
};

/* The items of one walk, which ends when nothing is queued and all workers are idle. */
struct pool {
	pthread_mutex_t lock; /* of all members but `run` */
	pthread_cond_t wake;
	struct item *stack;
	size_t used, size;    /* items in it; atomic, as idle; room */
	struct helped *files; /* that need helpers */
	unsigned helpers;     /* only threads with a lower number help, because of their buffers */
	unsigned idle;        /* threads that may copy, but have nothing to do; changed under the
			       * lock, read without it */
	bool done;            /* the walk has ended */
	off_t read_ahead;     /* of each copy */
	struct pool_threads threads;
	struct pool_tuning tuning;
	void (*run)(struct worker *, const struct item *);
};

/* What is measured of the threads from one operand to the next: seconds. */
struct thread_times {
	double began, cpu; /* io_now() and io_thread_seconds() when the operand began, in the only
			    * thread; began 0: others are at work */
	double pool, threads; /* in threads_run(); the same times the active threads */
};

/* threads.c: */

/* Runs `run` for an item of root, whose `pending` is 1, and for each item that it pushes,
 * in options.threads threads. Returns when nothing is left: after tree_stop, as soon as each thread
 * has finished its entry. */
void threads_run(struct tree *, struct directory *root,
		 void (*run)(struct worker *, const struct item *));
/* An operand begins, in the only thread. Called again when the first names of a directory are
 * queued: if the thread has mostly waited until then, more threads start at once. */
void tuning_begin_operand(struct tree *);
void tuning_begin_walk(struct worker *, int fd);
/* Called before and after each entry, and after the last one of an item; measures the
 * work and the waiting of this thread. */
void tuning_begin_entry(struct worker *);
void tuning_end_entry(struct worker *, int fd); /* fd: one that was opened lately */
void tuning_end_names(struct worker *, int fd); /* no entry was copied, but names were read */
void tuning_end_item(struct worker *);

/* pool.c: */

/* Adds an item. If there is no memory for it, stops the tree, and runs the item in this thread. */
void pool_push(struct worker *, struct item);
/* Adds an item that this thread runs next, if it has nothing else to run and no thread is idle. */
void pool_push_own(struct worker *, struct item);
/* Are there fewer threads now, without this one? It hands over what it has left. */
bool pool_dismissed(const struct worker *);
/* How many threads have nothing to do. */
unsigned pool_idle(const struct pool *);
/* How many more idle threads there are than items. */
unsigned pool_unserved(const struct pool *);
/* Wakes all idle threads, after a series of pushes; or one of them. */
void pool_wake(struct pool *, bool all);
/* A worker for this thread, or NULL; and its end, which adds up what it did. */
struct worker *pool_join(struct tree *);
void pool_leave(struct worker *);
/* Prepares worker->file.copy and worker->file.report for the next file. Returns the copy. */
struct copy *pool_start_copy(struct worker *);
/* What a thread does until nothing is left; then leaves. */
void pool_work(struct worker *);

#endif
