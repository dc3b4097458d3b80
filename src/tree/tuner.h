/* SPDX-License-Identifier: MIT
 *
 * How many threads copy a tree. A tree on a warm disk needs as many threads as there are CPUs. On a
 * cold disk, a network or a cloud file system the threads mostly wait, and more of them are
 * faster. The rule:
 *
 *   - The first thread is alone until it has read the first names. If it has mostly waited by then,
 *     there are at once as many threads as would keep the CPUs at work.
 *   - It looks again whenever as many reports have arrived as there are threads. Reports follow
 *     finished entries, so slow storage gets the time that it needs.
 *   - If fewer than one thread in two looks for a CPU, none waits for another one's lock, but all
 *     of them for the storage: it adds as many threads as above, up to LEAP times as many at once.
 *   - If the threads wait most of the time, at this look and over the last ones, and work is
 *     queued, it doubles their number. The new number stays if the work per time grows by at least
 *     half of the step.
 *   - If it does not, nor at a second look, the threads wait for a lock, for the speed of a disk or
 *     for writeback: half as many are tried, which stay if nothing is lost by it, and so on. From
 *     then on it only doubles, and the next trial comes later each time.
 *   - If the threads wait little, it goes back to the number that it started with.
 *
 * Waiting is time neither on a CPU nor in a run queue, so a busy host does not look like slow
 * storage, except for the moments in which threads wait for one that has a lock, but no CPU. The
 * functions read no clock and have no side effects.
 */
#ifndef TREE_TUNER_H
#define TREE_TUNER_H

#include <stdbool.h>

enum tuner_reason {
	TUNER_CPUS,    /* the threads wait little: the CPUs are the limit */
	TUNER_WAITING, /* more threads made it faster */
	TUNER_NO_GAIN, /* more threads did not */
	TUNER_LIMIT,   /* of threads, memory or open files */
};

/* All times are seconds, summed up over threads. */
struct tuner_report {
	double work;   /* finished entries, and 1 for each 64 KiB of them */
	double busy;   /* wall-clock time that they took */
	double waited; /* of it: neither on a CPU nor in a run queue */
};

struct tuner {
	unsigned threads;           /* that copy now */
	unsigned start, limit;      /* the number at the start; the highest one */
	unsigned before;            /* threads before this trial; 0: no trial */
	unsigned proven;            /* the highest number that a trial confirmed */
	unsigned reports;           /* since the last look */
	bool doubtful;              /* the trial has not reached its aim at the first look */
	bool failed;                /* more threads did not help: no leaps any more */
	unsigned pause, paused;     /* looks until the next trial: after the last one; left */
	double rate;                /* work per second before the trial */
	struct tuner_report sum;    /* since the last look */
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

#endif
