/* SPDX-License-Identifier: MIT
 * --help and --list.
 */
#include "cli.h"

#include <stdio.h>

static const char text[] =
    "Usage: fcopy [OPTION]... SRC DST [MODE]\n"
    "Copy SRC to DST by the kernel mechanism MODE; without one, by the fastest safe way.\n"
    "DST is replaced when the copy is complete, and not before: a copy is whole or absent.\n"
    "SRC or DST - is standard input or output.\n"
    "\n"
    "  -m, --mode=MODE          the same as the third operand: a number or name of --list\n"
    "      --list               list the modes, and what this system has of them\n"
    "      --buffer-size=SIZE   bytes a call (modes 1, 3, 5, 7)\n"
    "  -j, --threads=N          threads (modes 0, 7)\n"
    "      --preallocate=WHEN   allocate the destination's blocks first: auto, always, never\n"
    "      --reflink[=WHEN]     share extents: auto, always, never (auto mode)\n"
    "      --sparse=WHEN        keep holes: auto; make them of zeros: always; never (auto mode)\n"
    "      --no-cache           leave the page cache as it was (auto mode)\n"
    "\n"
    "      --inplace            write into an existing DST; a failure leaves it torn\n"
    "  -f, --force              replace DST even if its links, owner or mode speak against it\n"
    "      --fsync              succeed only when the copy is on the disk\n"
    "      --strict             fail if SRC changes while it is copied\n"
    "\n"
    "  -v, --verbose            tell each step and each refusal\n"
    "  -q, --quiet              no warnings\n"
    "      --help               print this\n"
    "      --version            print the version\n"
    "\n"
    "SIZE: 8192, 64K, 1M (1024), 64kB, 1MB (1000).\n"
    "Exit status: 0 done, 1 the copy failed, 2 usage; a signal ends fcopy by that signal.\n";

void help_print(void)
{
	fputs(text, stdout);
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
