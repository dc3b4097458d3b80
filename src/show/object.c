/* SPDX-License-Identifier: MIT
 * --json: one object about the run, on standard output or in FILE. FILE must not be SRC or DST: it
 * is truncated only when the object is written, after that has been checked.
 */
#include "benchmark.h"
#include "report.h"
#include "show.h"
#include "sink.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* --json: the outcome of one copy as an object. No key is ever left out. */

/* The operand decides: the peer of a Unix socket has no HOST:PORT, and may confirm the copy. */
static void add_peers(struct json *j, const struct summary *o)
{
	const struct fcopy_report *r = o->report;
	json_string(j, "src_peer", r->src_peer[0] ? r->src_peer : NULL);
	json_string(j, "dst_peer", r->dst_peer[0] ? r->dst_peer : NULL);
	if (cli_sends(o->cli))
		json_bool(j, "confirmed", r->confirmed);
	else
		json_null(j, "confirmed");
}

/* null: no client of HTTP. */
static void add_http(struct json *j, const struct fcopy_http *h)
{
	if (!h->method && h->status == 0) {
		json_null(j, "http");
		return;
	}
	json_open(j, "http", '{');
	json_string(j, "method", h->method);
	json_integer(j, "status", (uint64_t)h->status);
	json_path(j, "file", h->file);
	json_integer(j, "first", h->first);
	json_integer(j, "length", h->length);
	json_bool(j, "last", h->last);
	json_close(j, '}');
}

/* null: the threads of a tree verify each file as a part of its copy. */
static void add_verify(struct json *j, const struct summary *o)
{
	const double seconds = o->report->seconds[FCOPY_PHASE_VERIFY];
	if (o->tree && o->cli->copy.verify && seconds == 0)
		json_null(j, "verify");
	else
		json_seconds(j, "verify", seconds);
}

static void add_phases(struct json *j, const struct summary *o)
{
	const struct fcopy_report *r = o->report;
	json_open(j, "phases", '{');
	json_seconds(j, "wait", r->seconds[FCOPY_PHASE_WAIT]);
	json_seconds(j, "copy", r->seconds[FCOPY_PHASE_COPY]);
	json_seconds(j, "fsync", r->seconds[FCOPY_PHASE_FSYNC]);
	add_verify(j, o);
	json_seconds(j, "replace", r->seconds[FCOPY_PHASE_REPLACE]);
	json_seconds(j, "remove", r->seconds[FCOPY_PHASE_REMOVE]);
	json_close(j, '}');
}

static void add_engines(struct json *j, const struct fcopy_report *r)
{
	json_open(j, "engines", '[');
	for (size_t i = 0; i < r->steps; i++) {
		const struct fcopy_step *s = &r->step[i];
		json_open(j, NULL, '{');
		json_string(j, "engine", s->engine);
		json_integer(j, "bytes", s->bytes);
		json_integer(j, "calls", s->calls);
		json_integer(j, "threads", s->threads);
		json_seconds(j, "seconds", s->seconds);
		json_string(j, "refused_call", s->refusal ? s->refusal_call : NULL);
		json_errno(j, "refused_errno", s->refusal);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_usage(struct json *j, const struct usage *u)
{
	json_seconds(j, "real", u->real);
	json_seconds(j, "user", u->user);
	json_seconds(j, "sys", u->sys);
	json_integer(j, "voluntary_switches", (uint64_t)u->voluntary);
	json_integer(j, "involuntary_switches", (uint64_t)u->involuntary);
	json_integer(j, "minor_faults", (uint64_t)u->minor_faults);
	json_integer(j, "major_faults", (uint64_t)u->major_faults);
	json_integer(j, "peak_memory", usage_peak_memory());
}

static const char *const state_names[] = {[FCOPY_STATE_COMPLETE] = "complete",
					  [FCOPY_STATE_INCOMPLETE] = "incomplete",
					  [FCOPY_STATE_PART] = "part",
					  [FCOPY_STATE_UNCHANGED] = "unchanged",
					  [FCOPY_STATE_SKIPPED] = "skipped"};

/* One member for each count. */
static void json_counts(struct json *j, const uint64_t count[FCOPY_COUNTS])
{
	for (int i = 0; i < FCOPY_COUNTS; i++)
		json_integer(j, fcopy_counts()[i].key, count[i]);
}

/* One object for each SRC, also for those that were not begun, as an array. */
static void operands_add(struct json *j, const struct cli *cli)
{
	static const struct fcopy_operand none;
	size_t next = 0, count;
	const struct fcopy_operand *ended = operands_ended(&count);
	json_open(j, "operands", '[');
	for (size_t i = 0; i < cli->source_count; i++) {
		bool found = next < count && ended[next].index == i;
		const struct fcopy_operand *o = found ? &ended[next++] : &none;
		json_open(j, NULL, '{');
		json_path(j, "src", cli->sources[i]);
		json_path(j, "dst", o->dst);
		json_string(j, "state", found ? state_names[o->state] : "not begun");
		json_bool(j, "committed", o->committed);
		json_path(j, "part", o->part);
		json_counts(j, o->count);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_tree(struct json *j, const struct summary *o, const struct errors *failures)
{
	const struct fcopy_tree_report *r = o->tree;
	if (!r) {
		json_null(j, "tree");
		return;
	}
	json_open(j, "tree", '{');
	json_integer(j, "sources", o->cli->source_count);
	operands_add(j, o->cli);
	json_bool(j, "committed", r->committed);
	json_path(j, "part", r->part[0] ? r->part : NULL);
	json_counts(j, r->count);
	json_integer(j, "threads_most", r->threads_most);
	json_seconds(j, "threads_average", r->threads_average);
	json_string(j, "threads_reason", r->threads_reason);
	errors_write(failures, j, "failures");
	json_close(j, '}');
}

/* null: no shards. */
static void add_shard(struct json *j, const struct summary *o)
{
	const struct fcopy_shard *s = &o->cli->copy.shard;
	if (s->count > 0 && !s->finish)
		json_integer(j, "shard", s->index);
	else
		json_null(j, "shard");
	if (s->count == 0) {
		json_null(j, "shards");
		json_null(j, "committed");
		return;
	}
	json_integer(j, "shards", s->count);
	json_bool(j, "committed", o->report->committed);
}

/* The name of the signal that ended the copy, or null. */
static void add_signal(struct json *j, int number)
{
	char name[16];
	snprintf(name, sizeof(name), "SIG%s", signals_name(number));
	json_string(j, "interrupted", number ? name : NULL);
}

static void report_json(const struct summary *o, const struct errors *warnings,
			const struct errors *failures, FILE *f)
{
	struct json j;
	const struct fcopy_report *r = o->report;
	const struct fcopy_mode *mode = o->cli->copy.mode;
	json_begin(&j, f);
	json_path(&j, "src", o->cli->src);
	json_path(&j, "dst", r->dst[0] && o->cli->source_count < 2 ? r->dst : o->cli->dst);
	json_string(&j, "mode", mode ? mode->name : fcopy_modes()->name);
	json_bool(&j, "done", r->error.err == 0 && !o->cli->declined && r->http.status < 300);
	json_bool(&j, "dry_run", o->cli->tree.dry_run);
	json_integer(&j, "bytes", r->bytes);
	json_integer(&j, "data", r->data);
	json_integer(&j, "moved", r->moved);
	json_integer(&j, "holes", r->holes);
	json_integer(&j, "resumed", r->resumed);
	json_bool(&j, "cloned", r->cloned);
	json_bool(&j, "skipped", r->skipped);
	add_signal(&j, o->signal);
	json_bool(&j, "source_changed", r->source_changed);
	json_string(&j, "not_atomic", r->not_atomic);
	add_peers(&j, o);
	add_http(&j, &r->http);
	add_usage(&j, &o->usage);
	add_phases(&j, o);
	add_engines(&j, r);
	add_shard(&j, o);
	error_write(&j, "error", &r->error);
	errors_write(warnings, &j, "warnings");
	add_tree(&j, o, failures);
	json_end(&j);
}

/* --list */
static void modes_json(FILE *f)
{
	struct json j;
	json_begin(&j, f);
	json_open(&j, "list", '[');
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		json_open(&j, NULL, '{');
		json_integer(&j, "number", (uint64_t)m->number);
		json_string(&j, "mode", m->name);
		json_string(&j, "alias", m->alias);
		json_string(&j, "engine", m->engine);
		json_string(&j, "summary", m->summary);
		json_string(&j, "missing", fcopy_mode_missing(m));
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_end(&j);
}

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
	json_begin(&out.left, out.left.f);
	json_path(&out.left, "clean", cli->clean);
	json_open(&out.left, "left", '[');
}

/* Clients that are served at the same time report from their own threads. */
static void object_event(const struct cli *cli, const struct fcopy_event *event)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	if (event->kind == FCOPY_EVENT_WARNING)
		errors_add(warnings_of(cli), event->error);
	else if (event->kind == FCOPY_EVENT_FAILED)
		errors_add(&out.failures, event->error);
	else if (event->kind == FCOPY_EVENT_LISTENING && cli->keep_listening)
		object_stream(); /* no object of an earlier run remains */
	pthread_mutex_unlock(&lock);
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
	json_end(j);
}

static void object_write(const struct summary *o, FILE *f)
{
	struct json j;
	if (o->usage_error) { /* nothing was copied */
		json_begin(&j, f);
		json_bool(&j, "done", false);
		json_string(&j, "usage", o->usage_error);
		json_end(&j);
	} else if (o->cli->action == ACTION_LIST)
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
