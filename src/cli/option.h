/* SPDX-License-Identifier: MIT
 *
 * The table of options. Parsing, --help, completions and the suggestions for a misspelt option all
 * come from it: a new option is one row. What it cannot be combined with is in
 * src/copy/conflicts.c.
 */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include "cli.h"

#include <string.h>

/* A word that the value of an option may be, or contain: the parser, its error message, --help and
 * the completions read it here. Ended by a word without a name. */
struct option_word {
	const char *name;
	unsigned value;
	bool synonym; /* --help and the completions leave it out */
};

/* In the order in which a row is written.
 * NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct option_row {
	const char *name;
	char letter;       /* the short option, or 0 */
	const char *value; /* the name of its value, or NULL if it has none; "[…]": optional */
	const char *help;  /* without a name: the heading of a group */
	/* Stores the value in *cli. Returns EXIT_DONE, or EXIT_USAGE after a message. */
	int (*set)(struct cli *, const struct option_row *, const char *value);
	size_t field;      /* offset in struct cli */
	uint64_t min, max; /* of numbers and sizes */
	bool benchmarked;  /* may be combined with --benchmark, which creates no DST */
	bool with_clean;   /* may be combined with --clean */
	const struct option_word *words; /* what its value may be; NULL: anything else */
	unsigned takes;    /* enum fcopy_takes: only for modes with it, which --help lists */
	const char *brief; /* its help in -h; NULL: only --help lists it */
};

/* Ended by a row whose name and help are NULL and whose letter is not. */
extern const struct option_row option_table[];

static inline bool option_table_ends(const struct option_row *row)
{
	return !row->name && row->letter;
}

/* Is the text a value that the option, whose value is optional, would take? */
bool option_is_value(const struct option_row *, const char *text);
/* The effect of --help, --version, --list and --benchmark. */
int option_table_action(struct cli *, const struct option_row *, const char *);

#define OPTIONS_MAX 128 /* more than option_table has rows */

/* value.c: a SIZE as in coreutils: 8192, 64K and 64KiB (1024), 64kB (1000), up to E. */
bool size_parse(const char *text, uint64_t *size);

/* The word of the row that the text is; NULL: none. */
const struct option_word *option_word_find(const struct option_row *, const char *text);
/* Refuses the value: "invalid WHAT 'VALUE' (WORD, WORD)". */
int option_word_refuse(const struct option_row *, const char *what, const char *value);

/* operands.c: takes SRC, DST and MODE. Returns EXIT_DONE, or EXIT_USAGE after a message. */
int operands_take(struct cli *, int n, char **operand);
/* `after` has for each row of the table the word after the option, if its optional
 * value is missing; in a cluster of letters, after that. mistaken_word() finds it in `typed`,
 * because getopt changes the order of argv; mistaken_value() notes it for a hint, mistaken_report()
 * refuses an earlier report as an operand. */
const char *mistaken_word(int option, const struct option_row *, char **argv, char *const *typed);
void mistaken_value(struct cli *, const char *const *after, int n, char **operand);
int mistaken_report(const struct cli *, const char *const *after, int n, char **operand);

/* --mode, and the operand MODE. */
int mode_set(struct cli *, const struct option_row *, const char *text);

/* --preserve and --no-preserve. */
extern const struct option_word attribute_words[];
int attributes_preserve(struct cli *, const struct option_row *, const char *list);
bool attributes_are_list(const char *list);
int attributes_drop(struct cli *, const struct option_row *, const char *list);

/* shard.c: --shard. With auto, the launcher's environment says which share this process copies. */
int shard_parse(struct cli *, const struct option_row *, const char *value);
int shard_parse_job(struct cli *, const struct option_row *, const char *value);

/* filters.c: --exclude, --include, --exclude-from, --files-from; row->min is the enum filter_kind.
 * filters_read fills in cli->tree. Return EXIT_DONE, or EXIT_USAGE or EXIT_FAILED after a message.
 */
int filters_set(struct cli *, const struct option_row *, const char *value);
int filters_read(struct cli *);
const char *filters_first_name(const struct cli *); /* of the options, the first that was given */

/* The option or mode that differs from the text by one typing error, or NULL. */
const char *suggest_option(const struct option_row *table, const char *text);
const char *suggest_mode(const char *text);

#endif
