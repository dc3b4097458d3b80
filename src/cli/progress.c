/* SPDX-License-Identifier: MIT
 * The progress line, drawn by a thread that only looks at the library's counters, and the status
 * line of SIGUSR1.
 *
 * The cursor waits at the start of the line: when the terminal gets narrower and breaks the line
 * into several, it is still before all of it, and one "erase what follows" clears them.
 */
#define _GNU_SOURCE
#include "cli.h"
#include "line.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS    100  /* ten updates a second at most */
#define PATIENCE   1000 /* a shorter copy shows nothing, unless it was asked for */
#define PLAIN_MS   1000 /* between two lines where there is no terminal */
#define SAMPLES    16   /* of the current speed: the last 1.6 s */
#define ERASE      "\r\033[J"
#define ERASE_SIZE (sizeof(ERASE) - 1)

static struct {
	const struct cli *cli;
	struct fcopy_progress counters;
	uint64_t start_ms;
	bool running, terminal, stop;
	bool sending; /* to a socket */
	bool shown;   /* the line is on the terminal now */
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows, and of the terminal */
	pthread_cond_t wake;
	uint64_t phase_ms; /* when it began; read without the lock once phase says so */
	int phase;
	uint64_t when[SAMPLES], bytes[SAMPLES];
	unsigned samples; /* taken in this phase */
} p = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t rate(uint64_t bytes, uint64_t ms)
{
	return ms ? bytes / ms * 1000 + bytes % ms * 1000 / ms : 0;
}

static const char *phase_name(int phase)
{
	switch (phase) {
	case FCOPY_PHASE_FLUSH: return "flushing";
	case FCOPY_PHASE_VERIFY: return "verifying";
	/* A socket's commit is to wait until everything has arrived. */
	case FCOPY_PHASE_COMMIT: return p.sending ? "sending" : "committing";
	default: return p.sending ? "sending" : "copying";
	}
}

/* What the counters say. When their phase began is known of the first one, and of others only to
 * who watches: without that there are no speeds, and the time is the whole copy's. */
static struct line look(void)
{
	int phase = __atomic_load_n(&p.counters.phase, __ATOMIC_RELAXED);
	bool known = phase == __atomic_load_n(&p.phase, __ATOMIC_ACQUIRE);
	struct line l = {.phase = phase_name(phase),
			 .bytes = __atomic_load_n(&p.counters.bytes, __ATOMIC_RELAXED),
			 .total = __atomic_load_n(&p.counters.total, __ATOMIC_RELAXED),
			 .milliseconds = now_ms() - (known ? p.phase_ms : p.start_ms)};
	if (l.total == 0 && phase == FCOPY_PHASE_COPY)
		l.total = p.cli->copy.expected_size;
	l.average = known ? rate(l.bytes, l.milliseconds) : 0;
	return l;
}

/* The speed since the oldest sample that is kept. */
static void add_current(struct line *l)
{
	unsigned at = p.samples++ % SAMPLES;
	unsigned oldest = p.samples > SAMPLES ? p.samples % SAMPLES : 0;
	p.when[at] = now_ms();
	p.bytes[at] = l->bytes;
	if (at == oldest)
		l->current = l->average;
	else if (l->bytes >= p.bytes[oldest])
		l->current = rate(l->bytes - p.bytes[oldest], p.when[at] - p.when[oldest]);
}

static void notice_phase(void)
{
	int phase = __atomic_load_n(&p.counters.phase, __ATOMIC_RELAXED);
	if (phase == p.phase)
		return;
	p.phase_ms = now_ms();
	__atomic_store_n(&p.phase, phase, __ATOMIC_RELEASE);
	p.samples = 0;
}

static void show(struct line *l, bool last)
{
	struct text t;
	text_clear(&t);
	if (p.terminal && !terminal_foreground(STDERR_FILENO))
		return; /* a job in the background is to be quiet, and `stty tostop` would stop it
			 */
	if (p.terminal) {
		l->colour = terminal_colour(STDERR_FILENO);
		l->blocks = terminal_utf8();
		text_add(&t, ERASE);
	}
	/* The last column stays empty: some terminals go to the next line when it is filled. */
	line_lay_out(l, p.terminal ? terminal_width(STDERR_FILENO) - 1 : LINE_PLAIN, &t);
	text_add(&t, p.terminal && !last ? "\r" : "\n");
	text_write(&t, STDERR_FILENO);
	p.shown = p.terminal && !last;
}

static void wait_ms(uint64_t ms)
{
	uint64_t until = now_ms() + ms;
	struct timespec t = {(time_t)(until / 1000), (long)(until % 1000) * 1000000};
	while (!p.stop && pthread_cond_timedwait(&p.wake, &p.lock, &t) == 0)
		;
}

static void *watch(void *unused)
{
	pthread_mutex_lock(&p.lock);
	wait_ms(p.terminal && p.cli->progress ? TICK_MS : PATIENCE);
	while (!p.stop) {
		notice_phase();
		struct line l = look();
		add_current(&l);
		show(&l, false);
		wait_ms(p.terminal ? TICK_MS : PLAIN_MS);
	}
	pthread_mutex_unlock(&p.lock);
	return unused;
}

/* As dd does. The copy's threads go on meanwhile; whatever thread gets the signal. */
static void on_usr1(int number)
{
	const int interrupted = errno;
	struct text t;
	struct line l = look();
	(void)number;
	text_clear(&t);
	text_add(&t, p.shown ? ERASE "fcopy: " : "fcopy: ");
	line_lay_out(&l, LINE_PLAIN, &t);
	text_add(&t, "\n");
	text_write(&t, STDERR_FILENO);
	errno = interrupted;
}

/* Signals are for the copying thread: they interrupt its calls. */
static bool start_thread(void)
{
	sigset_t all, old;
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&p.wake, &clock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	bool started = pthread_create(&p.thread, NULL, watch, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

struct fcopy_progress *progress_answer(const struct cli *cli)
{
	struct sigaction act = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
	p.cli = cli;
	p.sending = fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) >= FCOPY_KIND_SOCKET;
	p.start_ms = p.phase_ms = now_ms();
	sigaction(SIGUSR1, &act, NULL);
	return &p.counters;
}

struct fcopy_progress *progress_start(const struct cli *cli)
{
	progress_answer(cli);
	p.terminal = !cli->quiet && isatty(STDERR_FILENO);
	p.running = (p.terminal || cli->progress) && start_thread();
	return &p.counters;
}

void progress_hide(void)
{
	pthread_mutex_lock(&p.lock);
	if (p.shown)
		(void)!write(STDERR_FILENO, ERASE, ERASE_SIZE);
	p.shown = false;
}

void progress_show(void)
{
	pthread_mutex_unlock(&p.lock);
}

void progress_stop(const struct fcopy_report *report)
{
	if (!p.running)
		return;
	pthread_mutex_lock(&p.lock);
	p.stop = true;
	pthread_cond_signal(&p.wake);
	pthread_mutex_unlock(&p.lock);
	pthread_join(p.thread, NULL);
	p.running = false;
	uint64_t ms = now_ms() - p.start_ms, expected = p.cli->copy.expected_size;
	bool surprise = expected && expected != report->bytes; /* of what no share is known */
	struct line l = {.phase = report->error.err ? "stopped"
				  : p.sending       ? "sent"
						    : "copied",
			 .bytes = report->bytes,
			 .total = report->error.err ? expected
				  : surprise        ? 0
						    : report->bytes,
			 .average = rate(report->bytes, ms),
			 .milliseconds = ms,
			 .ended = true};
	if (p.shown || p.cli->progress)
		show(&l, true);
}
