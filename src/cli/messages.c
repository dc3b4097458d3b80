/* SPDX-License-Identifier: MIT
 * Failures and warnings in words.
 */
#include "cli.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Control characters of a name would move the cursor, fake a second line, or turn it round. */
static void print_safely(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		size_t length = utf8_length(c), n = length ? length : 1;
		bool escape = utf8_is_control(c, length);
		for (; n > 0; n--)
			fprintf(stderr, escape ? "\\%03o" : "%c", *c++);
	}
}

static void print_reason(const struct fcopy_error *e)
{
	char text[FCOPY_ERROR_TEXT_MAX];
	fcopy_error_text(e, text, sizeof(text));
	print_safely(text);
}

static void print_error(const struct fcopy_error *e)
{
	fputs("fcopy: ", stderr);
	print_reason(e);
}

static const char *hint(enum fcopy_advice advice)
{
	switch (advice) {
	case FCOPY_ADVICE_AUTO:
		return "without a MODE, or with auto, fcopy picks one that works here";
	case FCOPY_ADVICE_IN_PLACE: return "--inplace writes into the existing file";
	case FCOPY_ADVICE_IN_PLACE_OR_FORCE:
		return "--inplace writes into the existing file, -f replaces it all the same";
	case FCOPY_ADVICE_RECURSIVE: return "use -r to copy directories";
	case FCOPY_ADVICE_FORCE: return "-f does it all the same";
	case FCOPY_ADVICE_FLUSH:
		return "the copy is in place, but perhaps not on the disk: a power cut may undo it";
	case FCOPY_ADVICE_CACHE: return "it is --no-cache that is refused: leave it out";
	case FCOPY_ADVICE_REMOVE_LINK: return "remove the symlink, or create what it points to";
	default: return NULL;
	}
}

/* It is beside the file itself, where DST is a symlink. */
static void print_part(const char *dst)
{
	char link[2], real[PATH_MAX];
	bool is_link = readlink(dst, link, sizeof(link)) > 0 && realpath(dst, real);
	fputs("fcopy: hint: remove or rename ", stderr);
	print_safely(is_link ? real : dst);
	fputs(".fcopy-part\n", stderr);
}

void message_error(const struct fcopy_error *e)
{
	const char *text = hint(e->advice);
	print_error(e);
	fputc('\n', stderr);
	if (e->advice == FCOPY_ADVICE_REMOVE_PART)
		print_part(e->path);
	if (text)
		fprintf(stderr, "fcopy: hint: %s\n", text);
}

/* An engine works on one extent after the other; once is enough to be told of it. */
static void print_engine(const char *name)
{
	static const char *last = "";
	if (strcmp(name, last) != 0)
		fprintf(stderr, "fcopy: engine: %s\n", name);
	last = name;
}

/* Who asked for any free port has to be told which one it is. */
static void print_listening(const struct cli *cli, const char *address)
{
	if (cli->verbose ||
	    fcopy_operand_kind(cli->src, STDIN_FILENO, NULL) == FCOPY_KIND_TCP_LISTEN_ANY ||
	    fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) == FCOPY_KIND_TCP_LISTEN_ANY)
		fprintf(stderr, "fcopy: listening on %s\n", address);
}

/* Of a server: what came of one client. Each is a copy of its own, and may fail on its own. */
static void print_client(const struct cli *cli, const struct fcopy_report *report)
{
	const char *peer = report->dst_peer[0] ? report->dst_peer : report->src_peer;
	if (report->error.err != 0) {
		fprintf(stderr, "fcopy: client %s: ", peer);
		print_reason(&report->error);
		fputc('\n', stderr);
	} else if (cli->verbose) {
		fprintf(stderr, "fcopy: client %s: %ju bytes%s\n", peer, (uintmax_t)report->bytes,
			report->confirmed || !report->dst_peer[0] ? "" : ", not confirmed");
	}
}

/* Is it something that this user wants to know? */
static bool is_wanted(const struct cli *cli, enum fcopy_event_kind kind)
{
	switch (kind) {
	case FCOPY_EVENT_WARNING:
	case FCOPY_EVENT_RESUME: return !cli->quiet;
	case FCOPY_EVENT_LISTENING:
	case FCOPY_EVENT_FAILED:
	case FCOPY_EVENT_CLIENT: return true;
	default: return cli->verbose;
	}
}

/* Not of a first try, which has nothing to resume. */
static void print_resume(const struct fcopy_event *event, const char *dst)
{
	if (event->report->resumed == 0 && !event->text)
		return;
	fputs("fcopy: ", stderr);
	print_safely(dst);
	if (event->report->resumed > 0)
		fprintf(stderr, ": resumes at byte %ju\n", (uintmax_t)event->report->resumed);
	else
		fprintf(stderr, ": starts anew: %s\n", event->text);
}

static void print_event(const struct cli *cli, const struct fcopy_event *event)
{
	switch (event->kind) {
	case FCOPY_EVENT_WARNING:
		print_error(event->error);
		fputs(" (warning)\n", stderr);
		break;
	case FCOPY_EVENT_REFUSAL:
		print_error(event->error);
		fputs(" (refused: on to the next engine)\n", stderr);
		break;
	case FCOPY_EVENT_RESUME: print_resume(event, cli->dst); break;
	case FCOPY_EVENT_PLAN: fprintf(stderr, "fcopy: plan: %s\n", event->text); break;
	case FCOPY_EVENT_STEP: print_engine(event->text); break;
	case FCOPY_EVENT_LISTENING: print_listening(cli, event->text); break;
	case FCOPY_EVENT_CLIENT: print_client(cli, event->report); break;
	case FCOPY_EVENT_FAILED: message_error(event->error); break;
	case FCOPY_EVENT_ENTRY:
		print_safely(event->text);
		fputc('\n', stderr);
		break;
	}
}

void message_event(void *user, const struct fcopy_event *event)
{
	const struct cli *cli = user;
	if (!is_wanted(cli, event->kind))
		return;
	progress_hide();
	flockfile(stderr); /* a server's clients are told of in several threads */
	print_event(cli, event);
	funlockfile(stderr);
	progress_show();
}

static int print_usage(const char *dashes, const char *what, const char *reason, va_list args)
{
	char text[1024];
	fputs("fcopy: ", stderr);
	if (what) {
		fputs(dashes, stderr);
		print_safely(what);
		fputs(": ", stderr);
	}
	vsnprintf(text, sizeof(text), reason, args);
	print_safely(text);
	fputs("\nTry 'fcopy --help'.\n", stderr);
	return EXIT_USAGE;
}

int message_usage(const char *what, const char *reason, ...)
{
	va_list args;
	va_start(args, reason);
	print_usage("", what, reason, args);
	va_end(args);
	return EXIT_USAGE;
}

int message_option(const char *name, const char *reason, ...)
{
	va_list args;
	va_start(args, reason);
	print_usage("--", name, reason, args);
	va_end(args);
	return EXIT_USAGE;
}

void message_modes(void)
{
	fputs("The modes are:", stderr);
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		fprintf(stderr, "%s %d %s", m->number ? "," : "", m->number, m->name);
	fputs(".\n", stderr);
}
