/* SPDX-License-Identifier: MIT
 * The line about an entry of a tree, for -v and for --log-file.
 */
#include "entry_line.h"
#include "cli/cli.h"
#include "hint.h"

#include <string.h>

bool entry_is_listed(const struct cli *cli, const struct fcopy_entry *e)
{
	switch (e->action) {
	case FCOPY_ACTION_COPIED:
	case FCOPY_ACTION_LINKED:
	case FCOPY_ACTION_SKIPPED:
	case FCOPY_ACTION_REPAIRED:
	case FCOPY_ACTION_DELETED: return true;
	case FCOPY_ACTION_UNCHANGED: /* nearly all entries of a mirror */
		return cli->tree.update != FCOPY_UPDATE_CHANGED || cli->voice.steps;
	default: return false;
	}
}

void entry_list(const struct cli *cli, const struct fcopy_entry *e, FILE *f)
{
	const bool dry = cli->tree.dry_run, removed = e->action == FCOPY_ACTION_DELETED;
	const bool skipped = e->action == FCOPY_ACTION_SKIPPED;
	const bool repaired = e->action == FCOPY_ACTION_REPAIRED;
	const bool left = skipped || repaired || e->action == FCOPY_ACTION_UNCHANGED;
	if (dry && !left)
		fputs(removed ? "would remove " : "would copy ", f);
	else if (removed)
		fputs("removed ", f);
	if (!removed && !left) {
		message_print_on(f, e->operand);
		if (e->path) {
			fputs(e->operand[strlen(e->operand) - 1] == '/' ? "" : "/", f);
			message_print_on(f, e->path);
		}
		fputs(" -> ", f);
	}
	message_print_on(f, e->dst ? e->dst : "");
	if (left)
		fputs(skipped    ? ": exists, skipped"
		      : repaired ? dry ? ": attributes would be repaired" : ": attributes repaired"
		      : cli->copy.resume ? ": complete, unchanged"
					 : ": unchanged",
		      f);
}
