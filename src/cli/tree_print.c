/* SPDX-License-Identifier: MIT
 * Trees and several sources.
 */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
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
		fprintf(stderr, "fcopy: %s keeps the unfinished tree\n", report->part);
	return r;
}
