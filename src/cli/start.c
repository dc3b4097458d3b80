/* SPDX-License-Identifier: MIT
 * Starts the copy of a tree or of several sources; and the other commands.
 */
#include "cli.h"
#include "show/report.h"
#include "show/show.h"
#include "show/sink.h"
#include "show/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

/* The answer is a line of standard input that starts with y, as with cp. */
static bool read_yes(void)
{
	char line[256] = "";
	fflush(stderr);
	bool yes = fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
	while (!strchr(line, '\n') && fgets(line, sizeof(line), stdin))
		;
	return yes;
}

/* -i */
static bool confirm_replacement(void *user, const char *dst)
{
	struct cli *cli = user;
	progress_lock();
	print_on(stderr, "fcopy: overwrite '%s'? ", escaped(dst));
	bool yes = read_yes();
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

/* To rsync, a final slash means what is in SRC. Not if the copy exists: then it was meant so. */
static void note_final_slash(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	const size_t n = strlen(cli->src);
	char copy[PATH_MAX];
	struct stat st;
	if (!cli->voice.watched || cli->as_cp || cli->target || cli->source_count != 1 ||
	    !cli->tree.recursive || cli->tree.parents || cli->tree.delete_extra ||
	    o->no_directory || o->resume || o->shard.count > 0 || n < 2 || cli->src[n - 1] != '/')
		return;
	const char *name = text_copy_path(cli->src, cli->dst, copy);
	if (!name || !name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    stat(cli->src, &st) < 0 || !S_ISDIR(st.st_mode) || stat(cli->dst, &st) < 0 ||
	    !S_ISDIR(st.st_mode) || lstat(copy, &st) == 0 || errno != ENOENT)
		return;
	hint_printf("the copy is %s; to copy what is in %s to %s, use -T", quoted(copy),
		    quoted(cli->src), quoted(cli->dst));
}

int tree_copy(struct cli *cli, struct fcopy_tree_report *report)
{
	const char *suffix;
	note_no_clobber(cli);
	note_final_slash(cli);
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

/* --clean: removes what killed copies left, after a yes on a terminal, or with -f. */

static bool confirm_removal(void *user, const struct fcopy_left *l)
{
	const struct cli *cli = user;
	if (cli->copy.force)
		return true;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	fflush(stdout);
	print_on(stderr, "fcopy: %s '%s' (%s)? ", l->returns ? "rename back what is in" : "remove",
		 escaped(l->path), left_words(l));
	return read_yes();
}

int clean_run(struct cli *cli, struct fcopy_error *error)
{
	const struct fcopy_clean_options o = {.api = FCOPY_API,
					      .remove = confirm_removal,
					      .notify = sinks_left,
					      .user = cli,
					      .recursive = cli->tree.recursive,
					      .unsearched = &cli->unsearched};
	return fcopy_clean(cli->clean, &o, error);
}

/* If the parent process closed standard input, output or error, occupies the descriptor, so that no
 * file that is opened later gets its number. */

void standard_reserve(void)
{
	struct pollfd fds[] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};
	if (poll(fds, 3, 0) <= 0)
		return;
	/* O_PATH: read(2) and write(2) fail with EBADF, as on a closed descriptor. */
	for (int i = 0; i < 3; i++)
		if (fds[i].revents & POLLNVAL && open("/", O_PATH) < 0)
			return;
}
