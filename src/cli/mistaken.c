/* SPDX-License-Identifier: MIT
 * A word after an option that was meant as its value: optional values need a =.
 */
#include "option.h"
#include "show/show.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The word that getopt has ended with the option, or that has more letters. In the latter case,
 * musl counts the operands before it as not read. */
static const char *word_of_option(int option, const struct option_row *row, char **argv)
{
	const char *word = argv[optind - 1];
	const size_t length = strlen(word);
	if (length > 2 && strncmp(word, "--", 2) == 0 &&
	    strncmp(word + 2, row->name, length - 2) == 0)
		return word;
	if (length > 1 && word[0] == '-' && word[1] != '-' && word[length - 1] == option)
		return word;
	char **at = argv + optind;
	while (*at && !(at[0][0] == '-' && at[0][1]))
		at++;
	return *at;
}

const char *mistaken_word(int option, const struct option_row *row, char **argv, char *const *typed)
{
	const char *word = word_of_option(option, row, argv);
	while (word && *typed && *typed != word)
		typed++;
	return word && *typed ? typed[1] : NULL;
}

/* Its index, or -1. */
static int find_operand(const char *word, int n, char **operand)
{
	for (int i = 0; word && i < n; i++)
		if (operand[i] == word)
			return i;
	return -1;
}

/* An optional value needs a =: of `-b numbered SRC DST`, the first SRC is "numbered". */
void mistaken_value(struct cli *cli, const char *const *after, int n, char **operand)
{
	struct stat st;
	for (size_t i = 0; i < OPTIONS_MAX && n > 0 && !cli->as_cp; i++) {
		const int found = find_operand(after[i], n, operand);
		const char *value = operand[found < 0 ? 0 : found];
		if (after[i] && option_is_value(&option_table[i], value) && lstat(value, &st) < 0 &&
		    errno == ENOENT) {
			cli->bare = option_table[i].name;
			cli->bare_value = value;
			cli->bare_is_dst = found == n - 1 && !cli->target;
		}
	}
}

static bool is_report(const char *path)
{
	static const char start[] = "{\"fcopy\": ";
	char text[sizeof(start)] = "";
	struct stat st;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return strcmp(text, start) == 0;
}

/* `--json report.json big.iso`, without DST, would replace big.iso by an earlier report. */
int mistaken_report(const struct cli *cli, const char *const *after, int n, char **operand)
{
	struct stat st;
	int i = 0;
	while (i < OPTIONS_MAX && !(after[i] && strcmp(option_table[i].name, "json") == 0))
		i++;
	const int found = i < OPTIONS_MAX ? find_operand(after[i], n, operand) : -1;
	if (found < 0 || n < 2 || cli->copy.force || cli->as_cp || !is_report(operand[found]))
		return EXIT_DONE;
	const char *report = operand[found];
	if (!cli->target && found == n - 1)
		return message_option("json",
				      "%s is an earlier report, and DST: use --json=%s, or -f to "
				      "replace it",
				      report, report);
	if (cli->target || n > 2)
		return message_option("json",
				      "%s is an earlier report, and a SRC: use --json=%s, or -f to "
				      "copy it",
				      report, report);
	if (stat(operand[1], &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return EXIT_DONE;
	return message_option("json",
			      "%s is an earlier report and would %s %s: use --json=%s, or -f to "
			      "copy it",
			      report, S_ISDIR(st.st_mode) ? "go into" : "replace", operand[1],
			      report);
}

/* Suggests the option or mode that was probably meant: it differs by one typing error. */

#define NAME_SIZE 32 /* no option is longer */

const char *suggest_option(const struct option_row *table, const char *text)
{
	char name[NAME_SIZE + 1];
	strncpy(name, text, NAME_SIZE);
	name[NAME_SIZE] = '\0';
	name[strcspn(name, "=")] = '\0';
	for (const struct option_row *row = table; !option_table_ends(row); row++)
		if (row->name && differs_by_one(name, row->name))
			return row->name;
	return NULL;
}

size_t suggest_completions(const struct option_row *table, const char *text, char *names,
			   size_t size)
{
	const size_t length = strcspn(text, "=");
	size_t n = 0, used = 0;
	for (const struct option_row *row = table; !option_table_ends(row); row++) {
		if (!row->name || strncmp(row->name, text, length) != 0)
			continue;
		int more = snprintf(names + used, size - used, "%s--%s", n++ ? ", " : "",
				    row->name);
		used = used + (size_t)more < size ? used + (size_t)more : size - 1;
	}
	return n;
}
