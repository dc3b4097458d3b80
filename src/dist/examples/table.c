/* SPDX-License-Identifier: MIT
 * Copies a tree with libfcopy, and prints a table of its entries.
 *
 *     cc -o table table.c $(pkg-config --cflags --libs fcopy)
 *     ./table SRC DST
 */
#include <fcopy.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const actions[] = {
    [FCOPY_ACTION_COPIED] = "copied",     [FCOPY_ACTION_UNCHANGED] = "unchanged",
    [FCOPY_ACTION_SKIPPED] = "skipped",   [FCOPY_ACTION_LINKED] = "linked",
    [FCOPY_ACTION_EXCLUDED] = "excluded", [FCOPY_ACTION_DELETED] = "deleted",
    [FCOPY_ACTION_VANISHED] = "vanished", [FCOPY_ACTION_FAILED] = "failed",
    [FCOPY_ACTION_REPAIRED] = "repaired",
};

/* Called in several threads, but never in two at once. What the event points to is valid until this
 * function returns. */
static void print_row(void *user, const struct fcopy_event *event)
{
	const struct fcopy_entry *e = event->entry;
	char reason[FCOPY_ERROR_TEXT_MAX] = "";
	uint64_t *rows = user;
	if (event->kind != FCOPY_EVENT_ENTRY)
		return; /* also of kinds that a later version adds */
	if (e->error)
		fcopy_error_text(e->error, reason, sizeof(reason));
	const char *action = (size_t)e->action < sizeof(actions) / sizeof(*actions)
				 ? actions[e->action]
				 : "other"; /* of a later version */
	printf("%-9s %12" PRIu64 "  %-15s  %s%s%s\n", action, e->bytes, e->engine ? e->engine : "-",
	       e->path ? e->path : ".", e->error ? ": " : "", reason);
	++*rows;
}

int main(int argc, char **argv)
{
	static struct fcopy_tree_report report;
	uint64_t rows = 0;
	struct fcopy_tree_options options = {.copy.api = FCOPY_API,
					     .copy.notify = print_row,
					     .copy.user = &rows,
					     .recursive = true,
					     .report_entries = true};
	if (argc != 3)
		return fprintf(stderr, "usage: table SRC DST\n"), 2;
	printf("%-9s %12s  %-15s  %s\n", "action", "bytes", "engine", "path");
	const char *src[] = {argv[1]};
	int result = fcopy_tree(src, 1, argv[2], &options, &report);
	printf("%" PRIu64 " entries, %" PRIu64 " bytes, %" PRIu64 " failed\n", rows,
	       report.count[FCOPY_COUNT_BYTES], report.count[FCOPY_COUNT_FAILED]);
	return result < 0;
}
