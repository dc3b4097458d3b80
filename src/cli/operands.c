/* SPDX-License-Identifier: MIT
 * SRC, DST and MODE, in the order in which the command line has them. And a word after an option
 * that was meant as its value: optional values need a =.
 */
#include "option.h"
#include "show/show.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The last of several operands may be meant as a mode: what is said if there is no such directory.
 */
static void note_mistaken_mode(struct cli *cli, int n, const char *text)
{
	static char reason[256];
	const bool mode = fcopy_mode_find(text) != NULL;
	if (cli->target || cli->as_cp || cli->bare || n < 3 || (mode && cli->copy.mode))
		return;
	const char *near = n > 3 || cli->tree.recursive ? NULL : suggest_mode(text);
	if (mode) /* with -r, or after more than two operands */
		snprintf(reason, sizeof(reason), "no such directory; use -m %s to choose a mode",
			 text);
	else if (near)
		snprintf(reason, sizeof(reason), "neither a mode nor a directory; did you mean %s?",
			 near);
	else if (n == 3 && text[0] && text[strspn(text, "0123456789")] == '\0')
		snprintf(reason, sizeof(reason),
			 "neither a mode nor a directory; --list prints the modes");
	else if (n == 3 && !cli->tree.recursive && !strchr(text, '/'))
		snprintf(reason, sizeof(reason),
			 "neither a mode (see --list) nor a directory for several SRC");
	if (reason[0])
		cli->no_directory_reason = reason;
}

/* As an operand a mode has its number or full name: `fcopy n1 n2 par` is meant for a directory. */
static bool names_mode(const char *text)
{
	const struct fcopy_mode *m = fcopy_mode_find(text);
	return m && (!m->alias || strcmp(text, m->alias) != 0);
}

/* Is an option given that applies only to trees, or to entries of DST? */
static bool has_tree_option(const struct cli *cli)
{
	const struct fcopy_tree_options *o = &cli->tree;
	return o->recursive || cli->target || o->update || o->backup || o->remove_destination ||
	       o->link || o->symbolic_link || o->attributes_only || o->parents || cli->interactive;
}

/* Does the command copy a tree or several sources? The third of three operands may be a mode. */
static bool is_tree(const struct cli *cli, int n, char **operand)
{
	if (cli->action != ACTION_COPY)
		return false;
	if (has_tree_option(cli) || n > 3)
		return true;
	return n == 3 && (cli->as_cp || !names_mode(operand[2]));
}

static int refuse_operands(const struct cli *cli, int n, char **operand)
{
	if (cli->target)
		return message_usage(NULL, "missing SRC: use fcopy -t DIR SRC...");
	if (cli->action == ACTION_BENCHMARK)
		return message_usage(NULL, "missing SRC: use fcopy --benchmark SRC");
	if (n == 1)
		return message_usage(operand[0], "missing DST: use fcopy SRC DST");
	return message_usage(NULL, "missing SRC and DST: use fcopy SRC DST, or fcopy -h for help");
}

static int take_sources(struct cli *cli, int n, char **operand)
{
	if (n < (cli->target ? 1 : 2))
		return refuse_operands(cli, n, operand);
	note_mistaken_mode(cli, n, operand[n - 1]);
	if (cli->copy.no_directory && cli->no_directory_reason && fcopy_mode_find(operand[n - 1]))
		return message_usage(operand[n - 1], "%s", cli->no_directory_reason);
	cli->sources = operand;
	cli->source_count = (size_t)n - !cli->target;
	cli->src = operand[0];
	cli->dst = cli->target ? cli->target : operand[n - 1];
	return EXIT_DONE;
}

/* The last slash of / stays. */
static void strip_slashes(char **operand, int n)
{
	for (int i = 0; i < n; i++)
		for (size_t l = strlen(operand[i]); l > 1 && operand[i][l - 1] == '/'; l--)
			operand[i][l - 1] = '\0';
}

/* Of MODE, whose name cp would take for DST: it would copy both files into the directory, and here
 * the second would be lost. DST itself is operand[1], which only the library looks up. */
static bool is_directory(const char *mode)
{
	struct stat st;
	return stat(mode, &st) == 0 && S_ISDIR(st.st_mode);
}

/* As cp, which knows no streams: a file may have such a name. An absolute path, such as /dev/stdin,
 * names the same for both. Returns false if there is no memory. */
static bool operands_name_file(char **operand)
{
	if ((*operand)[0] == '/' ||
	    fcopy_operand_kind(*operand, STDIN_FILENO, NULL) == FCOPY_KIND_PATH)
		return true;
	return asprintf(operand, "./%s", *operand) >= 0;
}

static int name_files(struct cli *cli, int n, char **operand)
{
	char *target = (char *)cli->target;
	bool named = !target || operands_name_file(&target);
	cli->target = target;
	for (int i = 0; i < n && named; i++)
		named = operands_name_file(&operand[i]);
	return named ? EXIT_DONE : message_usage(NULL, "out of memory");
}

/* DST is http-listen:, after any number of SRC and perhaps before MODE: the files are served. */
static bool is_served(struct cli *cli, int n, char **operand, int *status)
{
	const int mode = n > 2 && names_mode(operand[n - 1]) &&
			 cli_is_http(operand[n - 2], STDOUT_FILENO);
	const int dst = n - 1 - mode;
	if (cli->action != ACTION_COPY || cli->target || dst < 1 ||
	    !cli_is_http(operand[dst], STDOUT_FILENO) || has_tree_option(cli) ||
	    cli->tree.follow == FCOPY_FOLLOW_NEVER || cli->tree.dry_run)
		return false;
	cli->src = operand[0];
	cli->dst = operand[dst];
	cli->served = operand;
	cli->served_count = (size_t)dst;
	*status = EXIT_DONE;
	if (mode && cli->copy.mode)
		*status = message_usage(operand[n - 1],
					"the mode is given twice: leave out -m or this operand");
	else if (mode)
		*status = mode_set(cli, NULL, operand[n - 1]);
	return true;
}

int operands_take(struct cli *cli, int n, char **operand)
{
	int status;
	if (cli->as_cp && name_files(cli, n, operand) != EXIT_DONE)
		return EXIT_USAGE;
	const int others = cli->target ? 0 : n > 2 && !is_tree(cli, n, operand) ? 2 : 1;
	if (cli->strip_slashes)
		strip_slashes(operand, n - others);
	if (is_served(cli, n, operand, &status))
		return status;
	if (is_tree(cli, n, operand))
		return take_sources(cli, n, operand);
	if (n == 1 && cli->action == ACTION_BENCHMARK) {
		cli->src = operand[0];
		cli->dst = "."; /* only scratch files are made */
		return EXIT_DONE;
	}
	if (n < 2)
		return refuse_operands(cli, n, operand);
	if (n > 3)
		return message_usage(operand[3], "one operand too many: use fcopy SRC DST [MODE]");
	cli->src = operand[0];
	cli->dst = operand[1];
	/* A symlink has no bytes to copy. */
	if ((cli->tree.follow == FCOPY_FOLLOW_NEVER || cli->tree.dry_run) &&
	    cli->action == ACTION_COPY) {
		cli->sources = operand;
		cli->source_count = 1;
	}
	if (cli->action == ACTION_BENCHMARK && names_mode(operand[n - 1]))
		return message_usage(operand[n - 1],
				     "--benchmark runs every mode: leave out this operand (use "
				     "./%s for a file)",
				     operand[n - 1]);
	if (n == 2)
		return EXIT_DONE;
	if (cli->copy.mode)
		return message_usage(operand[2],
				     "the mode is given twice: leave out -m or this operand (use "
				     "./%s for a directory)",
				     operand[2]);
	if (cli->action == ACTION_BENCHMARK)
		return message_usage(operand[2],
				     "one operand too many: use fcopy --benchmark SRC [DST]");
	if (is_directory(operand[2]))
		return message_usage(operand[2], "is also a directory: use -m %s or ./%s",
				     operand[2], operand[2]);
	return mode_set(cli, NULL, operand[2]);
}
