/* SPDX-License-Identifier: MIT
 * The mode: operand MODE, or --mode.
 */
#include "option.h"
#include "show/show.h"

#include <stdio.h>
#include <string.h>

int mode_set(struct cli *cli, const struct option_row *row, const char *text)
{
	(void)row;
	cli->copy.mode = fcopy_mode_find(text);
	if (cli->copy.mode)
		return EXIT_DONE;
	const char *near = suggest_mode(text);
	char names[256] = "";
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%d %s", used ? ", " : "", m->number,
			 m->name);
	}
	if (text[0] == '\0')
		text = "''";
	if (near)
		return message_usage(text, "no such mode; did you mean %s? (%s)", near, names);
	return message_usage(text, "no such mode (%s)", names);
}
