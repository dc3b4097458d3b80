/* SPDX-License-Identifier: MIT
 * --json: one object about the run, on standard output or in FILE. FILE must not be SRC or DST: it
 * is truncated only when the object is written, after that has been checked.
 */
#include "benchmark.h"
#include "errors.h"
#include "left_print.h"
#include "report.h"
#include "show.h"
#include "sink.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct output file;               /* of --json=FILE */
	bool written;                     /* an object is in it */
	bool linked;                      /* standard output had a name at the start */
	struct errors failures, warnings; /* of all entries of a tree */
	struct json left;                 /* the object of --clean, which grows; or no file */
} out = {.file = {.option = "json", .dir = -1}};

/* Each client of a server has its own list of warnings; the threads of a tree share one list. */
static struct errors *warnings_of(const struct cli *cli)
{
	static _Thread_local struct errors of_client;
	return cli->keep_listening ? &of_client : &out.warnings;
}

static bool object_is_wanted(const struct cli *cli)
{
	return cli->json;
}

/* After a usage error, an object on standard output might be taken for the copy, and FILE be an
 * operand. */
static int object_open(struct cli *cli, const struct command_line *line)
{
	struct stat st = {0};
	out.linked = fstat(STDOUT_FILENO, &st) == 0 && st.st_nlink > 0;
	object_sink.output = cli->json_file ? &out.file : &output_standard;
	if (!cli->json_file) {
		if (line->usage_error)
			object_sink.refused = output_is_operand(cli, &st, false);
		else if (cli->action == ACTION_COPY)
			output_claim_object(cli);
		return EXIT_DONE;
	}
	out.file.path = cli->json_file;
	const int opened = output_open(&out.file, false);
	if (opened != EXIT_DONE)
		return opened;
	if (line->usage_error && fstat(out.file.fd, &st) == 0 && output_is_operand(cli, &st, true))
		return message_option("json", "%s is an operand, too: name another file",
				      cli->json_file);
	return output_claim(cli, &out.file);
}

static FILE *lose_object(const struct fcopy_error *e)
{
	message_error(e);
	output_fail(object_sink.output, e->call, e->err);
	object_sink.output->reported = true;
	return NULL;
}

/* Where the next object goes. NULL after a message: another process has removed FILE or what is
 * standard output, or FILE cannot be truncated. */
static FILE *object_stream(void)
{
	struct stat st = {0};
	const struct output *o = object_sink.output;
	const bool file = o == &out.file;
	bool regular = fstat(o->fd, &st) == 0 && S_ISREG(st.st_mode);
	if (regular && st.st_nlink == 0 && (file || out.linked))
		return lose_object(&(struct fcopy_error){
		    .err = ENOENT,
		    .path = o->path,
		    .reason = "was removed or replaced during the run: no JSON was written"});
	if (file && regular && !out.written && ftruncate(o->fd, 0) < 0)
		return lose_object(
		    &(struct fcopy_error){.err = errno, .call = "ftruncate", .path = o->path});
	out.written = true;
	return o->f;
}

/* The object of --clean lists what is found while it is found. */
static void object_begin(struct cli *cli)
{
	if (cli->action != ACTION_CLEAN || !(out.left.f = object_stream()))
		return;
	json_open(&out.left, NULL, '{');
	json_string(&out.left, "fcopy", FCOPY_VERSION);
	json_path(&out.left, "clean", cli->clean);
	json_open(&out.left, "left", '[');
}

static void object_event(const struct cli *cli, const struct fcopy_event *event)
{
	if (event->kind == FCOPY_EVENT_WARNING)
		errors_add(warnings_of(cli), event->error);
	else if (event->kind == FCOPY_EVENT_FAILED)
		errors_add(&out.failures, event->error);
	else if (event->kind == FCOPY_EVENT_LISTENING && cli->keep_listening)
		object_stream(); /* no object of an earlier run remains */
}

static void object_report(const struct summary *o, FILE *f)
{
	struct errors *warnings = warnings_of(o->cli);
	report_json(o, warnings, &out.failures, f);
	errors_clear(warnings);
}

/* In the thread of the client. FILE may be read while the server runs. */
static void object_client(const struct summary *o)
{
	if (!o->cli->keep_listening)
		return;
	flockfile(stdout);
	FILE *f = object_stream();
	if (f)
		object_report(o, f);
	output_flush(object_sink.output);
	funlockfile(stdout);
}

static void object_left(const struct cli *cli, const struct fcopy_left *l)
{
	(void)cli;
	if (out.left.f)
		left_json(&out.left, l);
}

static void end_left(const struct summary *o)
{
	struct json *j = &out.left;
	if (!j->f)
		return;
	json_close(j, ']');
	json_bool(j, "done", o->result == 0);
	error_write(j, "error", &o->report->error);
	json_close(j, '}');
	fputc('\n', j->f);
}

static void object_write(const struct summary *o, FILE *f)
{
	if (o->usage_error)
		report_json_usage(o->usage_error, f);
	else if (o->cli->action == ACTION_LIST)
		modes_json(f);
	else if (o->benchmark)
		benchmark_json(o->benchmark, f);
	else
		object_report(o, f);
}

/* A server has written the objects of its clients. */
static void object_end(const struct summary *o)
{
	FILE *f;
	if (!o->usage_error && o->cli->action == ACTION_CLEAN)
		end_left(o);
	else if ((o->usage_error || !o->cli->keep_listening || o->result < 0) &&
		 (f = object_stream()))
		object_write(o, f);
	output_flush(object_sink.output);
}

struct sink object_sink = {.option = "json",
			   .is_wanted = object_is_wanted,
			   .open = object_open,
			   .begin = object_begin,
			   .event = object_event,
			   .client = object_client,
			   .left = object_left,
			   .end = object_end};
