/* SPDX-License-Identifier: MIT
 * --clean: removes what killed copies left, after a yes on a terminal, or with -f.
 */
#include "cli.h"
#include "show/hint.h"
#include "show/left_print.h"
#include "show/sink.h"
#include "show/text.h"

#include <string.h>
#include <unistd.h>

/* As with -i, the answer is a line of standard input that starts with y. */
static bool confirm(void *user, const struct fcopy_left *l)
{
	const struct cli *cli = user;
	struct text what = {0};
	char line[256] = "";
	if (cli->copy.force)
		return true;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return false;
	left_describe(&what, l);
	fflush(stdout);
	fputs(l->returns ? "fcopy: rename back what is in '" : "fcopy: remove '", stderr);
	message_print(l->path);
	fputs("' (", stderr);
	left_print_old(l, stderr);
	fprintf(stderr, "%s)? ", what.at);
	fflush(stderr);
	bool yes = fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
	while (!strchr(line, '\n') && fgets(line, sizeof(line), stdin))
		;
	return yes;
}

int clean_run(struct cli *cli, struct fcopy_error *error)
{
	const struct fcopy_clean_options o = {.api = FCOPY_API,
					      .remove = confirm,
					      .notify = sinks_left,
					      .user = cli,
					      .recursive = cli->tree.recursive,
					      .unsearched = &cli->unsearched};
	return fcopy_clean(cli->clean, &o, error);
}
