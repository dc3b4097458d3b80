/* SPDX-License-Identifier: MIT
 * --help and --list.
 */
#include "option.h"

#include <stdio.h>
#include <string.h>

#define COLUMN 29 /* where the help of an option starts */

static const char head[] =
    "Usage: fcopy [OPTION]... SRC DST [MODE]\n"
    "Copy SRC to DST by the kernel mechanism MODE; without one, by the fastest safe way.\n"
    "DST is replaced when the copy is complete, and not before: a copy is whole or absent.\n"
    "SRC or DST may be a stream: - (standard input or output), tcp:HOST:PORT,\n"
    "tcp-listen:[HOST:]PORT (loopback without HOST), fd:N.\n"
    "\n"
    "MODE is one of";

static const char foot[] =
    "\n"
    "SIZE: 8192, 64K, 1M (1024), 64kB, 1MB (1000).\n"
    "Exit status: 0 done, 1 the copy failed, 2 usage; a signal ends fcopy by that signal.\n";

static void print_row(const struct option_row *row)
{
	char left[COLUMN];
	const char *value = row->value ? row->value : "";
	bool optional = value[0] == '[';
	if (!row->name) {
		putchar('\n');
		return;
	}
	snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ',
		 row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
		 optional     ? "[="
		 : row->value ? "="
			      : "",
		 value + optional);
	printf("%-*s%s\n", COLUMN, left, row->help);
}

static void print_modes(void)
{
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		printf("%s %d %s",
		       m->number == 0   ? ":"
		       : m->number == 5 ? ",\n              "
					: ",",
		       m->number, m->name);
	fputs(".\n\n", stdout);
}

void help_print(void)
{
	fputs(head, stdout);
	print_modes();
	for (const struct option_row *row = option_table; !option_table_ends(row); row++)
		print_row(row);
	fputs(foot, stdout);
}

void list_print(void)
{
	puts("MODE  NAME             ALIAS  WHAT IT DOES");
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		const char *missing = fcopy_mode_missing(m);
		printf("%4d  %-15s  %-5s  %s", m->number, m->name, m->alias ? m->alias : "-",
		       m->summary);
		if (missing)
			printf(" [not here: %s]", missing);
		putchar('\n');
	}
}
