/* SPDX-License-Identifier: MIT
 * Implements ahead.h.
 */
#define _GNU_SOURCE
#include "ahead.h"

#include "io/io.h"

#include <fcntl.h>
#include <sys/param.h>

#define INTERVAL 0.002              /* seconds between two looks, at least */
#define MOSTLY   0.5                /* of the time: the reader waits */
#define FIRST    ((off_t)1 << 20)   /* bytes of the first window */
#define STEP     ((off_t)128 << 10) /* the kernel reads no more for one call (6.18: ra_pages) */

/* runnable: io_runnable_seconds(), which costs three system calls, or negative. */
static void ahead_restart(struct ahead *a, double idle, double runnable)
{
	a->wall = io_now();
	a->idle = idle;
	a->cpu = io_thread_seconds();
	a->runnable = runnable;
}

void ahead_start(struct ahead *a, double idle)
{
	if (a->most > 0)
		ahead_restart(a, idle, -1);
}

/* Has the reader waited most of the time since the last look? On a busy host it may only have had
 * no CPU: then a second look decides. Restarts the measurement. */
static bool ahead_waited(struct ahead *a, double now, double idle)
{
	const double least = MOSTLY * (now - a->wall), before = a->runnable;
	const double other = MAX(0, idle - a->idle); /* less: another transfer of this copy */
	double waited = now - a->wall - other - (io_thread_seconds() - a->cpu);
	double runnable = waited > least ? io_runnable_seconds() : -1;
	bool known = runnable >= 0 && before >= 0;
	ahead_restart(a, idle, runnable);
	return known && waited - (runnable - before) > least;
}

/* Asks for the first STEP bytes of a range. */
static bool ahead_ask(int fd, off_t from, off_t to)
{
	return posix_fadvise(fd, from, MIN(STEP, to - from), POSIX_FADV_WILLNEED) == 0;
}

void ahead_look(struct ahead *a, double idle, int fd, off_t at, off_t end)
{
	if (a->most == 0)
		return;
	double now = io_now();
	if (now - a->wall >= INTERVAL) {
		if (ahead_waited(a, now, idle)) {
			a->window = MIN(a->window > 0 ? 2 * a->window : FIRST, a->most);
			a->done = at; /* FUSE ignores what it is asked for above some requests */
		}
	}
	if (a->window == 0)
		return;
	const off_t until = MIN(end, at + a->window);
	for (a->done = MAX(a->done, at); a->done < until; a->done += STEP)
		if (!ahead_ask(fd, a->done, until))
			a->most = a->window = 0; /* it cannot */
}

void ahead_request(const struct ahead *a, int fd, off_t from, off_t to)
{
	while (a->window > 0 && from < to && ahead_ask(fd, from, to))
		from += STEP;
}
