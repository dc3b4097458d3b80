/* SPDX-License-Identifier: MIT
 * The command line, read by the table of options.
 */
#include "option.h"

#include <getopt.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Letters that mean something to cp: they mean the same here, or nothing. */
#define CP_LETTERS "abdfHilLnpPrRsStTuxZ"

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

static void build(struct grammar *g)
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
	strcpy(s, CP_LETTERS); /* those that have a row were found before */
}

/* The row of getopt's answer, or NULL. */
static const struct option_row *find_row(int option)
{
	for (const struct option_row *row = option_table; !option_table_ends(row); row++)
		if (option == (row->letter ? row->letter : LONG_ONLY + (int)(row - option_table)) &&
		    row->name)
			return row;
	return NULL;
}

/* Long options of cp: like its letters, they mean the same here, or nothing. */
static bool is_of_cp(const char *name)
{
	static const char *const names[] = {"attributes-only",
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
	size_t length = strcspn(name, "=");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
			return true;
	return false;
}

static int refuse_long(const char *argument)
{
	char names[256];
	if (suggest_completions(argument + 2, names, sizeof(names)) > 1)
		return message_usage(argument, "is short for each of %s", names);
	if (is_of_cp(argument + 2))
		return message_usage(argument, "cp has this option, fcopy does not");
	const char *near = suggest_option(argument + 2);
	if (near)
		return message_usage(argument, "no such option; did you mean --%s?", near);
	return message_usage(argument, "no such option");
}

/* What getopt would not take, or what only cp has. */
static int refuse(int option, char **argv)
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
	return message_usage(letter, option == '?' ? "no such option"
						   : "cp has this option, fcopy does not");
}

int options_set_mode(struct cli *cli, const char *text)
{
	cli->copy.mode = fcopy_mode_find(text);
	if (cli->copy.mode)
		return EXIT_DONE;
	const char *near = suggest_mode(text);
	if (near)
		message_usage(text, "no such mode; did you mean %s?", near);
	else
		message_usage(text, "no such mode; fcopy copies one file, SRC DST [MODE]");
	message_modes();
	return EXIT_USAGE;
}

static bool is_socket(const char *operand, int dash)
{
	return fcopy_operand_kind(operand, dash, NULL) >= FCOPY_KIND_SOCKET;
}

/* An option together with the mode and the action. */
static int check_row(const struct cli *cli, const struct option_row *row)
{
	const struct fcopy_mode *mode = cli->copy.mode ? cli->copy.mode : fcopy_modes();
	if (cli->action == ACTION_BENCHMARK && row->not_benchmarked)
		return message_option(row->name, "does not go with --benchmark");
	if (cli->action == ACTION_COPY && row->takes & ~mode->takes)
		return message_option(row->name, "does not belong to mode %d %s", mode->number,
				      mode->name);
	if (row->not_sent && is_socket(cli->dst, STDOUT_FILENO))
		return message_option(row->name, "means nothing where DST is a socket");
	if (row->not_received && is_socket(cli->src, STDIN_FILENO))
		return message_option(row->name, "means nothing where SRC is a socket");
	return EXIT_DONE;
}

/* What is of no use to a server, or NULL. A sink's DST, /dev/null, is always there: -n would leave
 * it so. */
static const char *unserved(const struct cli *cli)
{
	return cli->progress             ? "progress"
	       : cli->copy.expected_size ? "size"
	       : cli->copy.preserve      ? "preserve"
	       : cli->copy.no_clobber    ? "no-clobber"
					 : NULL;
}

/* Options together with each other. */
static int check_together(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	if (o->reflink == FCOPY_WHEN_ALWAYS && o->sparse != FCOPY_WHEN_AUTO)
		return message_option("reflink",
				      "a clone has the source's holes: not with --sparse");
	if (o->preallocate == FCOPY_WHEN_ALWAYS && o->sparse == FCOPY_WHEN_ALWAYS)
		return message_option("preallocate",
				      "holes have no blocks: not with --sparse=always");
	if (o->preallocate == FCOPY_WHEN_ALWAYS && o->reflink == FCOPY_WHEN_ALWAYS)
		return message_option("preallocate",
				      "a clone has the source's blocks: not with --reflink=always");
	if (o->in_place && (o->no_clobber || o->resume))
		return message_option("inplace", "does not go with --%s",
				      o->resume ? "resume" : "no-clobber");
	if (o->reflink == FCOPY_WHEN_ALWAYS && o->no_cache)
		return message_option("reflink", "a clone moves no bytes: not with --no-cache");
	if (cli->quiet && cli->progress)
		return message_option("progress", "contradicts --quiet");
	if (cli->keep_listening && unserved(cli))
		return message_option(unserved(cli), "does not go with --keep-listening");
	if (cli->max_clients && !cli->keep_listening)
		return message_option("max-clients", "goes with --keep-listening");
	if (o->timeout_ms && !is_socket(cli->src, STDIN_FILENO) &&
	    !is_socket(cli->dst, STDOUT_FILENO))
		return message_option("timeout", "neither SRC nor DST is a socket");
	return EXIT_DONE;
}

/* cp would copy both files into a directory of that name, and here the second would be lost. */
static int set_mode_operand(struct cli *cli, const char *text)
{
	struct stat st;
	if (fcopy_mode_find(text) && stat(text, &st) == 0 && S_ISDIR(st.st_mode))
		return message_usage(text, "is a directory as well: say -m %s or ./%s", text, text);
	return options_set_mode(cli, text);
}

/* Is it more than one file to DST? The third of three operands may be a mode. */
static bool is_tree(const struct cli *cli, int n, char **operand)
{
	if (cli->action != ACTION_COPY)
		return false;
	if (cli->tree.recursive || cli->target || n > 3)
		return true;
	return n == 3 && (cli->copy.mode || !fcopy_mode_find(operand[2]));
}

static int take_sources(struct cli *cli, int n, char **operand)
{
	if (n < (cli->target ? 1 : 2))
		return message_usage(n ? operand[0] : NULL,
				     n ? "missing DST after SRC" : "missing SRC and DST");
	cli->sources = operand;
	cli->source_count = (size_t)n - !cli->target;
	cli->src = operand[0];
	cli->dst = cli->target ? cli->target : operand[n - 1];
	return EXIT_DONE;
}

static int take_operands(struct cli *cli, int n, char **operand)
{
	bool mode_given = cli->copy.mode != NULL;
	if (is_tree(cli, n, operand))
		return take_sources(cli, n, operand);
	if (n < 2)
		return message_usage(n ? operand[0] : NULL,
				     n ? "missing DST after SRC" : "missing SRC and DST");
	if (n > 3)
		return message_usage(operand[3],
				     "one operand too many: fcopy copies one file, SRC DST [MODE]");
	if (n == 3 && mode_given)
		return message_usage(operand[2],
				     "the mode is given twice, by -m and as an operand");
	if (n == 3 && cli->action == ACTION_BENCHMARK)
		return message_usage(operand[2], "--benchmark runs every mode");
	cli->src = operand[0];
	cli->dst = operand[1];
	return n == 3 ? set_mode_operand(cli, operand[2]) : EXIT_DONE;
}

int options_parse(struct cli *cli, int argc, char **argv)
{
	struct grammar g;
	bool given[OPTIONS_MAX] = {false}; /* by row: an option may come any number of times */
	int option, status = EXIT_DONE;
	*cli = (struct cli){.copy.api = FCOPY_API};
	build(&g);
	opterr = 0;
	while ((option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1) {
		const struct option_row *row = find_row(option);
		status = row ? row->set(cli, row, optarg) : refuse(option, argv);
		if (status != EXIT_DONE)
			return status;
		given[row - option_table] = true;
	}
	if (cli->action != ACTION_COPY && cli->action != ACTION_BENCHMARK)
		return EXIT_DONE;
	status = take_operands(cli, argc - optind, argv + optind);
	for (size_t i = 0; i < OPTIONS_MAX && status == EXIT_DONE; i++)
		if (given[i])
			status = check_row(cli, &option_table[i]);
	return status == EXIT_DONE ? check_together(cli) : status;
}
