/* SPDX-License-Identifier: MIT
 * SIGINT, SIGTERM and SIGHUP: the first one asks the copy to stop and clean up, a later one kills.
 * timeout(1) sends its signal twice at once, to the process and to its group: that counts as one.
 * SIGALRM is of an alarm(2) that was set before execve(2), and ends the copy like SIGTERM: so the
 * timer of this file has another signal. So does SIGXCPU, which the kernel sends at the soft limit
 * of CPU time and after each second more: later ones kill nothing, the hard limit does.
 */
#include "show.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#define ONE_SIGNAL_NS 200000000 /* signals within this time after the first one are ignored */
#define TIMER_SIGNAL  SIGRTMIN

static volatile int *cancel_flag, *stop_flag;
static volatile sig_atomic_t caught, pipe_broke;
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGXCPU};

#define ENDING (sizeof(ending) / sizeof(*ending))

static bool taken[ENDING]; /* false for a signal that was ignored at the start, as by nohup(1) */
static timer_t timer;
static bool has_timer; /* false: the kernel refused it, and the second signal kills at once */

static void handle_next(void (*handler)(int))
{
	for (size_t i = 0; i < ENDING; i++)
		if (taken[i])
			signal(ending[i], ending[i] == SIGXCPU ? SIG_IGN : handler);
}

static void on_signal(int number)
{
	const struct itimerspec soon = {.it_value.tv_nsec = ONE_SIGNAL_NS, .it_interval.tv_sec = 1};
	if (number == SIGTERM && stop_flag) {
		__atomic_store_n(stop_flag, 1, __ATOMIC_RELAXED); /* other threads read it */
	} else {
		caught = number;
		__atomic_store_n(cancel_flag, 1, __ATOMIC_RELAXED);
	}
	bool armed = has_timer && timer_settime(timer, 0, &soon, NULL) == 0;
	handle_next(armed ? SIG_IGN : SIG_DFL);
}

/* The signal may have come just before a call that blocks: the timer then interrupts that call. */
static void on_timer(int number)
{
	(void)number;
	handle_next(SIG_DFL);
}

void signals_ignore_pipe(void)
{
	signal(SIGPIPE, SIG_IGN);
}

void signals_catch(volatile int *cancel, volatile int *stop)
{
	struct sigaction act = {.sa_handler = on_timer}, old;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = TIMER_SIGNAL};
	cancel_flag = cancel;
	stop_flag = stop;
	sigaction(TIMER_SIGNAL, &act, NULL);
	has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
	act.sa_handler = on_signal;
	for (size_t i = 0; i < ENDING; i++)
		taken[i] = sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN;
	for (size_t i = 0; i < ENDING; i++)
		if (taken[i])
			sigaction(ending[i], &act, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error to report: EFBIG */
}

static void handle_pipe(void (*handler)(int), int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;
	if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGPIPE, &act, NULL);
}

void signals_catch_pipe(void)
{
	handle_pipe(on_signal, 0);
}

static void on_pipe(int number)
{
	pipe_broke = number;
}

void signals_note_pipe(void)
{
	handle_pipe(on_pipe, SA_RESTART); /* kill(1) may send it while a call waits */
}

bool signals_take_pipe(void)
{
	if (pipe_broke && !caught)
		caught = pipe_broke;
	return pipe_broke != 0;
}

void signals_cancel(void)
{
	__atomic_store_n(cancel_flag, 1, __ATOMIC_RELAXED);
}

const char *signals_name(int number)
{
	return number == SIGINT    ? "INT"
	       : number == SIGTERM ? "TERM"
	       : number == SIGHUP  ? "HUP"
	       : number == SIGALRM ? "ALRM"
	       : number == SIGXCPU ? "XCPU"
				   : "PIPE";
}

int signals_caught(void)
{
	return caught;
}

void signals_reraise(void)
{
	if (!caught)
		return;
	signal(caught, SIG_DFL);
	raise(caught);
}
