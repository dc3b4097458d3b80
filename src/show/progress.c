/* SPDX-License-Identifier: MIT
 * The progress line, drawn by a thread that only reads the library's counters, and the status line
 * of SIGUSR1.
 *
 * Between two updates the cursor stays at the start of the line: if the terminal becomes narrower
 * and breaks the line into several, the cursor is still before all of them, and one "erase to the
 * end of the screen" clears them.
 */
#include "cli/cli.h"
#include "io/io.h"
#include "patient.h"
#include "report.h"
#include "show.h"
#include "text.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS     100   /* ten updates a second at most */
#define PATIENCE_MS 1000  /* a shorter copy shows nothing, unless --progress was given */
#define PLAIN_MS    1000  /* between two lines where there is no terminal */
#define SMALL       65536 /* bytes of an entry: below, entries a second say more */
#define ERASE       "\r\033[J"
#define NO_WRAP     "\033[?7l" /* DECAWM: the terminal can become narrower just before the write */
#define WRAP        "\033[?7h"

static struct {
	const struct cli *cli;
	struct fcopy_progress counters;
	bool running, terminal, stop;
	bool sending;                                          /* to a socket */
	bool shown;                                            /* the line is on the terminal now */
	bool used;                                             /* a line was shown before */
	const char *name;                                      /* of the file that is copied */
	char file[sizeof(((struct fcopy_progress *)0)->file)]; /* of a tree, if it takes long */
	struct text waiting;                                   /* what the copy waits for */
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows, and of the terminal */
	pthread_cond_t wake;
	bool waited; /* a plain line about the wait was printed */
} status = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ms(void)
{
	return (uint64_t)(io_now() * 1e3);
}

static const char *phase_state(int phase)
{
	switch (phase) {
	case FCOPY_PHASE_WAIT: return status.waiting.at;
	case FCOPY_PHASE_FSYNC: return "fsync";
	case FCOPY_PHASE_VERIFY: return "verify";
	case FCOPY_PHASE_REPLACE: return status.sending ? "waiting for the receiver" : "replace";
	case FCOPY_PHASE_REMOVE: return "removing the copy";
	default: return NULL;
	}
}

/* What the counters say: the average speed since the phase began. For a signal handler, too. */
static struct line read_counters(void)
{
	/* The library clears `moved` before it stores when the next phase began. */
	uint64_t since = __atomic_load_n(&status.counters.since_ms, __ATOMIC_ACQUIRE);
	uint64_t moved = __atomic_load_n(&status.counters.moved, __ATOMIC_RELAXED);
	int phase = __atomic_load_n(&status.counters.phase, __ATOMIC_RELAXED);
	uint64_t ms = now_ms() - since;
	struct line l = {.name = phase == FCOPY_PHASE_WAIT ? "" : status.name,
			 .state = phase_state(phase),
			 .bytes = __atomic_load_n(&status.counters.bytes, __ATOMIC_RELAXED),
			 .total = __atomic_load_n(&status.counters.total, __ATOMIC_RELAXED),
			 .speed = speed_rate(moved, ms),
			 .left = LINE_UNKNOWN,
			 .elapsed = ms / 1000,
			 .entries = __atomic_load_n(&status.counters.entries, __ATOMIC_RELAXED)};
	l.total_entries = __atomic_load_n(&status.counters.total_entries, __ATOMIC_RELAXED);
	l.at_least = l.total_entries > 0 &&
		     !__atomic_load_n(&status.counters.total_is_final, __ATOMIC_ACQUIRE);
	if (l.entries > 0 && phase == FCOPY_PHASE_COPY && l.bytes / l.entries < SMALL)
		l.entry_speed = speed_rate(l.entries, ms);
	if (l.speed > 0 && l.total > l.bytes)
		l.left = (l.total - l.bytes + l.speed - 1) / l.speed;
	return l;
}

static void progress_draw(struct line *l, bool last)
{
	struct text t = {0};
	if (!terminal_foreground(STDERR_FILENO))
		return; /* a background job is quiet, and `stty tostop` would stop it */
	l->blocks = terminal_utf8();
	if (status.terminal) {
		l->colour = terminal_colour(STDERR_FILENO);
		text_add(&t, ERASE NO_WRAP);
	}
	/* The last column stays empty: some terminals go to the next line when it is filled. */
	line_lay_out(l, status.terminal ? terminal_width(STDERR_FILENO) - 1 : LINE_PLAIN, &t);
	if (status.terminal)
		text_add(&t, WRAP);
	text_add(&t, status.terminal && !last ? "\r" : "\n");
	text_write(&t, STDERR_FILENO);
	status.shown = status.terminal && !last;
	status.used = true;
}

static void erase_line(void)
{
	if (status.shown)
		(void)patient_write(STDERR_FILENO, ERASE, sizeof(ERASE) - 1);
	status.shown = false;
}

static void wait_ms(uint64_t ms)
{
	const struct timespec t = io_deadline((double)ms / 1e3);
	while (!status.stop && pthread_cond_timedwait(&status.wake, &status.lock, &t) == 0)
		;
}

/* Without a terminal, print one line for a wait, not one each second. */
static bool is_repeated_wait(const struct line *l)
{
	bool waits = !status.terminal && l->state == status.waiting.at,
	     again = waits && status.waited;
	status.waited = waits;
	return again;
}

/* The large file of a tree, unless the library is just writing its name. */
static void use_file(struct line *l)
{
	const struct fcopy_progress *c = &status.counters;
	unsigned version = __atomic_load_n(&c->file_version, __ATOMIC_ACQUIRE);
	for (size_t i = 0; i < sizeof(status.file); i++)
		status.file[i] = __atomic_load_n(&c->file[i], __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (version % 2 == 0 && status.file[0] &&
	    version == __atomic_load_n(&c->file_version, __ATOMIC_RELAXED))
		l->name = text_file_name(status.file);
}

/* Replaces the average speed by that of the last seconds. */
static void use_speed(struct line *l)
{
	uint64_t since = __atomic_load_n(&status.counters.since_ms, __ATOMIC_ACQUIRE);
	uint64_t moved = __atomic_load_n(&status.counters.moved, __ATOMIC_RELAXED);
	speed_measure(l, since, now_ms(), moved);
	if (l->total == 0 && !l->at_least && l->entries > 0 && l->total_entries > l->entries)
		l->left = (l->total_entries - l->entries) * (now_ms() - since) / l->entries / 1000;
}

/* The stream does not say how long it is. */
static void hint_size(const struct line *l)
{
	static bool printed;
	if (printed || l->total > 0 || l->bytes == 0 || !cli_receives(status.cli) ||
	    !terminal_foreground(STDERR_FILENO))
		return;
	printed = true;
	erase_line();
	hint_printf("give the length with --size=SIZE to see the percentage and the time left");
}

static void *watch_progress(void *unused)
{
	pthread_mutex_lock(&status.lock);
	wait_ms(status.terminal && status.cli->progress ? TICK_MS : PATIENCE_MS);
	while (!status.stop) {
		struct line l = read_counters();
		use_speed(&l);
		use_file(&l);
		hint_size(&l);
		if (!is_repeated_wait(&l))
			progress_draw(&l, false);
		wait_ms(status.terminal ? TICK_MS : PLAIN_MS);
	}
	pthread_mutex_unlock(&status.lock);
	return unused;
}

/* As dd(1) does: one line, and the copy continues. Any thread may get the signal. */
static void on_usr1(int number)
{
	const int interrupted = errno;
	struct text t = {0};
	struct line l = read_counters();
	(void)number;
	text_add(&t, status.shown ? ERASE "fcopy: " : "fcopy: ");
	l.blocks = terminal_utf8();
	line_lay_out(&l, LINE_PLAIN, &t);
	text_add(&t, "\n");
	text_write(&t, STDERR_FILENO);
	errno = interrupted;
}

/* The new thread blocks all signals: they must interrupt the calls of the copying thread. */
static bool start_watcher(void)
{
	sigset_t all, old;
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&status.wake, &clock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	bool started = pthread_create(&status.thread, NULL, watch_progress, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

/* Shows the name of DST if SRC is a descriptor, a device or a socket. */
static const char *shown_name(const struct cli *cli)
{
	bool unnamed = strncmp(cli->src, "/dev/", 5) == 0 ||
		       fcopy_operand_kind(cli->src, STDIN_FILENO, NULL) != FCOPY_KIND_PATH;
	return text_file_name(unnamed ? cli->dst : cli->src);
}

struct fcopy_progress *progress_answer(const struct cli *cli)
{
	struct sigaction act = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
	status.cli = cli;
	status.name = shown_name(cli);
	status.sending = cli_sends(cli);
	text_clear(&status.waiting);
	text_add(&status.waiting, "waiting for a peer");
	__atomic_store_n(&status.counters.since_ms, now_ms(), __ATOMIC_RELAXED);
	sigaction(SIGUSR1, &act, NULL);
	return &status.counters;
}

struct fcopy_progress *progress_start(const struct cli *cli)
{
	if (cli->keep_listening) {
		signal(SIGUSR1, SIG_IGN); /* a server has no single status line */
		return NULL;
	}
	progress_answer(cli);
	status.terminal = cli->voice.watched && terminal_moves_cursor();
	status.counters.wants_total = cli->voice.progress;
	status.running = cli->voice.progress && start_watcher();
	return &status.counters;
}

void progress_wait_for(const char *what, const char *address)
{
	text_clear(&status.waiting);
	text_add(&status.waiting, "waiting for ");
	text_add(&status.waiting, what);
	text_add(&status.waiting, " on ");
	text_add(&status.waiting, address);
}

void progress_lock(void)
{
	pthread_mutex_lock(&status.lock);
	erase_line();
}

void progress_unlock(void)
{
	pthread_mutex_unlock(&status.lock);
}

void progress_stop(const struct fcopy_report *report)
{
	if (!status.running)
		return;
	pthread_mutex_lock(&status.lock);
	status.stop = true;
	pthread_cond_signal(&status.wake);
	pthread_mutex_unlock(&status.lock);
	pthread_join(status.thread, NULL);
	status.running = false;
	double seconds = ending_seconds(report);
	struct line l = {.name = status.name,
			 .state = ending_state(status.cli, report),
			 .bytes = report->bytes,
			 .speed = speed_rate(report->moved, (uint64_t)(seconds * 1000)),
			 .left = LINE_UNKNOWN,
			 .elapsed = (uint64_t)seconds,
			 .entries = status.counters.entries,
			 .ended = true};
	if (report->error.err != 0)
		erase_line(); /* messages say how it ended */
	else if (status.shown || status.cli->progress || (status.used && !status.terminal))
		progress_draw(&l, true);
}
