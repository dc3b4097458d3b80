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

static bool has_any_port(const char *operand)
{
	return fcopy_operand_kind(operand, STDIN_FILENO, NULL) == FCOPY_KIND_LISTEN_ANY;
}

/* Prints the address that a client can use: for a wildcard address the name of this host. */
static void print_reachable(const char *address)
{
	char host[256] = "", operand[256 + 64];
	bool any = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
	bool named = any && gethostname(host, sizeof(host) - 1) == 0;
	snprintf(operand, sizeof(operand), "tcp:%s%s", named ? host : address,
		 named ? strrchr(address, ':') : "");
	message_quoted(operand); /* zsh would expand the brackets of an IPv6 address */
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0;
}

static void end_where(const char *operand, const char *address)
{
	FILE *f = hint_stream();
	fputs(" on ", f);
	message_print(address[0] ? address : operand);
	if (is_loopback(address))
		fprintf(f, " (this machine only; use 0.0.0.0%s for the network)",
			strrchr(address, ':'));
	hint_end();
}

/* The start of the receiver's command: a TCP stream has only the bytes, so the command says how
 * many there are, if the sender knows. */
static void print_receive(const struct cli *cli, uint64_t bytes, const char *address)
{
	const struct fcopy_options *o = &cli->copy;
	fputs("fcopy: receive it with: fcopy ", stderr);
	if (o->count > 0 && o->count <= bytes) /* SRC may be shorter, if it is a stream */
		bytes = o->strict || cli->keep_listening ? o->count : 0;
	if (bytes > 0)
		fprintf(stderr, "--size=%" PRIu64 " %s", bytes, o->strict ? "--strict " : "");
	print_reachable(address);
	fputc(' ', stderr);
}

/* Prints what the server serves and where, and the command for a client. */
static void print_server(const struct cli *cli, uint64_t bytes, const char *address)
{
	const uint64_t count = cli->copy.count;
	struct text size = {0};
	FILE *f = note_begin();
	fputs("serving ", f);
	message_print(cli->src);
	if (bytes > 0) {
		text_size(&size, count > 0 && count < bytes ? count : bytes);
		fprintf(f, " (%s)", size.at);
	}
	end_where(cli->dst, address);
	if (address[0] == '\0')
		return;
	print_receive(cli, bytes, address);
	const char *name = text_file_name(cli->src);
	if (name[0] == '-' || fcopy_operand_kind(name, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH)
		fputs("./", stderr);
	message_quoted(name);
	fputc('\n', stderr);
}

/* The command of the peer that has, or wants, the bytes. */
static void print_peer(const struct cli *cli, bool sends, uint64_t bytes, const char *address)
{
	if (sends) {
		fputs("fcopy: send it with: fcopy FILE ", stderr);
		print_reachable(address);
		fputc('\n', stderr);
	} else {
		print_receive(cli, bytes, address);
		fputs("FILE\n", stderr);
	}
}

/* With port 0, print the port even with --quiet: the kernel chose it. */
static void print_listening(const struct cli *cli, const struct fcopy_event *event)
{
	/* DST waits only after SRC is connected. */
	bool receives = cli_receives(cli) && event->report->src_peer[0] == '\0';
	/* A Unix socket has no address: print the operand. */
	const char *operand = receives ? cli->src : cli->dst;
	const char *address = event->text[0] ? event->text : operand;
	progress_wait_for(receives ? "a sender" : "a receiver", address);
	if (cli->keep_listening) {
		if (!cli->quiet || has_any_port(cli->src) || has_any_port(cli->dst))
			print_server(cli, event->report->expected, event->text);
	} else if (has_any_port(cli->src) || has_any_port(cli->dst) || cli->verbose ||
		   (isatty(STDERR_FILENO) && !cli->quiet)) {
		fputs("listening", note_begin());
		end_where(operand, address);
		if (event->text[0])
			print_peer(cli, receives, event->report->expected, event->text);
	}
}

/* Reports the copy to one client of a server. Its failure does not affect other clients. */
static void print_client(const struct cli *cli, const struct fcopy_report *r)
{
	struct text t = {0};
	bool wanted = cli->verbose || (isatty(STDERR_FILENO) && !cli->quiet);
	/* The peer of a Unix socket has no HOST:PORT. */
	const char *peer = r->dst_peer[0] ? r->dst_peer : cli->dst;
	if (r->error.err != 0) {
		fprintf(stderr, "fcopy: client %s: ", peer);
		message_reason(&r->error);
		fputc('\n', stderr);
	} else if (wanted) {
		text_size(&t, r->bytes);
		text_add(&t, " in ");
		text_duration(&t, (uint64_t)(ending_seconds(r) * 1e6));
		fprintf(stderr, "fcopy: client %s: %s%s\n", peer, t.at,
			r->confirmed ? "" : ", not confirmed");
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
	case FCOPY_EVENT_LISTENING: print_listening(cli, event); break;
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
	case FCOPY_EVENT_RESUME: return !cli->quiet;
	case FCOPY_EVENT_LISTENING:
	case FCOPY_EVENT_FAILED:
	case FCOPY_EVENT_CLIENT: return true;
	case FCOPY_EVENT_NOT_ATOMIC:
	case FCOPY_EVENT_NOT_PRIVATE:
	case FCOPY_EVENT_ENTRY: return cli->verbose > 0 || cli->tree.dry_run;
	case FCOPY_EVENT_OPERAND: return false;
	default: return cli->verbose >= 2;
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
