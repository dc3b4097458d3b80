/* SPDX-License-Identifier: MIT
 * --json: the outcome of one copy as an object. No key is ever left out.
 */
#include "errors.h"
#include "report.h"
#include "signals.h"

#include <signal.h>

/* The operand decides: the peer of a Unix socket has no HOST:PORT, and may confirm the copy. */
static void add_peers(struct json *j, const struct summary *o)
{
	const struct fcopy_report *r = o->report;
	json_string(j, "src_peer", r->src_peer[0] ? r->src_peer : NULL);
	json_string(j, "dst_peer", r->dst_peer[0] ? r->dst_peer : NULL);
	if (cli_sends(o->cli))
		json_bool(j, "confirmed", r->confirmed);
	else
		json_string(j, "confirmed", NULL);
}

/* null: no client of HTTP. */
static void add_http(struct json *j, const struct fcopy_http *h)
{
	if (!h->method && h->status == 0) {
		json_string(j, "http", NULL);
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

static void add_phases(struct json *j, const struct fcopy_report *r)
{
	json_open(j, "phases", '{');
	json_seconds(j, "wait", r->seconds[FCOPY_PHASE_WAIT]);
	json_seconds(j, "copy", r->seconds[FCOPY_PHASE_COPY]);
	json_seconds(j, "fsync", r->seconds[FCOPY_PHASE_FSYNC]);
	json_seconds(j, "verify", r->seconds[FCOPY_PHASE_VERIFY]);
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

static void add_tree(struct json *j, const struct summary *o, const struct errors *failures)
{
	const struct fcopy_tree_report *r = o->tree;
	if (!r) {
		json_string(j, "tree", NULL);
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
		json_string(j, "shard", NULL);
	if (s->count == 0) {
		json_string(j, "shards", NULL);
		json_string(j, "committed", NULL);
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

void report_json(const struct summary *o, const struct errors *warnings,
		 const struct errors *failures, FILE *f)
{
	struct json j = {.f = f};
	const struct fcopy_report *r = o->report;
	const struct fcopy_mode *mode = o->cli->copy.mode;
	json_open(&j, NULL, '{');
	json_string(&j, "fcopy", FCOPY_VERSION);
	json_path(&j, "src", o->cli->src);
	json_path(&j, "dst", r->dst[0] && o->cli->source_count < 2 ? r->dst : o->cli->dst);
	json_string(&j, "mode", mode ? mode->name : fcopy_modes()->name);
	json_bool(&j, "done", r->error.err == 0 && !o->cli->declined);
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
	add_phases(&j, r);
	add_engines(&j, r);
	add_shard(&j, o);
	error_write(&j, "error", &r->error);
	errors_write(warnings, &j, "warnings");
	add_tree(&j, o, failures);
	json_close(&j, '}');
	fputc('\n', f);
}

void report_json_usage(const char *text, FILE *f)
{
	struct json j = {.f = f};
	json_open(&j, NULL, '{');
	json_string(&j, "fcopy", FCOPY_VERSION);
	json_bool(&j, "done", false);
	json_string(&j, "usage", text);
	json_close(&j, '}');
	fputc('\n', f);
}
