/* SPDX-License-Identifier: MIT
 * --json=lines: one object for each entry, written while the copy runs; the summary comes last.
 * Lines are whole. They are collected in memory, and written by a thread of this file when they
 * fill a buffer, or after a second. A slow reader slows the copy down. After a signal, lines are
 * only collected until the copy has cleaned up.
 */
#include "copy/outcome.h"
#include "io/io.h"
#include "report.h"
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

struct buffer {
	char *text;
	size_t used, size;
};

static struct {
	pthread_mutex_t lock;  /* of all that follows */
	struct buffer added;   /* whole lines */
	struct buffer writing; /* the writer's, which has written so many bytes of it: */
	size_t written;
	int lost;     /* errno of a failed write */
	bool regular; /* standard output is a file: a write to it does not block for long */
	bool dry_run;
	bool started, stop;
	pthread_t writer;
	pthread_cond_t wake; /* the writer */
	pthread_cond_t room; /* some was written */
} out = {.lock = PTHREAD_MUTEX_INITIALIZER, .room = PTHREAD_COND_INITIALIZER};

/* Writes at most as much as a pipe takes without blocking when poll(2) says that it is writable.
 * Returns how many bytes were written: fewer if the copy is to end first. */
static size_t lines_write_text(const char *text, size_t n, bool last, int *err)
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

/* Writes what was added, while other threads add to another buffer. The lock is held, and released
 * in between, unless there is no thread that writes: then one thread at a time does. What a signal
 * has left over comes first next time. */
static void lines_write(bool last)
{
	int err = 0;
	if (out.written == out.writing.used) {
		const struct buffer done = out.writing;
		out.writing = out.added;
		out.added = (struct buffer){done.text, 0, done.size};
		out.written = 0;
	}
	if (out.started)
		pthread_mutex_unlock(&out.lock);
	size_t n = lines_write_text(out.writing.text + out.written, out.writing.used - out.written,
				    last, &err);
	if (out.started)
		pthread_mutex_lock(&out.lock);
	out.written += n;
	out.lost = err ? err : out.lost;
	if (err == EPIPE)
		signals_cancel();
}

static void *lines_run_writer(void *unused)
{
	pthread_mutex_lock(&out.lock);
	while (!out.stop) {
		const struct timespec t = io_deadline(1);
		if (out.added.used < BUFFER || out.lost || signals_caught())
			pthread_cond_timedwait(&out.wake, &out.lock, &t);
		if (!out.stop && !out.lost && !signals_caught())
			lines_write(false);
		pthread_cond_broadcast(&out.room);
	}
	pthread_mutex_unlock(&out.lock);
	return unused;
}

static void lines_lose(int err)
{
	pthread_mutex_lock(&out.lock);
	out.lost = err;
	pthread_mutex_unlock(&out.lock);
}

static void lines_add(const char *line, size_t n)
{
	struct buffer *b = &out.added;
	pthread_mutex_lock(&out.lock);
	/* A slow reader: wait for it, so that memory is bounded. */
	while (out.started && b->used >= WAITING && !out.lost && !signals_caught())
		pthread_cond_wait(&out.room, &out.lock);
	if (b->size - b->used < n) {
		char *more = realloc(b->text, 2 * (b->size + n));
		out.lost = more ? out.lost : ENOMEM;
		b->text = more ? more : b->text;
		b->size = more ? 2 * (b->size + n) : b->size;
	}
	if (!out.lost) {
		memcpy(b->text + b->used, line, n);
		b->used += n;
		if (b->used >= BUFFER)
			pthread_cond_signal(&out.wake);
		if (b->used >= BUFFER && !out.started && !signals_caught())
			lines_write(false);
	}
	pthread_mutex_unlock(&out.lock);
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
	out.dry_run = cli->tree.dry_run;
	out.regular = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&out.wake, &clock);
	sigfillset(&all); /* signals must interrupt the calls of the copying threads */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* Without it, a line may wait for longer. */
	out.started = pthread_create(&out.writer, NULL, lines_run_writer, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Writes the rest. */
static void lines_write_rest(void)
{
	pthread_mutex_lock(&out.lock);
	out.stop = true;
	pthread_cond_signal(&out.wake);
	pthread_mutex_unlock(&out.lock);
	if (out.started)
		pthread_join(out.writer, NULL);
	pthread_mutex_lock(&out.lock);
	for (int i = 0; i < 2 && !out.lost; i++) /* what was left over, and what was added */
		lines_write(true);
	pthread_mutex_unlock(&out.lock);
	free(out.added.text);
	free(out.writing.text);
}

static const char *const action_names[] = {
    [FCOPY_ACTION_COPIED] = "copied",     [FCOPY_ACTION_UNCHANGED] = "unchanged",
    [FCOPY_ACTION_SKIPPED] = "skipped",   [FCOPY_ACTION_LINKED] = "linked",
    [FCOPY_ACTION_EXCLUDED] = "excluded", [FCOPY_ACTION_DELETED] = "deleted",
    [FCOPY_ACTION_VANISHED] = "vanished", [FCOPY_ACTION_FAILED] = "failed",
    [FCOPY_ACTION_REPAIRED] = "repaired"};

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

static void lines_add_entry(const struct fcopy_entry *e)
{
	char *line = NULL;
	size_t n;
	if (e->error && e->error->option && strcmp(e->error->option, "json") == 0)
		return; /* standard output receives the copy */
	struct json j = {.f = open_memstream(&line, &n)};
	if (!j.f) {
		lines_lose(ENOMEM);
		return;
	}
	__fsetlocking(j.f, FSETLOCKING_BYCALLER);
	json_open(&j, NULL, '{');
	json_integer(&j, "entry", 1);
	json_path(&j, "operand", e->operand);
	json_path(&j, "path", e->path);
	json_path(&j, "dst", e->dst);
	json_string(&j, "type", type_name(e->type));
	json_string(&j, "action", action_names[e->action]);
	json_bool(&j, "dry_run", out.dry_run);
	json_integer(&j, "bytes", e->bytes);
	json_string(&j, "engine", e->engine);
	error_write(&j, "error", e->error);
	json_end(&j);
	if (fclose(j.f) == 0)
		lines_add(line, n);
	else
		lines_lose(ENOMEM);
	free(line);
}

/* The line of a copy of one file that has ended. */
static void lines_add_file(const struct cli *cli, const struct fcopy_report *r)
{
	const struct fcopy_step *most = outcome_main_step(r->step, r->steps);
	bool failed = r->error.err != 0;
	lines_add_entry(&(struct fcopy_entry){.action = failed       ? FCOPY_ACTION_FAILED
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
		lines_add_entry(event->entry);
}

static void lines_end(const struct summary *o)
{
	if (o->usage_error)
		return;
	if (!o->tree)
		lines_add_file(o->cli, o->report);
	lines_write_rest();
	if (out.lost)
		output_fail(&output_standard, "write", out.lost);
}

struct sink lines_sink = {.output = &output_standard,
			  .is_wanted = lines_are_wanted,
			  .begin = lines_begin,
			  .event = lines_event,
			  .end = lines_end};
