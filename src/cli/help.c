/* SPDX-License-Identifier: MIT
 * --help.
 */
#include "option.h"
#include "show/text.h"

#include <stdio.h>

#define COLUMN 29 /* where the help of an option starts */

#define USAGE                                                                                      \
	"Usage: fcopy [OPTION]... SRC DST [MODE]\n"                                                \
	"  or:  fcopy [OPTION]... SRC... DIR\n"
#define EXAMPLES                                                                                   \
	"\n"                                                                                       \
	"  fcopy big.iso /mnt/backup/                copy a file\n"                                \
	"  fcopy -aT photos /mnt/backup/photos       copy a directory\n"                           \
	"  fcopy --mirror photos /mnt/backup/photos  make the copy equal again\n"

static const char brief_head[] = USAGE
    "Copy SRC to DST, or into DST if it is a directory: whole or not at all.\n" EXAMPLES "\n";

static const char brief_foot[] =
    "\n"
    "MODE names a kernel mechanism (fcopy --list). By default, fcopy chooses one.\n"
    "All options: fcopy --help. The manual: man fcopy.\n";

static const char head[] = USAGE
    "  or:  fcopy [OPTION]... -t DIR SRC...\n"
    "  or:  fcopy --benchmark [OPTION]... SRC [DST]\n"
    "  or:  fcopy --clean DIR [-r] [-f]\n"
    "Copy SRC to DST. If DST is a directory, the copy goes into it.\n"
    "A copy is whole or absent: DST is replaced only when the copy is complete.\n" EXAMPLES
    "  fcopy --resume big.iso /mnt/usb/          continue after an interruption\n"
    "  fcopy big.iso copy.iso sendfile           use one kernel mechanism\n"
    "\n"
    "MODE is the kernel mechanism. By default, fcopy chooses a fast and safe one.\n"
    "MODE is one of";

static const char foot[] =
    "\n"
    "SRC or DST may be a stream; TCP and HTTP are not encrypted.\n"
    "  -                          standard input or output\n"
    "  fd:N                       an open descriptor\n"
    "  tcp:HOST:PORT              connect\n"
    "  tcp-listen:[HOST:]PORT     listen (without HOST, on loopback only)\n"
    "  http-listen:[HOST:]PORT    as DST: serve SRC; as SRC: receive an upload\n"
    "\n"
    "SIZE is in bytes: 8192, 64K or 1M (powers of 1024), 64kB or 1MB (of 1000).\n"
    "Exit status: 0 done; 1 failed; 2 refused: options, SRC or DST are invalid\n"
    "(nothing was changed); 130 after ^C.\n"
    "The manual has examples, and what DST is after a failure: man fcopy.\n";

/* "modes 1, 3, 5, 7" */
static void add_modes_with(unsigned takes, struct text *t)
{
	unsigned count = 0, printed = 0;
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		count += (m->takes & takes) != 0;
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		if (!(m->takes & takes))
			continue;
		text_add(t, printed++ > 0 ? ", " : count == 1 ? "mode " : "modes ");
		text_number(t, (uint64_t)m->number);
	}
}

/* "WHEN: auto, always, never": the completions read these lines. */
static void print_words(void)
{
	const struct option_word *printed[OPTIONS_MAX] = {NULL};
	size_t n = 0;
	for (const struct option_row *row = option_table; !option_table_ends(row); row++) {
		size_t i = 0;
		printed[n] = row->words;
		while (row->words && printed[i] != row->words)
			i++;
		if (!row->words || !row->value || i < n)
			continue;
		n++;
		printf("%.*s:", (int)strcspn(row->value + (row->value[0] == '['), "]"),
		       row->value + (row->value[0] == '['));
		for (const struct option_word *w = row->words; w->name; w++)
			if (!w->synonym)
				printf("%s %s", w == row->words ? "" : ",", w->name);
		putchar('\n');
	}
}

/* A % in the help stands for the modes that take the option. */
static void add_help(const struct option_row *row, const char *help, struct text *t)
{
	const char *modes = strchr(help, '%');
	char start[128] = "";
	if (!modes) {
		text_add(t, help);
		return;
	}
	snprintf(start, sizeof(start), "%.*s", (int)(modes - help), help);
	text_add(t, start);
	add_modes_with(row->takes, t);
	text_add(t, modes + 1);
}

static void help_print_row(const struct option_row *row, const char *words)
{
	char left[64];
	struct text help = {0};
	const char *value = row->value ? row->value : "";
	bool optional = value[0] == '[';
	if (!row->name) {
		printf("\n%s:\n", words);
		return;
	}
	int used = snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ',
			    row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
			    optional     ? "[="
			    : row->value ? "="
					 : "",
			    value + optional);
	/* A longer name moves its help to the right: that must be short. */
	printf("%-*s%s", COLUMN, left, used < COLUMN ? "" : " ");
	add_help(row, words, &help);
	text_wrap(stdout, help.at, TEXT_COLUMNS, COLUMN, ' ');
	putchar('\n');
}

static void print_modes(void)
{
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		printf("%s %d %s",
		       m->number == 0   ? ":"
		       : m->number == 5 ? ",\n              "
					: ",",
		       m->number, m->name);
	puts(".");
}

void help_print(bool brief)
{
	/* One write for the whole text: after an earlier failed write, fflush(3) has no errno. */
	static char buffer[16384];
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	fputs(brief ? brief_head : head, stdout);
	if (!brief)
		print_modes();
	for (const struct option_row *row = option_table; !option_table_ends(row); row++)
		if (!brief)
			help_print_row(row, row->help);
		else if (row->brief)
			help_print_row(row, row->brief);
	if (!brief) {
		putchar('\n');
		print_words();
	}
	fputs(brief ? brief_foot : foot, stdout);
}
