/* SPDX-License-Identifier: MIT
 * Trees and several sources.
 */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Every open directory takes two descriptors; most systems set the soft limit to 1024. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* What a part is good for; a temporary name is what could not be removed. */
static void print_part(const struct fcopy_tree_report *r)
{
	static const char suffix[] = ".fcopy-part";
	size_t length = strlen(r->part), n = sizeof(suffix) - 1;
	bool part = length > n && strcmp(r->part + length - n, suffix) == 0;
	fputs("fcopy: ", stderr);
	message_print(r->part);
	fputs(part ? ": kept, unfinished\n" : ": left behind, incomplete\n", stderr);
	if (part && r->failed == 0)
		fputs("fcopy: hint: run it again with --resume\n", stderr);
	else if (part)
		fputs("fcopy: hint: fix the cause and run it again with --resume; "
		      "or with --resume --keep-going, to accept the copy as it is\n",
		      stderr);
}

int tree_copy(struct cli *cli, struct fcopy_tree_report *report)
{
	raise_descriptor_limit();
	cli->tree.copy = cli->copy;
	cli->tree.report_entries = cli->verbose > 0;
	int r = fcopy_tree((const char *const *)cli->sources, cli->source_count, cli->dst,
			   &cli->tree, report);
	if (report->failed > 1)
		fprintf(stderr, "fcopy: %" PRIu64 " entries failed\n", report->failed);
	if (report->part[0])
		print_part(report);
	return r;
}
