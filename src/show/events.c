/* SPDX-License-Identifier: MIT
 * What is printed while a copy or a server runs.
 */
#include "cli/cli.h"
#include "ending.h"
#include "entry_line.h"
#include "errors.h"
#include "flood.h"
#include "hint.h"
#include "lines.h"
#include "listening.h"
#include "log.h"
#include "report.h"
#include "show.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* An engine may run once per extent: print its name once. */
static void print_engine(const char *name)
{
	static const char *last = "";
	if (strcmp(name, last) != 0)
		fprintf(stderr, "fcopy: engine: %s\n", name);
	last = name;
}

/* What an HTTP client asked for, and what it got: GET a.iso: 206, bytes 100-199. */
static void print_request(const struct cli *cli, const struct fcopy_report *r)
{
	const struct fcopy_http *h = &r->http;
	if (!h->method)
		return;
	fprintf(stderr, "%s ", h->method);
	if (h->file && cli->served_count > 1) {
		message_print(text_file_name(h->file));
		fputc(' ', stderr);
	}
	fprintf(stderr, "%d", h->status);
	if (h->status == 206)
		fprintf(stderr, " (from byte %" PRIu64 ")", h->first);
	fputs(": ", stderr);
}

/* Reports the copy to one client of a server. Its failure does not affect other clients. */
static void print_client(const struct cli *cli, const struct fcopy_report *r)
{
	struct text t = {0};
	bool wanted = cli->voice.peers;
	/* The peer of a Unix socket has no HOST:PORT. */
	const char *peer = r->dst_peer[0] ? r->dst_peer : cli->dst;
	if (r->error.err != 0) {
		fprintf(stderr, "fcopy: client %s: ", peer);
		print_request(cli, r);
		message_reason(&r->error);
		fputc('\n', stderr);
	} else if (wanted) {
		text_size(&t, r->bytes);
		text_add(&t, " in ");
		text_duration(&t, (uint64_t)(ending_seconds(r) * 1e6));
		fprintf(stderr, "fcopy: client %s: ", peer);
		print_request(cli, r);
		fprintf(stderr, "%s%s\n", t.at, r->confirmed ? "" : ", not confirmed");
	}
}

/* Prints nothing in the first run, which has nothing to resume. */
static void print_resume(const struct fcopy_event *event)
{
	const struct fcopy_report *r = event->report;
	if (r->resumed == 0 && !event->text)
		return;
	fputs("fcopy: ", stderr);
	message_print(r->dst);
	if (r->resumed > 0 && r->resumed == r->expected) {
		struct text t = {0};
		text_size(&t, r->resumed);
		fprintf(stderr, ": resuming: all %s are copied already\n", t.at);
	} else if (r->resumed > 0) {
		struct text t = {0};
		/* The size of a file of /proc is unknown. */
		if (r->expected >= r->resumed) {
			text_share_words(&t, r->resumed, r->expected);
			text_add(&t, " (");
			text_number(&t, (uint64_t)((double)r->resumed * 100 / (double)r->expected));
			text_add(&t, " %)");
		} else {
			text_size(&t, r->resumed);
		}
		fprintf(stderr, ": resuming at %s\n", t.at);
	} else {
		fprintf(stderr, ": starting over: %s\n", event->text);
	}
}

/* Each client of a server has its own list of warnings; the threads of a tree share one list. */
static struct errors *event_warnings(const struct cli *cli)
{
	static struct errors of_copy;
	static _Thread_local struct errors of_client;
	return cli->keep_listening ? &of_client : &of_copy;
}

void event_add_warnings(struct json *j, const struct cli *cli)
{
	struct errors *warnings = event_warnings(cli);
	errors_write(warnings, j, "warnings");
	errors_clear(warnings);
}

static void print_event(const struct cli *cli, const struct fcopy_event *event)
{
	switch (event->kind) {
	case FCOPY_EVENT_WARNING: message_warning(event->report, event->error); break;
	case FCOPY_EVENT_REFUSAL:
		fputs("fcopy: ", stderr);
		message_reason(event->error);
		fputs(" (unsupported here: trying the next engine)\n", stderr);
		break;
	case FCOPY_EVENT_RESUME: print_resume(event); break;
	case FCOPY_EVENT_PLAN: fprintf(stderr, "fcopy: plan: %s\n", event->text); break;
	case FCOPY_EVENT_STEP: print_engine(event->text); break;
	case FCOPY_EVENT_LISTENING: listening_print(cli, event); break;
	case FCOPY_EVENT_CLIENT: print_client(cli, event->report); break;
	case FCOPY_EVENT_FAILED: tree_failed(cli, event->error); break;
	case FCOPY_EVENT_ENTRY:
		if (entry_is_listed(cli, event->entry)) {
			entry_list(cli, event->entry, ending_list(cli));
			fputc('\n', ending_list(cli));
		}
		break;
	case FCOPY_EVENT_NOT_ATOMIC:
		fputs("fcopy: ", stderr);
		message_print(event->error->path);
		fprintf(stderr, ": not atomic: %s\n", event->error->reason);
		break;
	case FCOPY_EVENT_NOT_PRIVATE:
		fputs("fcopy: ", stderr);
		message_print(event->error->path);
		fprintf(stderr, ": not private: %s\n", event->error->reason);
		break;
	case FCOPY_EVENT_OPERAND: break;
	}
}

static bool is_wanted(const struct cli *cli, enum fcopy_event_kind kind)
{
	switch (kind) {
	case FCOPY_EVENT_WARNING:
	case FCOPY_EVENT_RESUME: return cli->voice.notes;
	case FCOPY_EVENT_LISTENING:
	case FCOPY_EVENT_FAILED:
	case FCOPY_EVENT_CLIENT: return true;
	case FCOPY_EVENT_NOT_ATOMIC:
	case FCOPY_EVENT_NOT_PRIVATE:
	case FCOPY_EVENT_ENTRY: return cli->voice.entries;
	case FCOPY_EVENT_OPERAND: return false;
	default: return cli->voice.steps;
	}
}

void event_print(void *user, const struct fcopy_event *event)
{
	const struct cli *cli = user;
	if (event->kind == FCOPY_EVENT_WARNING && cli->json)
		errors_add(event_warnings(cli), event->error);
	if (event->kind == FCOPY_EVENT_WARNING || event->kind == FCOPY_EVENT_FAILED)
		log_error(event->kind == FCOPY_EVENT_FAILED ? "failed: " : "warning: ",
			  event->error);
	if (event->kind == FCOPY_EVENT_OPERAND)
		operands_note(event->operand);
	if (event->kind == FCOPY_EVENT_ENTRY && cli->json_lines)
		lines_entry(event->entry);
	if (event->kind == FCOPY_EVENT_ENTRY)
		log_entry(cli, event->entry);
	if (!is_wanted(cli, event->kind) ||
	    (event->kind == FCOPY_EVENT_WARNING && !flood_passes(cli, event->error)))
		return;
	progress_lock();
	flockfile(stderr); /* the clients of a server run in several threads */
	print_event(cli, event);
	funlockfile(stderr);
	progress_unlock();
}
