/* SPDX-License-Identifier: MIT
 * What is printed for people: messages and progress on standard error, lists on standard output.
 */
#include "benchmark.h"
#include "report.h"
#include "show.h"
#include "sink.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* An engine may run once per extent: print its name once. */
static void print_engine(const char *name)
{
	static const char *last = "";
	if (strcmp(name, last) != 0)
		message_printf("engine: %s", name);
	last = name;
}

/* Reports the copy to one client of a server, with what a client of HTTP asked for, and what it
 * got: GET a.iso 206 (from byte 100). Its failure does not affect other clients. */
static void print_client(const struct cli *cli, const struct fcopy_report *r)
{
	const struct fcopy_http *h = &r->http;
	const bool named = h->file && cli->served_count > 1;
	/* The peer of a Unix socket has no HOST:PORT. */
	const char *peer = r->dst_peer[0] ? r->dst_peer : cli->dst;
	char request[NAME_MAX + 64] = "", from[48] = "";
	struct text took = {0};
	if (h->status == 206)
		snprintf(from, sizeof(from), " (from byte %" PRIu64 ")", h->first);
	if (h->method)
		snprintf(request, sizeof(request), "%s %s%s%d%s: ", h->method,
			 named ? text_file_name(h->file) : "", named ? " " : "", h->status, from);
	text_duration(&took, (uint64_t)(ending_seconds(r) * 1e6));
	if (r->error.err != 0)
		message_printf("client %s: %s%s", peer, escaped(request), error_words(&r->error));
	else if (cli->voice.peers)
		message_printf("client %s: %s%s in %s%s", peer, escaped(request),
			       amount(r->bytes).text, took.at,
			       r->confirmed ? "" : ", not confirmed");
}

/* Prints nothing in the first run, which has nothing to resume. */
static void print_resume(const struct fcopy_event *event)
{
	const struct fcopy_report *r = event->report;
	struct text at = {0};
	if (r->resumed == 0) {
		if (event->text)
			message_printf("%s: starting over: %s", escaped(r->dst), event->text);
		return;
	}
	if (r->resumed == r->expected) {
		message_printf("%s: resuming: all %s are copied already", escaped(r->dst),
			       amount(r->resumed).text);
		return;
	}
	/* The size of a file of /proc is unknown. */
	if (r->expected >= r->resumed) {
		text_share_words(&at, r->resumed, r->expected);
		text_add(&at, " (");
		text_number(&at, (uint64_t)((double)r->resumed * 100 / (double)r->expected));
		text_add(&at, " %)");
	} else {
		text_size(&at, r->resumed);
	}
	message_printf("%s: resuming at %s", escaped(r->dst), at.at);
}

static void print_event(const struct cli *cli, const struct fcopy_event *event)
{
	const struct fcopy_error *e = event->error;
	switch (event->kind) {
	case FCOPY_EVENT_WARNING: message_warning(event->report, e); break;
	case FCOPY_EVENT_REFUSAL:
		message_printf("%s (unsupported here: trying the next engine)", error_words(e));
		break;
	case FCOPY_EVENT_RESUME: print_resume(event); break;
	case FCOPY_EVENT_PLAN: message_printf("plan: %s", event->text); break;
	case FCOPY_EVENT_STEP: print_engine(event->text); break;
	case FCOPY_EVENT_LISTENING: listening_print(cli, event); break;
	case FCOPY_EVENT_FAILED: tree_failed(cli, e); break;
	case FCOPY_EVENT_ENTRY:
		if (entry_is_listed(cli, event->entry)) {
			entry_list(cli, event->entry, ending_list(cli));
			fputc('\n', ending_list(cli));
		}
		break;
	case FCOPY_EVENT_NOT_ATOMIC:
		message_printf("%s: not atomic: %s", escaped(e->path), e->reason);
		break;
	case FCOPY_EVENT_NOT_PRIVATE:
		message_printf("%s: not private: %s", escaped(e->path), e->reason);
		break;
	case FCOPY_EVENT_NOT_ENTERED: message_text(e); break;
	case FCOPY_EVENT_CLIENT:
	case FCOPY_EVENT_OPERAND: break;
	}
}

static bool people_wants(const struct cli *cli, enum fcopy_event_kind kind)
{
	switch (kind) {
	case FCOPY_EVENT_WARNING:
	case FCOPY_EVENT_RESUME: return cli->voice.notes;
	case FCOPY_EVENT_LISTENING:
	case FCOPY_EVENT_FAILED: return true;
	case FCOPY_EVENT_NOT_ATOMIC:
	case FCOPY_EVENT_NOT_PRIVATE:
	case FCOPY_EVENT_NOT_ENTERED:
	case FCOPY_EVENT_ENTRY: return cli->voice.entries;
	case FCOPY_EVENT_CLIENT:
	case FCOPY_EVENT_OPERAND: return false;
	default: return cli->voice.steps;
	}
}

/* The clients of a server run in several threads. */
static void begin_messages(void)
{
	progress_lock();
	flockfile(stderr);
}

static void end_messages(void)
{
	funlockfile(stderr);
	progress_unlock();
}

/* Opened last: what is redirected to a file may be the file of another output. */
static int people_open(struct cli *cli, const struct command_line *line)
{
	const bool copies = !line->usage_error && cli->action == ACTION_COPY;
	return copies ? output_claim_standard(cli) : EXIT_DONE;
}

static void people_begin(struct cli *cli)
{
	if (cli->action != ACTION_COPY)
		return;
	unused_print(cli);
	cli->copy.progress = progress_start(cli);
}

static void people_event(const struct cli *cli, const struct fcopy_event *event)
{
	if (!people_wants(cli, event->kind) ||
	    (event->kind == FCOPY_EVENT_WARNING && !flood_passes(cli, event->error)))
		return;
	begin_messages();
	print_event(cli, event);
	end_messages();
}

static void people_client(const struct summary *o)
{
	begin_messages();
	print_client(o->cli, o->report);
	if (o->cli->stats && o->cli->keep_listening)
		stats_print_client(o, stderr);
	end_messages();
}

static bool removal_failed; /* of --clean, which was reported */
static unsigned left_count;

static void people_left(const struct cli *cli, const struct fcopy_left *l)
{
	left_count++;
	if (cli->voice.notes && cli->voice.tables)
		left_print(l);
	if (l->state != FCOPY_LEFT_FAILED)
		return;
	removal_failed = true;
	message_error(&l->error);
}

static void end_clean(const struct summary *o)
{
	if (o->result < 0 && !removal_failed)
		message_error(&o->report->error);
	if (o->result < 0 || !o->cli->voice.notes || !o->cli->voice.tables)
		return;
	if (left_count == 0)
		print_on(stdout, "nothing to clean in %s\n", escaped(o->cli->clean));
	if (o->cli->unsearched)
		message_printf("hint: use -r to search the directories in %s, too",
			       escaped(o->cli->clean));
}

static void end_benchmark(const struct summary *o)
{
	if (o->benchmark && o->cli->voice.tables)
		benchmark_verdict(o->benchmark);
	if (o->result < 0 && !o->signal)
		benchmark_print_failure(o->report);
}

static void end_stats(const struct summary *o)
{
	if (!o->cli->stats || o->report->error.unsuitable)
		return;
	if (o->cli->keep_listening)
		stats_print_server(&o->usage, stderr);
	else
		stats_print(o, stderr);
}

static void end_file(const struct summary *o)
{
	const struct cli *cli = o->cli;
	const struct fcopy_report *r = o->report;
	end_stats(o);
	if (o->result == 0) { /* a signal that came after the commit has nothing left to stop */
		if (cli->voice.all && !cli->keep_listening) {
			ending_summary(cli, r, ending_list(cli));
			fputc('\n', ending_list(cli));
		}
		if (cli->voice.notes && !cli->as_cp && !r->existed)
			hint_new_file(cli->src, cli->dst);
		unwritten_print(cli, r->dst, r->moved);
		return;
	}
	if (!o->unread && (!o->signal || r->error.err != EINTR))
		message_failure(r);
	if (!o->unread)
		hint_value(cli, &r->error);
	if (!o->unread && !cli->keep_listening)
		ending_stopped(cli, r, o->signal != 0);
	ending_shard(cli, &r->error, r->dst);
}

static void end_tree(const struct summary *o)
{
	tree_print_end(o->cli, o->tree, o->signal != 0);
	if (o->result == 0)
		unwritten_print(o->cli, o->tree->dst, o->report->moved);
	end_stats(o);
}

static void end_copy(const struct summary *o)
{
	struct fcopy_progress *progress = o->cli->copy.progress;
	if (o->tree)
		__atomic_store_n(&progress->entries, tree_entries(o->tree), __ATOMIC_RELAXED);
	progress_stop(o->report);
	if (o->tree)
		end_tree(o);
	else
		end_file(o);
	/* `fcopy a --update older` has made a file with that name. */
	if (o->result == 0 && o->cli->bare_is_dst && o->cli->voice.notes)
		hint_bare(o->cli);
}

static void modes_print(void)
{
	puts("MODE  NAME             ALIAS  WHAT IT DOES (an alias needs -m)");
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		const char *missing = fcopy_mode_missing(m);
		printf("%4d  %-15s  %-5s  %s", m->number, m->name, m->alias ? m->alias : "-",
		       m->summary);
		if (missing)
			printf(" [unavailable: %s]", missing);
		putchar('\n');
	}
}

/* A usage error was printed when it was found. */
static void people_end(const struct summary *o)
{
	if (o->usage_error)
		return;
	switch (o->cli->action) {
	case ACTION_COPY: end_copy(o); break;
	case ACTION_BENCHMARK: end_benchmark(o); break;
	case ACTION_CLEAN: end_clean(o); break;
	case ACTION_LIST:
		if (o->cli->voice.tables)
			modes_print();
		break;
	case ACTION_HELP:
	case ACTION_BRIEF_HELP:
	case ACTION_VERSION: break; /* they are not copied to other outputs */
	}
}

struct sink people_sink = {.output = &output_standard,
			   .open = people_open,
			   .begin = people_begin,
			   .event = people_event,
			   .client = people_client,
			   .left = people_left,
			   .end = people_end};
