/* SPDX-License-Identifier: MIT
 * Failures, warnings and usage errors in words.
 */
#include "cli/cli.h"
#include "endpoints/error.h"
#include "show.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char usage_text[FCOPY_ERROR_TEXT_MAX]; /* of the last usage error, for --json */

void message_text(const struct fcopy_error *e)
{
	message_printf("%s", error_words(e));
}

void message_error(const struct fcopy_error *e)
{
	message_text(e);
	hint_print(e);
}

/* If the disk is full, prints the space that the copy needed and the space that was free before its
 * first byte. */
void message_failure(const struct fcopy_report *r)
{
	const struct fcopy_error *e = &r->error;
	if (error_classify(e) == ERROR_FULL && r->space_needed > 0)
		message_printf("%s (the copy needs %s, %s were free)", error_words(e),
			       amount(r->space_needed).text, amount(r->space_free).text);
	else
		message_text(e);
	hint_print(e);
}

void message_warning(const struct fcopy_report *r, const struct fcopy_error *e)
{
	if (e->err == ENOSPC && !e->call)
		message_printf("warning: %s needs %s, but only %s are free%s", escaped(e->path),
			       amount(r->space_needed).text, amount(r->space_free).text,
			       r->existed && r->atomic
				   ? " (the old file is kept until the copy is complete)"
				   : "");
	else
		message_printf("warning: %s", error_words(e));
	hint_print(e);
}

const char *message_last_usage(void)
{
	return usage_text;
}

int message_refuse(const char *dashes, const char *what, const char *reason, ...)
{
	va_list args;
	va_start(args, reason);
	int n = what ? snprintf(usage_text, sizeof(usage_text), "%s%s: ", dashes, what) : 0;
	if (n >= 0 && (size_t)n < sizeof(usage_text))
		vsnprintf(usage_text + n, sizeof(usage_text) - (size_t)n, reason, args);
	va_end(args);
	message_printf("%s", escaped(usage_text));
	return EXIT_USAGE;
}

/* Warnings that come by the hundred: of each call and errno the first five are printed, then their
 * number. */

#define SHOWN 5
#define KINDS 16 /* of warnings; further ones are all printed */

static struct kind {
	char call[48]; /* or the reason, if fcopy itself warned */
	int err;
	uint64_t count;
	char text[FCOPY_DETAIL_MAX]; /* of the first one, without its path */
} kinds[KINDS];

static struct kind *flood_find(const struct fcopy_error *e)
{
	char call[sizeof(kinds->call)];
	struct kind *k = kinds;
	snprintf(call, sizeof(call), "%s", e->call ? e->call : e->reason ? e->reason : "");
	if (!e->call && strstr(call, " (")) /* numbers of this case follow */
		*strstr(call, " (") = '\0';
	while (k < kinds + KINDS && k->count > 0 &&
	       (k->err != e->err || strcmp(k->call, call) != 0))
		k++;
	if (k == kinds + KINDS)
		return NULL;
	if (k->count == 0) {
		struct fcopy_error bare = *e;
		char text[FCOPY_ERROR_TEXT_MAX];
		bare.path = bare.path2 = NULL;
		bare.reason = e->call ? e->reason : call;
		fcopy_error_text(&bare, text, sizeof(text));
		snprintf(k->text, sizeof(k->text), "%.*s", (int)sizeof(k->text) - 1, text);
		strcpy(k->call, call);
		k->err = e->err;
	}
	return k;
}

bool flood_passes(const struct cli *cli, const struct fcopy_error *e)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* several clients at a time */
	if (cli->voice.all || cli->keep_listening)
		return true;
	pthread_mutex_lock(&lock);
	struct kind *k = flood_find(e);
	const bool passes = !k || ++k->count <= SHOWN;
	pthread_mutex_unlock(&lock);
	return passes;
}

void flood_print(void)
{
	for (const struct kind *k = kinds; k < kinds + KINDS && k->count > 0; k++)
		if (k->count > SHOWN)
			note_printf("warning: %s: %" PRIu64 " times; the first %d are listed",
				    escaped(k->text), k->count, SHOWN);
}
