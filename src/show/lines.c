/* SPDX-License-Identifier: MIT
 * --json=lines: one object for each entry, written while the copy runs; the summary comes last.
 * Lines are whole, and are written within a second. They are collected in memory, and written by
 * the thread that fills a buffer, or by a thread of this file after a second. A slow reader slows
 * the copy down. After a signal, lines are only collected until the copy has cleaned up.
 */
#define _GNU_SOURCE
#include "json.h"
#include "show.h"
#include "sink.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER  ((size_t)32 << 10) /* bytes that are written at once */
#define WAITING ((size_t)1 << 20)  /* ... and that wait for a slow reader */
#define TICK_MS 200

static struct {
	pthread_mutex_t lock; /* of all that follows */
	char *text;           /* whole lines, but the first may be written in part */
	size_t used, size;
	bool regular; /* standard output is a file: a write to it does not block for long */
	bool dry_run;
	int lost; /* errno of a failed write */
	bool started, stop;
	bool writes; /* a thread is writing an earlier part */
	pthread_cond_t wake;
	pthread_t thread;
	pthread_key_t key; /* ends `own` with its thread */
	pthread_cond_t written;
} out = {.lock = PTHREAD_MUTEX_INITIALIZER, .written = PTHREAD_COND_INITIALIZER};

/* The line that this thread makes. */
static _Thread_local struct own {
	FILE *f;
	char *text;
	size_t size;
} own;

static void free_own(void *mine)
{
	struct own *o = mine;
	if (!o->f) /* end_lines() was called in this thread */
		return;
	fclose(o->f);
	free(o->text);
	o->f = NULL;
}

static FILE *begin_line(void)
{
	if (own.f) {
		rewind(own.f);
		return own.f;
	}
	own.f = open_memstream(&own.text, &own.size);
	if (own.f) {
		__fsetlocking(own.f, FSETLOCKING_BYCALLER);
		pthread_setspecific(out.key, &own);
	}
	return own.f;
}

/* Writes at most as much as a pipe takes without blocking when poll(2) says that it is writable.
 * Returns how many bytes were written: fewer if the copy is to end first. The lock is not held. */
static size_t write_text(const char *text, size_t n, bool last, int *err)
{
	size_t at = 0;
	while (at < n && (last || !signals_caught())) {
		struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
		if (!out.regular && poll(&p, 1, TICK_MS) <= 0)
			continue;
		size_t most = out.regular || n - at < PIPE_BUF ? n - at : PIPE_BUF;
		ssize_t wrote = write(STDOUT_FILENO, text + at, most);
		if (wrote >= 0)
			at += (size_t)wrote;
		else if (errno != EINTR && errno != EAGAIN) {
			*err = errno;
			break;
		}
	}
	return at;
}

static bool reserve(size_t n)
{
	if (out.size - out.used >= n)
		return true;
	char *more = realloc(out.text, 2 * (out.size + n));
	if (!more) {
		out.lost = ENOMEM;
		return false;
	}
	out.text = more;
	out.size = 2 * (out.size + n);
	return true;
}

/* Writes what has been added, while other threads add to an empty buffer. The lock is held,
 * and released in between. What a signal has left over comes first next time. */
static void write_lines(bool last)
{
	while (out.writes)
		pthread_cond_wait(&out.written, &out.lock);
	if (out.used == 0 || out.lost || (!last && signals_caught()))
		return;
	char *text = out.text;
	size_t n = out.used, size = out.size;
	int err = 0;
	out.text = NULL;
	out.used = out.size = 0;
	out.writes = true;
	pthread_mutex_unlock(&out.lock);
	size_t at = write_text(text, n, last, &err);
	pthread_mutex_lock(&out.lock);
	out.writes = false;
	pthread_cond_broadcast(&out.written);
	if (err) {
		out.lost = err;
		if (err == EPIPE)
			signals_cancel();
	} else if (at < n && reserve(n - at)) {
		memmove(out.text + n - at, out.text, out.used);
		memcpy(out.text, text + at, n - at);
		out.used += n - at;
	} else if (!out.text) {
		out.text = text; /* use it again */
		out.size = size;
		return;
	}
	free(text);
}

static void add_line(const char *line, size_t n)
{
	pthread_mutex_lock(&out.lock);
	/* A slow reader: wait for it, so that memory is bounded. */
	while (out.writes && out.used >= WAITING && !signals_caught())
		pthread_cond_wait(&out.written, &out.lock);
	if (out.lost == 0 && reserve(n)) {
		memcpy(out.text + out.used, line, n);
		out.used += n;
		if (out.used >= BUFFER && !out.writes)
			write_lines(false);
	}
	pthread_mutex_unlock(&out.lock);
}

static void lose_lines(void)
{
	pthread_mutex_lock(&out.lock);
	out.lost = ENOMEM;
	pthread_mutex_unlock(&out.lock);
}

static void *watch_lines(void *unused)
{
	pthread_mutex_lock(&out.lock);
	while (!out.stop) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_sec++;
		pthread_cond_timedwait(&out.wake, &out.lock, &t);
		if (!out.stop)
			write_lines(false);
	}
	pthread_mutex_unlock(&out.lock);
	return unused;
}

static bool lines_are_wanted(const struct cli *cli)
{
	return cli->json_lines && cli->action == ACTION_COPY;
}

static void lines_begin(struct cli *cli)
{
	sigset_t all, old;
	struct stat st;
	pthread_condattr_t clock;
	if (pthread_key_create(&out.key, free_own) != 0) {
		out.lost = ENOMEM;
		return;
	}
	out.dry_run = cli->tree.dry_run;
	out.regular = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&out.wake, &clock);
	sigfillset(&all); /* signals must interrupt the calls of the copying threads */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	out.started = pthread_create(&out.thread, NULL, watch_lines, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Writes the rest. */
static void end_lines(void)
{
	pthread_mutex_lock(&out.lock);
	out.stop = true;
	pthread_cond_signal(&out.wake);
	pthread_mutex_unlock(&out.lock);
	if (out.started)
		pthread_join(out.thread, NULL);
	pthread_mutex_lock(&out.lock);
	write_lines(true);
	free(out.text);
	out.text = NULL;
	out.used = out.size = 0;
	pthread_mutex_unlock(&out.lock);
	if (own.f)
		free_own(&own);
}

static const char *action_name(enum fcopy_action action)
{
	switch (action) {
	case FCOPY_ACTION_COPIED: return "copied";
	case FCOPY_ACTION_UNCHANGED: return "unchanged";
	case FCOPY_ACTION_SKIPPED: return "skipped";
	case FCOPY_ACTION_LINKED: return "linked";
	case FCOPY_ACTION_EXCLUDED: return "excluded";
	case FCOPY_ACTION_DELETED: return "deleted";
	case FCOPY_ACTION_VANISHED: return "vanished";
	case FCOPY_ACTION_FAILED: return "failed";
	case FCOPY_ACTION_REPAIRED: return "repaired";
	}
	return NULL;
}

static const char *type_name(unsigned mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return "file";
	case S_IFDIR: return "directory";
	case S_IFLNK: return "symlink";
	case S_IFIFO: return "fifo";
	case S_IFSOCK: return "socket";
	case S_IFBLK:
	case S_IFCHR: return "device";
	default: return NULL;
	}
}

/* Cancels the copy if standard output has no reader any more. */
static void add_entry(const struct fcopy_entry *e)
{
	if (e->error && e->error->option && strcmp(e->error->option, "json") == 0)
		return; /* standard output receives the copy */
	struct json j = {.f = begin_line()};
	if (!j.f) {
		lose_lines();
		return;
	}
	json_open(&j, NULL, '{');
	json_integer(&j, "entry", 1);
	json_path(&j, "operand", e->operand);
	json_path(&j, "path", e->path);
	json_path(&j, "dst", e->dst);
	json_string(&j, "type", type_name(e->type));
	json_string(&j, "action", action_name(e->action));
	json_bool(&j, "dry_run", out.dry_run);
	json_integer(&j, "bytes", e->bytes);
	json_string(&j, "engine", e->engine);
	if (e->error)
		error_write(&j, "error", e->error);
	else
		json_string(&j, "error", NULL);
	json_close(&j, '}');
	fputc('\n', j.f);
	off_t n = ftello(j.f);
	if (n > 0 && fflush(j.f) == 0)
		add_line(own.text, (size_t)n);
	else
		lose_lines();
}

/* The line of a copy of one file that has ended. */
static void add_file(const struct cli *cli, const struct fcopy_report *r)
{
	const struct fcopy_step *most = NULL;
	for (size_t i = 0; i < r->steps; i++)
		if (r->step[i].bytes > 0 && (!most || r->step[i].bytes > most->bytes))
			most = &r->step[i];
	bool failed = r->error.err != 0;
	add_entry(&(struct fcopy_entry){.action = failed       ? FCOPY_ACTION_FAILED
						  : r->skipped ? FCOPY_ACTION_SKIPPED
							       : FCOPY_ACTION_COPIED,
					.operand = cli->src,
					.dst = r->dst[0] ? r->dst : cli->dst,
					.type = r->type,
					.bytes = failed || r->skipped ? 0 : r->bytes,
					.engine = most && !failed ? most->engine : NULL,
					.error = failed ? &r->error : NULL});
}

static void lines_event(const struct cli *cli, const struct fcopy_event *event)
{
	(void)cli;
	if (event->kind == FCOPY_EVENT_ENTRY)
		add_entry(event->entry);
}

static void lines_end(const struct summary *o)
{
	if (o->usage_error)
		return;
	if (!o->tree)
		add_file(o->cli, o->report);
	end_lines();
	if (out.lost)
		output_fail(&output_standard, "write", out.lost);
}

struct sink lines_sink = {.output = &output_standard,
			  .is_wanted = lines_are_wanted,
			  .begin = lines_begin,
			  .event = lines_event,
			  .end = lines_end};
