/* SPDX-License-Identifier: MIT
 * The command line, read by the table of options.
 */
#include "copy/conflicts.h"
#include "option.h"
#include "show/report.h"
#include "show/show.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Letters without a row of their own: -r, and -P with hard links. */
#define MORE_LETTERS "Rd"

/* clang-format off */
/* Options of rsync(1) and what fcopy calls them. A name that ends in - is that of several. */
static const struct {
	const char *name, *ours;
} other_names[] = {
    {"acls", "--preserve=mode"},
    {"append", "--resume"},
    {"append-", "--resume"},
    {"backup-dir", "leave it out: backups (-b) stay in the directory of the file"},
    {"bwlimit", "--limit-rate"},
    {"chmod", "leave it out: fcopy keeps modes or uses your umask; see chmod(1)"},
    {"chown", "leave it out: fcopy keeps owners or uses yours; see chown(1)"},
    {"compress", "leave it out: fcopy does not compress"},
    {"copy-links", "-L"},
    {"delete-excluded", "leave it out: fcopy removes no excluded entry"},
    {"delete-", "--delete"},
    {"existing", "fcopy has none: it always copies what DST lacks"},
    {"filter", "--include and --exclude"},
    {"from0", "-0"},
    {"group", "--preserve=ownership"},
    {"hard-links", "-a or -d"},
    {"human-readable", "--stats"},
    {"ignore-existing", "-n"},
    {"ignore-times", "--checksum or no --update"},
    {"info", "-v or --progress"},
    {"itemize-changes", "-v"},
    {"links", "-P"},
    {"mkpath", "leave it out: create the directory first, with mkdir -p"},
    {"numeric-ids", "leave it out: fcopy copies the numbers of owners"},
    {"owner", "--preserve=ownership"},
    {"partial", "--resume"},
    {"partial-", "--resume"},
    {"perms", "--preserve=mode"},
    {"remove-source-files", "leave it out: copy with --verify, then use rm"},
    {"rsh", "tcp:HOST:PORT as DST"},
    {"size-only", "leave it out: fcopy compares sizes and times (--mirror), or bytes (--checksum), "
     "never sizes alone"},
    {"times", "--preserve=timestamps"},
    {"whole-file", "leave it out: fcopy always copies whole files"},
    {"xattrs", "--preserve=xattr"},
};

/* The same for its letters. */
static const struct {
	char letter;
	const char *ours;
} other_letters[] = {{'A', "use -a or --preserve=mode for ACLs"},
		     {'X', "use -a or --preserve=xattr"},
		     {'z', "leave it out: fcopy does not compress"},
		     {'W', "leave it out: fcopy always copies whole files"},
		     {'c', "use --checksum with --mirror or --update=changed"},
		     {'e', "use tcp:HOST:PORT as DST"},
		     {'g', "use -a or --preserve=ownership"},
		     {'o', "use -a or --preserve=ownership"},
		     {'D', "use -a, which copies devices and special files"},
		     {'E', "use -a or --preserve=mode"},
		     {'V', "use --version"}};

/* The long options of cp(1) of coreutils 9. */
static const char *const cp_names[] = {
    "archive", "attributes-only", "backup", "context", "copy-contents", "debug", "dereference",
    "force", "help", "interactive", "link", "keep-directory-symlink", "no-clobber",
    "no-dereference", "no-preserve", "no-target-directory", "one-file-system", "parents",
    "preserve", "recursive", "reflink", "remove-destination", "sparse", "strip-trailing-slashes",
    "suffix", "symbolic-link", "target-directory", "update", "verbose", "version"};
/* clang-format on */

#define LONG_ONLY 256 /* getopt's value of a row without letter: LONG_ONLY + its index */

/* The table in getopt's terms. */
struct grammar {
	struct option longs[OPTIONS_MAX + 1];
	char shorts[(size_t)3 * OPTIONS_MAX + sizeof(MORE_LETTERS)];
	char **typed; /* argv before getopt has changed its order; empty if memory is short */
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
	strcpy(s, MORE_LETTERS);
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

/* The only long option of cp that begins so, or NULL. */
static const char *find_cp_name(const char *text)
{
	const size_t length = strcspn(text, "=");
	const char *found = NULL;
	for (size_t i = 0; i < sizeof(cp_names) / sizeof(*cp_names); i++) {
		if (strncmp(cp_names[i], text, length) != 0)
			continue;
		if (strlen(cp_names[i]) == length)
			return cp_names[i];
		if (found)
			return NULL;
		found = cp_names[i];
	}
	return found;
}

/* An abbreviation that several options of fcopy share, but only one of cp: the row of that option;
 * its value is in optarg. NULL: none. */
static const struct option_row *find_cp_row(int argc, char **argv)
{
	const char *text = argv[optind - 1] + 2;
	const char *name = strncmp(argv[optind - 1], "--", 2) == 0 ? find_cp_name(text) : NULL;
	const struct option_row *row = option_table;
	if (!name)
		return NULL;
	while (!option_table_ends(row) && (!row->name || strcmp(row->name, name) != 0))
		row++;
	if (option_table_ends(row))
		return NULL;
	optarg = strchr(text, '=');
	if (optarg)
		optarg++;
	else if (has_argument(row) == required_argument && optind < argc)
		optarg = argv[optind++];
	return (optarg ? no_argument : required_argument) == has_argument(row) ? NULL : row;
}

/* Lists the options that begin with text, up to its =, and returns how many there are. */
static size_t suggest_completions(const char *text, char *names, size_t size)
{
	const size_t length = strcspn(text, "=");
	size_t n = 0, used = 0;
	for (const struct option_row *row = option_table; !option_table_ends(row); row++) {
		if (!row->name || strncmp(row->name, text, length) != 0)
			continue;
		int more = snprintf(names + used, size - used, "%s--%s", n++ ? ", " : "",
				    row->name);
		used = used + (size_t)more < size ? used + (size_t)more : size - 1;
	}
	return n;
}

static int refuse_long(const char *argument)
{
	char names[256];
	if (suggest_completions(argument + 2, names, sizeof(names)) > 1)
		return message_usage(argument, "ambiguous: %s", names);
	const char *name = find_cp_name(argument + 2);
	if (name && strcmp(name, "debug") == 0)
		return message_usage(argument, "an option of cp; use -vv");
	const size_t length = strcspn(argument + 2, "=");
	for (size_t i = 0; i < sizeof(other_names) / sizeof(*other_names); i++) {
		const size_t n = strlen(other_names[i].name);
		if ((n == length || other_names[i].name[n - 1] == '-') &&
		    strncmp(other_names[i].name, argument + 2, n) == 0)
			return message_usage(argument, "an option of rsync; %s%s",
					     strstr(other_names[i].ours, ": ") ? "" : "use ",
					     other_names[i].ours);
	}
	const char *near = suggest_option(option_table, argument + 2);
	if (near)
		return message_usage(argument, "no such option; did you mean --%s?", near);
	return message_usage(argument, "no such option");
}

/* The word in which getopt refused a =: the next one, unless the = was its last character. */
static const char *word_with_equals(char **argv)
{
	const char *last = argv[optind - 1];
	return last[0] == '-' && last[strlen(last) - 1] == '=' ? last : argv[optind];
}

/* Reports an option that getopt refused. */
static int refuse_option(int option, char **argv)
{
	const struct option_row *row = find_row(optopt);
	const char letter[] = {'-', (char)optopt, '\0'};
	if (option == ':' && strncmp(argv[optind - 1], "--", 2) != 0)
		return message_usage(letter, "needs a value");
	if (option == ':')
		return message_option(row->name, "needs a value");
	if (row)
		return message_option(row->name, "takes no value");
	if (optopt == 0)
		return refuse_long(argv[optind - 1]);
	if (optopt == '=')
		return message_usage(word_with_equals(argv),
				     "only long options take =VALUE, as --preserve=LIST");
	for (size_t i = 0; i < sizeof(other_letters) / sizeof(*other_letters); i++)
		if (other_letters[i].letter == optopt)
			return message_usage(letter, "an option of rsync; %s",
					     other_letters[i].ours);
	return message_usage(letter, "no such option");
}

/* Options that exclude each other; src/copy/rules.c has what they demand of SRC, DST and the mode.
 */
static int check_conflicts(struct cli *cli)
{
	char reason[FCOPY_DETAIL_MAX];
	bool *has = cli->given.has;
	given_add(&cli->given, &cli->copy, &cli->tree);
	has[GIVEN_BENCHMARK] |= cli->action == ACTION_BENCHMARK;
	has[GIVEN_COPY_CONTENTS] = cli->copy_contents;
	has[GIVEN_EXCLUDE] |= cli->filters.count > 0;
	has[GIVEN_FILES_FROM] |= cli->filters.files != NULL;
	has[GIVEN_FROM_SOCKET] = cli_receives(cli);
	has[GIVEN_INTERACTIVE] |= cli->interactive;
	has[GIVEN_JSON_LINES] = cli->json_lines;
	has[GIVEN_KEEP_LISTENING] = cli->keep_listening;
	has[GIVEN_LOG_FILE] = cli->log_file != NULL;
	has[GIVEN_MAX_CLIENTS] = cli->max_clients > 0;
	has[GIVEN_MIRROR] = cli->mirror;
	has[GIVEN_NULL_BYTES] = cli->null;
	has[GIVEN_PROGRESS] = cli->progress;
	has[GIVEN_QUIET] = cli->quiet;
	has[GIVEN_RUNS] = cli->runs > 0;
	has[GIVEN_SERVES] = cli->keep_listening || cli->served;
	has[GIVEN_SEVERAL] = cli->source_count > 1;
	has[GIVEN_TARGET] |= cli->target != NULL;
	has[GIVEN_TO_HTTP] = cli_is_http(cli->dst, 1);
	has[GIVEN_TO_SOCKET] = cli_sends(cli);
	has[GIVEN_TREE] = cli->sources != NULL;
	has[GIVEN_UPDATE_OPTION] = cli->update_given;
	hint_about(cli);
	const char *option = conflict_find(&cli->given, reason);
	if (option && strcmp(option, "exclude") == 0)
		option = filters_first_name(cli);
	return option ? message_option(option, "%s", reason) : EXIT_DONE;
}

static int check_clean(struct cli *cli, const bool *given, int n, char **operand)
{
	for (size_t i = 0; i < OPTIONS_MAX; i++)
		if (given[i] && !option_table[i].with_clean)
			return message_option(option_table[i].name,
					      "cannot be combined with --clean");
	if (cli->json_lines)
		return message_option("json=lines", "cannot be combined with --clean");
	const int first = cli->clean ? 0 : 1;
	if (n > first)
		return message_usage(operand[first], "--clean takes one directory");
	if (first == 1 && (n == 0 || !operand[0][0]))
		return message_option("clean",
				      n == 0 ? "needs a directory" : "invalid value '' (empty)");
	cli->clean = first == 1 ? operand[0] : cli->clean;
	return EXIT_DONE;
}

/* Where the last word is an option that lacks its value, musl counts the NULL after it as that
 * value: optind is too large, and the NULL may have moved to before the operands. */
static int next_option(const struct grammar *g, int argc, char **argv)
{
	const int option = getopt_long(argc, argv, g->shorts, g->longs, NULL);
	int end = 0;
	while (option == ':' && end < argc && argv[end])
		end++;
	if (option == ':' && end < argc) {
		memmove(argv + end, argv + end + 1, (size_t)(argc - end) * sizeof(*argv));
		argv[argc] = NULL;
		optind -= optind > end;
	}
	optind = optind > argc ? argc : optind;
	return option;
}

/* Reads the rest of an invalid command line: --json may follow, and where the operands are. */
static void parse_rest(struct cli *cli, const struct grammar *g, int argc, char **argv)
{
	int option;
	while ((option = next_option(g, argc, argv)) != -1) {
		const struct option_row *row = find_row(option);
		if (row && strcmp(row->name, "json") == 0 && !(optarg && !optarg[0]))
			row->set(cli, row, optarg);
	}
	cli->operand = argv + optind;
	cli->operands = (size_t)(argc - optind);
}

/* -rlptgoD is how rsync spells -a: here, goD would be the directory of -t. */
static bool is_rsync_archive(const struct cli *cli, int option, const char *word)
{
	struct stat st;
	return option == 't' && optarg && !cli->as_cp && word[0] == '-' && word[1] != '-' &&
	       word[1] != 't' && word + strlen(word) == optarg + strlen(optarg) &&
	       strncmp(optarg, "go", 2) == 0 && optarg[strspn(optarg, "goDvhzAXHxuS")] == '\0' &&
	       lstat(optarg, &st) < 0;
}

/* --help, --version and --list do nothing else: `fcopy -avh SRC DST` must not do nothing and
 * succeed. */
static int check_alone(const struct cli *cli, const bool *given, int operands)
{
	const char *name = NULL;
	bool others = operands > 0;
	for (size_t i = 0; i < OPTIONS_MAX; i++) {
		if (!given[i])
			continue;
		if (option_table[i].set == option_table_action)
			name = option_table[i].name;
		else
			others |= strcmp(option_table[i].name, "json") != 0;
	}
	if (!others || cli->as_cp)
		return EXIT_DONE;
	if (cli->action == ACTION_BRIEF_HELP)
		return message_usage("-h", "prints the help, and stands alone: leave it out (sizes "
					   "always have units, as with -h of rsync)");
	return message_option(name, "stands alone: leave out everything else");
}

static int parse_arguments(struct cli *cli, const struct grammar *g, int argc, char **argv)
{
	/* By row; an option may be repeated. after: the word after a missing optional value. */
	bool given[OPTIONS_MAX] = {false};
	const char *after[OPTIONS_MAX] = {NULL};
	int option, status = EXIT_DONE;
	opterr = 0;
	while ((option = next_option(g, argc, argv)) != -1) {
		if (option == 'd') /* as cp: -P and --preserve=links */
			cli->tree.hard_links = true;
		const struct option_row *row = find_row(option == 'R'   ? 'r'
							: option == 'd' ? 'P'
									: option);
		if (option == '?' && optopt == 0 && cli->as_cp)
			row = find_cp_row(argc, argv);
		if (row && is_rsync_archive(cli, option, argv[optind - 1]))
			return message_usage(argv[optind - 1],
					     "an option of rsync, which is -a here; -t takes a "
					     "directory");
		if (!row)
			return refuse_option(option, argv);
		status = row->set(cli, row, optarg);
		if (status != EXIT_DONE)
			return status;
		if (option == 'h' && strncmp(argv[optind - 1], "--", 2) != 0)
			cli->action = ACTION_BRIEF_HELP;
		given[row - option_table] = true;
		after[row - option_table] = has_argument(row) == optional_argument && !optarg
						? mistaken_word(option, row, argv, g->typed)
						: NULL;
	}
	if (cli->action == ACTION_CLEAN)
		return check_clean(cli, given, argc - optind, argv + optind);
	if (cli->action != ACTION_COPY && cli->action != ACTION_BENCHMARK)
		return check_alone(cli, given, argc - optind);
	for (size_t i = 0; i < OPTIONS_MAX && cli->action == ACTION_BENCHMARK; i++)
		if (given[i] && !option_table[i].benchmarked)
			return message_option(option_table[i].name,
					      "cannot be combined with --benchmark");
	/* As cp: a symlink has a hard link to what it leads to. */
	if (cli->tree.link && cli->tree.follow == FCOPY_FOLLOW_DEFAULT)
		cli->tree.follow = FCOPY_FOLLOW_ALWAYS;
	cli->tree.keep_going |= cli->as_cp && cli->tree.recursive && cli->copy.shard.count == 0;
	cli->words = argv + 1;
	cli->word_count = optind - 1 - (optind > 1 && strcmp(argv[optind - 1], "--") == 0);
	mistaken_value(cli, after, argc - optind, argv + optind);
	status = mistaken_report(cli, after, argc - optind, argv + optind);
	if (status == EXIT_DONE)
		status = operands_take(cli, argc - optind, argv + optind);
	if (status == EXIT_DONE)
		status = check_conflicts(cli);
	/* As cp, write into what cannot be replaced. */
	if (cli->as_cp && !cli->copy.in_place && !cli->copy.resume && !cli->copy.no_clobber &&
	    cli->copy.shard.count == 0)
		cli->copy.in_place = FCOPY_WHEN_AUTO;
	return status == EXIT_DONE ? filters_read(cli) : status;
}

/* A link to the program with the name cp answers like cp. */
static bool is_named_cp(const char *program)
{
	const size_t n = program ? strlen(program) : 0;
	return n >= 2 && strcmp(program + n - 2, "cp") == 0 && (n == 2 || program[n - 3] == '/');
}

static struct voice voice_of(const struct cli *cli)
{
	const bool terminal = isatty(STDERR_FILENO), asks = cli->verbose > 0 || cli->progress;
	const bool watched = terminal && !cli->quiet;
	return (struct voice){.notes = !cli->quiet,
			      .all = cli->verbose > 0,
			      .entries = cli->verbose > 0 || cli->tree.dry_run,
			      .steps = cli->verbose > 1,
			      .watched = watched,
			      .peers = cli->verbose > 0 || watched,
			      .progress = cli->progress || watched,
			      .counts = asks && !cli->as_cp,
			      .tables = !cli->json || cli->json_file,
			      .advises = (asks || terminal) && !cli->quiet && !cli->as_cp};
}

int options_parse(struct cli *cli, int argc, char **argv)
{
	*cli = (struct cli){.copy.api = FCOPY_API, .as_cp = is_named_cp(argv[0])};
	struct grammar g;
	char *none[] = {NULL}, **typed = calloc((size_t)argc + 1, sizeof(*typed));
	build_grammar(&g);
	g.typed = typed ? typed : none;
	for (int i = 0; typed && i < argc; i++)
		typed[i] = argv[i];
	int status = parse_arguments(cli, &g, argc, argv);
	if (status != EXIT_DONE)
		parse_rest(cli, &g, argc, argv);
	else if (cli->action >= ACTION_HELP)
		cli->json = false; /* neither help nor version has an object */
	free(typed);
	cli->voice = voice_of(cli);
	return status;
}
