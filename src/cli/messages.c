/* SPDX-License-Identifier: MIT
 * Failures and warnings in words.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Control characters of a file name would move the cursor or fake a second line. */
static void print_name(const char *name)
{
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		if (*c < 32 || *c == 127)
			fprintf(stderr, "\\%03o", *c);
		else
			fputc(*c, stderr);
}

static void print_error(const struct fcopy_error *e)
{
	fputs("fcopy: ", stderr);
	if (e->path) {
		print_name(e->path);
		if (e->path2) {
			fputs(e->call ? " -> " : " and ", stderr);
			print_name(e->path2);
		}
		fputs(": ", stderr);
	}
	if (e->call)
		fprintf(stderr, "%s: ", e->call);
	fputs(e->reason ? e->reason : strerror(e->err), stderr);
}

static const char *hint(enum fcopy_advice advice)
{
	switch (advice) {
	case FCOPY_ADVICE_AUTO:
		return "without a MODE, or with auto, fcopy picks one that works here";
	case FCOPY_ADVICE_IN_PLACE: return "--inplace writes into the existing file";
	case FCOPY_ADVICE_IN_PLACE_OR_FORCE:
		return "--inplace writes into the existing file, -f replaces it all the same";
	case FCOPY_ADVICE_FORCE: return "-f does it all the same";
	case FCOPY_ADVICE_REMOVE_LINK: return "remove the symlink, or create what it points to";
	default: return NULL;
	}
}

void message_error(const struct fcopy_error *e)
{
	const char *text = hint(e->advice);
	print_error(e);
	fputc('\n', stderr);
	if (text)
		fprintf(stderr, "fcopy: hint: %s\n", text);
}

void message_event(const struct cli *cli, const struct fcopy_event *event)
{
	switch (event->kind) {
	case FCOPY_EVENT_WARNING:
		if (cli->quiet)
			return;
		print_error(event->error);
		fputs(" (warning)\n", stderr);
		break;
	case FCOPY_EVENT_REFUSAL:
		if (!cli->verbose)
			return;
		print_error(event->error);
		fputs(" (refused: on to the next engine)\n", stderr);
		break;
	case FCOPY_EVENT_RESUME:
		if (!cli->quiet)
			fprintf(stderr, "fcopy: %s: resumes at byte %ju\n", cli->dst,
				(uintmax_t)event->report->resumed);
		break;
	default:
		if (cli->verbose)
			fprintf(stderr, "fcopy: %s: %s\n",
				event->kind == FCOPY_EVENT_PLAN ? "plan" : "engine", event->text);
	}
}

static int print_usage(const char *dashes, const char *what, const char *reason, va_list args)
{
	fputs("fcopy: ", stderr);
	if (what) {
		fputs(dashes, stderr);
		print_name(what);
		fputs(": ", stderr);
	}
	vfprintf(stderr, reason, args);
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
