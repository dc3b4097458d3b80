/* SPDX-License-Identifier: MIT
 * Starts the copy of a tree or of several sources.
 */
#include "show/hint.h"
#include "show/show.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Every open directory takes two descriptors; most systems set the soft limit to 1024. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The kernel ends a process whose stack cannot grow. Under a limit of memory, the stacks of the
 * threads could leave it no room: it grows before them. */
static __attribute__((noinline)) void grow_stack(void)
{
	volatile char room[512 << 10];
	room[0] = 0;
	(void)room[0];
}

static void reserve_stack(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= 1 << 20)
		grow_stack();
}

/* -i: the answer is a line of standard input that starts with y, as with cp. */
static bool confirm_replacement(void *user, const char *dst)
{
	struct cli *cli = user;
	char line[256] = "";
	progress_lock();
	fputs("fcopy: overwrite '", stderr);
	message_print(dst);
	fputs("'? ", stderr);
	fflush(stderr);
	bool yes = fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
	while (!strchr(line, '\n') && fgets(line, sizeof(line), stdin))
		;
	progress_unlock();
	cli->declined |= !yes;
	return yes;
}

/* Who knows rsync types -n for a dry run. */
static void note_no_clobber(const struct cli *cli)
{
	if (cli->copy.no_clobber && cli->tree.recursive && !cli->tree.dry_run && !cli->as_cp &&
	    cli->voice.watched)
		note_printf(
		    "-n leaves existing files as they are; it is no dry run: use --dry-run");
}

int tree_copy(struct cli *cli, struct fcopy_tree_report *report)
{
	const char *suffix;
	note_no_clobber(cli);
	raise_descriptor_limit();
	reserve_stack();
	cli->tree.copy = cli->copy;
	cli->tree.confirm = cli->interactive ? confirm_replacement : NULL;
	if (!cli->tree.backup_suffix && (suffix = getenv("SIMPLE_BACKUP_SUFFIX")) && suffix[0] &&
	    !strchr(suffix, '/'))
		cli->tree.backup_suffix = suffix;
	cli->tree.report_entries = cli->verbose > 0 || cli->json_lines || cli->log_file ||
				   cli->tree.dry_run;
	cli->tree.report_at_once = true; /* what prints has locks */
	return fcopy_tree((const char *const *)cli->sources, cli->source_count, cli->dst,
			  &cli->tree, report);
}
