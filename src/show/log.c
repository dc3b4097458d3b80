/* SPDX-License-Identifier: MIT
 * --log-file=FILE: what -v prints, with times, appended.
 */
#include "report.h"
#include "show.h"
#include "sink.h"
#include "text.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static struct {
	struct output file;
	int argc; /* 0: the first line is written */
	char **argv;
	time_t start, flushed;
	pthread_mutex_t lock;
} out = {.file = {.option = "log-file", .dir = -1}, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Local time, with the difference to UTC: RFC 3339. */
static void log_write_time(time_t at)
{
	struct tm tm;
	char text[40];
	localtime_r(&at, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	fwrite(text, 1, n, out.file.f);
	fputc(' ', out.file.f);
}

/* The first line comes only when the library has not refused the file as an operand. */
static void log_begin_line(void)
{
	pthread_mutex_lock(&out.lock);
	if (out.argc > 0) {
		log_write_time(out.start);
		fputs("start:", out.file.f);
		for (int i = 0; i < out.argc; i++) {
			fputc(' ', out.file.f);
			print_escaped(out.file.f, out.argv[i]);
		}
		fputc('\n', out.file.f);
		out.argc = 0;
	}
	log_write_time(time(NULL));
}

/* Lines reach the file within a second if others follow. */
static void log_end_line(bool last)
{
	time_t now = time(NULL);
	fputc('\n', out.file.f);
	if (last || now != out.flushed)
		output_flush(&out.file);
	out.flushed = now;
	pthread_mutex_unlock(&out.lock);
}

static bool log_is_wanted(const struct cli *cli)
{
	return cli->log_file && cli->action == ACTION_COPY;
}

static int log_open(struct cli *cli, const struct command_line *line)
{
	if (line->usage_error)
		return EXIT_DONE;
	out.file.path = cli->log_file;
	out.argc = line->argc;
	out.argv = line->argv;
	out.start = time(NULL);
	const int opened = output_open(&out.file, true);
	return opened == EXIT_DONE ? output_claim(cli, &out.file) : opened;
}

/* what: before it. */
static void add_error(const char *what, const struct fcopy_error *e)
{
	log_begin_line();
	print_on(out.file.f, "%s%s", what, error_words(e));
	log_end_line(false);
}

/* A copy that failed. */
static void add_kept(const char *dst, bool existed, const char *part)
{
	log_begin_line();
	print_on(out.file.f, "%s: %s; kept as %s", escaped(dst),
		 existed ? "unchanged" : "not created", escaped(part));
	log_end_line(false);
}

/* Entries that -v lists, warnings, failures, and what is kept of a SRC. */
static void log_event(const struct cli *cli, const struct fcopy_event *event)
{
	const struct fcopy_operand *o = event->operand;
	if (event->kind == FCOPY_EVENT_WARNING)
		add_error("warning: ", event->error);
	if (event->kind == FCOPY_EVENT_FAILED)
		add_error("failed: ", event->error);
	if (event->kind == FCOPY_EVENT_OPERAND && o->state == FCOPY_STATE_PART)
		add_kept(o->dst ? o->dst : o->src, o->existed, o->part);
	if (event->kind != FCOPY_EVENT_ENTRY || !entry_is_listed(cli, event->entry))
		return;
	log_begin_line();
	entry_list(cli, event->entry, out.file.f);
	log_end_line(false);
}

static void log_add_file(const struct summary *o)
{
	const struct fcopy_report *r = o->report;
	char part[PATH_MAX];
	if (o->result < 0) {
		add_error("failed: ", &r->error);
		if (r->part_kept && part_path(r->dst, part))
			add_kept(r->dst, r->existed, part);
		return;
	}
	log_begin_line();
	ending_summary(o->cli, r, out.file.f);
	log_end_line(false);
}

static void log_end(const struct summary *o)
{
	if (o->usage_error)
		return;
	if (!o->tree)
		log_add_file(o);
	log_begin_line();
	fputs("end: ", out.file.f);
	if (o->signal)
		fprintf(out.file.f, "stopped by SIG%s", signals_name(o->signal));
	else
		fputs(o->result < 0 ? "failed" : "done", out.file.f);
	if (o->tree)
		fprintf(out.file.f, ", %" PRIu64 " entries, %" PRIu64 " failed",
			tree_entries(o->tree), o->tree->count[FCOPY_COUNT_FAILED]);
	fprintf(out.file.f, ", %s", amount(o->report->bytes).text);
	log_end_line(true);
}

struct sink log_sink = {.option = "log-file",
			.output = &out.file,
			.is_wanted = log_is_wanted,
			.open = log_open,
			.event = log_event,
			.end = log_end};
