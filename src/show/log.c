/* SPDX-License-Identifier: MIT
 * --log-file=FILE: what -v prints, with times, appended.
 */
#include "log.h"
#include "ending.h"
#include "entry_line.h"
#include "hint.h"
#include "output.h"
#include "report.h"
#include "show.h"
#include "signals.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
	FILE *f;
	const char *path;
	int argc; /* 0: the first line is written */
	char **argv;
	time_t start, flushed;
	int lost; /* errno of a failed write */
	pthread_mutex_t lock;
} out = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Local time, with the difference to UTC: RFC 3339. */
static void write_time(time_t at)
{
	struct tm tm;
	char text[40];
	localtime_r(&at, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &tm);
	fwrite(text, 1, n, out.f);
	fputc(' ', out.f);
}

/* The first line comes only when the library has not refused the file as an operand. */
static void begin_line(void)
{
	pthread_mutex_lock(&out.lock);
	if (out.argc > 0) {
		write_time(out.start);
		fputs("start:", out.f);
		for (int i = 0; i < out.argc; i++) {
			fputc(' ', out.f);
			message_print_on(out.f, out.argv[i]);
		}
		fputc('\n', out.f);
		out.argc = 0;
	}
	write_time(time(NULL));
}

/* Lines reach the file within a second if others follow. */
static void end_line(bool last)
{
	time_t now = time(NULL);
	fputc('\n', out.f);
	if ((last || now != out.flushed) && fflush(out.f) != 0 && out.lost == 0)
		out.lost = errno;
	out.flushed = now;
	pthread_mutex_unlock(&out.lock);
}

int log_open(struct cli *cli, int argc, char **argv)
{
	static char reason[FCOPY_PATH_MAX + 64];
	const char *path = cli->log_file;
	if (!path)
		return EXIT_DONE;
	struct output file;
	int fd = output_find(&file, path);
	if (fd == 0)
		fd = output_open(&file, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC);
	output_close(&file);
	out.f = fd < 0 ? NULL : fdopen(fd, "a");
	if (!out.f) {
		message_error(&(struct fcopy_error){.err = fd < 0 ? -fd : errno,
						    .call = "open",
						    .path = path,
						    .reason = file.reason});
		return EXIT_FAILED;
	}
	out.path = path;
	out.argc = argc;
	out.argv = argv;
	out.start = time(NULL);
	snprintf(reason, sizeof(reason), "%s is an operand, too: name another file", path);
	cli_add_output(cli,
		       (struct fcopy_output){
			   .fd = fd, .not_source = true, .option = "log-file", .reason = reason});
	return EXIT_DONE;
}

/* The file is an operand: nothing is written to it. */
static void log_check(const struct fcopy_error *e)
{
	if (out.f && e->option && strcmp(e->option, "log-file") == 0) {
		fclose(out.f);
		out.f = NULL;
	}
}

void log_entry(const struct cli *cli, const struct fcopy_entry *e)
{
	if (!out.f || !entry_is_listed(cli, e))
		return;
	begin_line();
	entry_list(cli, e, out.f);
	end_line(false);
}

void log_error(const char *what, const struct fcopy_error *e)
{
	char text[FCOPY_ERROR_TEXT_MAX];
	log_check(e);
	if (!out.f)
		return;
	fcopy_error_text(e, text, sizeof(text));
	begin_line();
	fputs(what, out.f);
	message_print_on(out.f, text);
	end_line(false);
}

static void log_file_summary(const struct cli *cli, const struct fcopy_report *r)
{
	if (r->error.err != 0) {
		log_error("failed: ", &r->error);
		return;
	}
	begin_line();
	ending_list_summary(cli, r, out.f);
	end_line(false);
}

void log_end(const struct cli *cli, const struct fcopy_report *r,
	     const struct fcopy_tree_report *tree)
{
	struct text size = {0};
	log_check(&r->error);
	if (!out.f)
		return;
	if (!tree)
		log_file_summary(cli, r);
	begin_line();
	fputs("end: ", out.f);
	if (signals_caught())
		fprintf(out.f, "stopped by SIG%s", signals_name(signals_caught()));
	else
		fputs(r->error.err ? "failed" : "done", out.f);
	text_size(&size, r->bytes);
	if (tree)
		fprintf(out.f, ", %" PRIu64 " entries, %" PRIu64 " failed", tree_entries(tree),
			tree->count[FCOPY_COUNT_FAILED]);
	fprintf(out.f, ", %s", size.at);
	end_line(true);
}

int log_close(const char **call, const char **path)
{
	if (!out.f)
		return 0;
	int lost = out.lost ? out.lost : ferror(out.f) ? EIO : 0;
	*path = out.path;
	*call = lost ? "write" : "close";
	if (fclose(out.f) != 0 && lost == 0)
		lost = errno;
	out.f = NULL;
	return lost;
}
