/* SPDX-License-Identifier: MIT
 * Warnings that come by the hundred: of each call and errno the first five are printed, then their
 * number.
 */
#include "flood.h"
#include "cli/cli.h"
#include "hint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 5
#define KINDS 16 /* of warnings; further ones are all printed */

static struct kind {
	char call[48]; /* or the reason, if fcopy itself warned */
	int err;
	uint64_t count;
	char text[FCOPY_DETAIL_MAX]; /* of the first one, without its path */
} kinds[KINDS];

static struct kind *find_kind(const struct fcopy_error *e)
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
	struct kind *k = cli->voice.all || cli->keep_listening ? NULL : find_kind(e);
	return !k || ++k->count <= SHOWN;
}

void flood_print(void)
{
	for (const struct kind *k = kinds; k < kinds + KINDS && k->count > 0; k++) {
		if (k->count <= SHOWN)
			continue;
		FILE *f = note_begin();
		fputs("warning: ", f);
		message_print(k->text);
		fprintf(f, ": %" PRIu64 " times; the first %d are listed", k->count, SHOWN);
		hint_end();
	}
}
