/* SPDX-License-Identifier: MIT
 * The command line, read by the table of options.
 */
#include "option.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A letter of cp(1) means the same here, or is refused. */
#define CP_LETTERS "abdfHilLnpPrRsStTuxZ"

/* Long options of cp(1) of coreutils 9 that fcopy does not have. */
static const char *const cp_names[] = {"attributes-only",
				       "backup",
				       "context",
				       "copy-contents",
				       "debug",
				       "interactive",
				       "keep-directory-symlink",
				       "link",
				       "parents",
				       "remove-destination",
				       "strip-trailing-slashes",
				       "suffix",
				       "symbolic-link",
				       "update"};

static const char only_in_cp[] = "cp has this option, fcopy does not";

#define OPTIONS_MAX 64
#define LONG_ONLY   256 /* getopt's value of a row without letter: LONG_ONLY + its index */

/* The table in getopt's terms. */
struct grammar {
	struct option longs[OPTIONS_MAX + 1];
	char shorts[(size_t)3 * OPTIONS_MAX + sizeof(CP_LETTERS)];
};

static int has_argument(const struct option_row *row)
{
	if (!row->value)
		return no_argument;
	return row->value[0] == '[' ? optional_argument : required_argument;
}

static void build_grammar(struct grammar *g)
{
	struct option *l = g->longs;
	char *s = g->shorts;
	*s++ = ':';
	for (const struct option_row *row = option_table; !option_table_ends(row); row++) {
		if (!row->name)
			continue;
		int value = row->letter ? row->letter : LONG_ONLY + (int)(row - option_table);
		*l++ = (struct option){row->name, has_argument(row), NULL, value};
		if (!row->letter)
			continue;
		*s++ = row->letter;
		if (has_argument(row) == required_argument) /* -p takes none: -pf is -p -f */
			*s++ = ':';
	}
	*l = (struct option){0};
	strcpy(s, CP_LETTERS); /* letters that have a row were found before */
}

/* The row for a return value of getopt, or NULL. */
static const struct option_row *find_row(int option)
{
	for (const struct option_row *row = option_table; !option_table_ends(row); row++)
		if (option == (row->letter ? row->letter : LONG_ONLY + (int)(row - option_table)) &&
		    row->name)
			return row;
	return NULL;
}

/* Is this a long option of cp, or an abbreviation of one? */
static bool is_cp_name(const char *name)
{
	size_t length = strcspn(name, "=");
	for (size_t i = 0; i < sizeof(cp_names) / sizeof(*cp_names); i++)
		if (length >= 3 && strncmp(cp_names[i], name, length) == 0)
			return true;
	return false;
}

static int refuse_long(const char *argument)
{
	char names[256];
	if (suggest_completions(option_table, argument + 2, names, sizeof(names)) > 1)
		return message_usage(argument, "ambiguous: %s", names);
	if (is_cp_name(argument + 2))
		return message_usage(argument, "%s", only_in_cp);
	const char *near = suggest_option(option_table, argument + 2);
	if (near)
		return message_usage(argument, "no such option; did you mean --%s?", near);
	return message_usage(argument, "no such option");
}

/* Reports an option that getopt refused, or that only cp has. */
static int refuse_option(int option, char **argv)
{
	const struct option_row *row = find_row(optopt);
	const char letter[] = {'-', (char)(option == '?' ? optopt : option), '\0'};
	if (option == ':' && strncmp(argv[optind - 1], "--", 2) != 0)
		return message_usage((const char[]){'-', (char)optopt, '\0'}, "needs a value");
	if (option == ':')
		return message_option(row->name, "needs a value");
	if (row)
		return message_option(row->name, "takes no value");
	if (option == '?' && optopt == 0)
		return refuse_long(argv[optind - 1]);
	if (optopt == '=')
		return message_usage(letter,
				     "no such option; -p takes no list, --preserve=LIST does");
	return message_usage(letter, "%s",
			     option == '?'      ? "no such option"
			     : letter[1] == 'R' ? "use -r to copy directories"
						: only_in_cp);
}

static bool is_standard_output(const char *dst)
{
	int fd;
	fcopy_operand_kind(dst, STDOUT_FILENO, &fd);
	return fd == STDOUT_FILENO;
}

/* What only the program knows; src/copy/rules.c has the rules of copying. */
static int check_program(const struct cli *cli)
{
	const bool json_out = cli->json && !cli->json_file;
	const bool benchmark = cli->action == ACTION_BENCHMARK;
	const struct {
		bool refused;
		const char *option, *reason;
	} rules[] = {
	    {cli->quiet && cli->progress, "progress", "cannot be combined with --quiet"},
	    {cli->keep_listening && cli->progress, "progress",
	     "cannot be combined with --keep-listening"},
	    {cli->keep_listening && cli->sources, "keep-listening",
	     "cannot be combined with -r, -a, -t or several SRC"},
	    {!cli->tree.recursive && cli->tree.keep_going, "keep-going", "requires -r or -a"},
	    {!cli->tree.recursive && cli->tree.one_file_system, "one-file-system",
	     "requires -r or -a"},
	    {cli->max_clients && !cli->keep_listening, "max-clients", "requires --keep-listening"},
	    {json_out && is_standard_output(cli->dst), "json",
	     "standard output receives the copy: use --json=FILE"},
	    {cli->csv && !benchmark, "csv", "requires --benchmark"},
	    {cli->csv && json_out, "csv",
	     "standard output receives the JSON object: use --json=FILE"},
	    {cli->runs && !benchmark, "runs", "requires --benchmark"},
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].refused)
			return message_option(rules[i].option, "%s", rules[i].reason);
	return EXIT_DONE;
}

/* cp would copy both files into a directory of that name; here the second file would be lost. */
static int set_mode_operand(struct cli *cli, const char *text)
{
	struct stat st;
	if (fcopy_mode_find(text) && stat(text, &st) == 0 && S_ISDIR(st.st_mode))
		return message_usage(text, "is also a directory: use -m %s or ./%s", text, text);
	return mode_set(cli, text);
}

/* What the last of several operands was probably meant as, if no file has that name: a mode. */
static int refuse_missing_directory(const struct cli *cli, int n, const char *text)
{
	struct stat st;
	if (cli->target || n < 3 || stat(text, &st) == 0 || errno != ENOENT)
		return EXIT_DONE;
	if (fcopy_mode_find(text)) /* with -r, or after more than two operands */
		return message_usage(text, "no such directory; use -m %s to choose a mode", text);
	const char *near = n > 3 || cli->tree.recursive ? NULL : suggest_mode(text);
	if (near)
		return message_usage(text, "neither a mode nor a directory; did you mean %s?",
				     near);
	if (n == 3 && text[0] && text[strspn(text, "0123456789")] == '\0')
		return message_usage(text,
				     "neither a mode nor a directory; --list prints the modes");
	return EXIT_DONE;
}

/* Is it more than one file to DST? The third of three operands may be a mode. */
static bool is_tree(const struct cli *cli, int n, char **operand)
{
	if (cli->action != ACTION_COPY)
		return false;
	if (cli->tree.recursive || cli->target || n > 3)
		return true;
	return n == 3 && !fcopy_mode_find(operand[2]);
}

static int refuse_operands(int n, char **operand)
{
	if (n == 1)
		return message_usage(NULL, "missing DST: use fcopy %s DST", operand[0]);
	return message_usage(NULL, "missing SRC and DST: use fcopy SRC DST, or fcopy -h for help");
}

static int take_sources(struct cli *cli, int n, char **operand)
{
	if (n < (cli->target ? 1 : 2))
		return refuse_operands(n, operand);
	int status = refuse_missing_directory(cli, n, operand[n - 1]);
	if (status != EXIT_DONE)
		return status;
	cli->sources = operand;
	cli->source_count = (size_t)n - !cli->target;
	cli->src = operand[0];
	cli->dst = cli->target ? cli->target : operand[n - 1];
	return EXIT_DONE;
}

static int take_operands(struct cli *cli, int n, char **operand)
{
	struct stat st;
	if (is_tree(cli, n, operand))
		return take_sources(cli, n, operand);
	if (n < 2)
		return refuse_operands(n, operand);
	if (n > 3)
		return message_usage(operand[3], "one operand too many: use fcopy SRC DST [MODE]");
	cli->src = operand[0];
	cli->dst = operand[1];
	if (cli->tree.follow == FCOPY_FOLLOW_NEVER && lstat(cli->src, &st) == 0 &&
	    S_ISLNK(st.st_mode)) { /* a symlink has no bytes to copy */
		cli->sources = operand;
		cli->source_count = 1;
	}
	if (n == 2)
		return EXIT_DONE;
	if (cli->copy.mode)
		return message_usage(operand[2],
				     "the mode is given twice: leave out -m or this operand (use "
				     "./%s for a directory)",
				     operand[2]);
	if (cli->action == ACTION_BENCHMARK)
		return message_usage(operand[2],
				     "--benchmark runs every mode: leave out this operand");
	return set_mode_operand(cli, operand[2]);
}

/* After a usage error: --json may follow the invalid argument. */
static void find_json(struct cli *cli, int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		size_t length = strcspn(argv[i], "=");
		if (length < strlen("--js") || strncmp(argv[i], "--json", length) != 0 ||
		    strcmp(argv[i] + length, "=") == 0)
			continue;
		cli->json = true;
		cli->json_file = option_json_file(argv[i][length] ? argv[i] + length + 1 : NULL);
	}
}

static int parse_arguments(struct cli *cli, int argc, char **argv)
{
	struct grammar g;
	bool given[OPTIONS_MAX] = {false}; /* by row; an option may be repeated */
	int option, status = EXIT_DONE;
	build_grammar(&g);
	opterr = 0;
	while ((option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
		const struct option_row *row = find_row(option);
		status = row ? row->set(cli, row, optarg) : refuse_option(option, argv);
		if (status != EXIT_DONE)
			return status;
		given[row - option_table] = true;
	}
	if (cli->action != ACTION_COPY && cli->action != ACTION_BENCHMARK)
		return EXIT_DONE;
	status = take_operands(cli, argc - optind, argv + optind);
	for (size_t i = 0; i < OPTIONS_MAX && status == EXIT_DONE; i++)
		if (given[i] && cli->action == ACTION_BENCHMARK && option_table[i].not_benchmarked)
			status = message_option(option_table[i].name,
						"cannot be combined with --benchmark");
	return status == EXIT_DONE ? check_program(cli) : status;
}

int options_parse(struct cli *cli, int argc, char **argv)
{
	*cli = (struct cli){.copy.api = FCOPY_API};
	int status = parse_arguments(cli, argc, argv);
	if (status != EXIT_DONE)
		find_json(cli, argc, argv);
	if (status != EXIT_DONE && !cli->json_file && is_standard_output(argv[argc - 1]))
		cli->json = false; /* an object there would be taken for the copy */
	return status;
}
