/* SPDX-License-Identifier: MIT
 * --log-file=FILE: what -v prints, with times, appended.
 */
#include "log.h"
#include "ending.h"
#include "entry_line.h"
#include "hint.h"
#include "report.h"
#include "show.h"
#include "signals.h"
#include "text.h"

#include <inttypes.h>
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
static void write_time(time_t at)
{
	struct tm tm;
	char text[40];
	localtime_r(&at, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	fwrite(text, 1, n, out.file.f);
	fputc(' ', out.file.f);
}

/* The first line comes only when the library has not refused the file as an operand. */
static void begin_line(void)
{
	pthread_mutex_lock(&out.lock);
	if (out.argc > 0) {
		write_time(out.start);
		fputs("start:", out.file.f);
		for (int i = 0; i < out.argc; i++) {
			fputc(' ', out.file.f);
			message_print_on(out.file.f, out.argv[i]);
		}
		fputc('\n', out.file.f);
		out.argc = 0;
	}
	write_time(time(NULL));
}

/* Lines reach the file within a second if others follow. */
static void end_line(bool last)
{
	time_t now = time(NULL);
	fputc('\n', out.file.f);
	if (last || now != out.flushed)
		output_flush(&out.file);
	out.flushed = now;
	pthread_mutex_unlock(&out.lock);
}

int log_open(struct cli *cli, int argc, char **argv)
{
	if (!cli->log_file)
		return EXIT_DONE;
	out.file.path = cli->log_file;
	out.argc = argc;
	out.argv = argv;
	out.start = time(NULL);
	const int opened = output_open(&out.file, true);
	return opened == EXIT_DONE ? output_claim(cli, &out.file) : opened;
}

/* The file is an operand: nothing is written to it. */
static void log_check(const struct fcopy_error *e)
{
	if (e->option && strcmp(e->option, "log-file") == 0)
		output_abandon(&out.file);
}

void log_entry(const struct cli *cli, const struct fcopy_entry *e)
{
	if (!out.file.f || !entry_is_listed(cli, e))
		return;
	begin_line();
	entry_list(cli, e, out.file.f);
	end_line(false);
}

void log_error(const char *what, const struct fcopy_error *e)
{
	char text[FCOPY_ERROR_TEXT_MAX];
	log_check(e);
	if (!out.file.f)
		return;
	fcopy_error_text(e, text, sizeof(text));
	begin_line();
	fputs(what, out.file.f);
	message_print_on(out.file.f, text);
	end_line(false);
}

static void log_file_summary(const struct cli *cli, const struct fcopy_report *r)
{
	if (r->error.err != 0) {
		log_error("failed: ", &r->error);
		return;
	}
	begin_line();
	ending_list_summary(cli, r, out.file.f);
	end_line(false);
}

void log_end(const struct cli *cli, const struct fcopy_report *r,
	     const struct fcopy_tree_report *tree)
{
	struct text size = {0};
	log_check(&r->error);
	if (!out.file.f)
		return;
	if (!tree)
		log_file_summary(cli, r);
	begin_line();
	fputs("end: ", out.file.f);
	if (signals_caught())
		fprintf(out.file.f, "stopped by SIG%s", signals_name(signals_caught()));
	else
		fputs(r->error.err ? "failed" : "done", out.file.f);
	text_size(&size, r->bytes);
	if (tree)
		fprintf(out.file.f, ", %" PRIu64 " entries, %" PRIu64 " failed", tree_entries(tree),
			tree->count[FCOPY_COUNT_FAILED]);
	fprintf(out.file.f, ", %s", size.at);
	end_line(true);
}

struct output *log_output(void)
{
	return &out.file;
}
