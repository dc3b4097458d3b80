/* SPDX-License-Identifier: MIT
 * The table of options: each row has the name, value, effect and help of one option.
 */
#include "option.h"
#include "show/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(name) .field = offsetof(struct cli, name)

static void *option_field(struct cli *cli, const struct option_row *row)
{
	return (char *)cli + row->field;
}

static int set_flag(struct cli *cli, const struct option_row *row, const char *value)
{
	(void)value;
	*(bool *)option_field(cli, row) = true;
	return EXIT_DONE;
}

/* -n or -i: the last one counts, as with cp. */
static int set_replacing(struct cli *cli, const struct option_row *row, const char *value)
{
	cli->copy.no_clobber = cli->interactive = false;
	return set_flag(cli, row, value);
}

static int set_count(struct cli *cli, const struct option_row *row, const char *value)
{
	(void)value;
	++*(unsigned *)option_field(cli, row);
	return EXIT_DONE;
}

static int set_string(struct cli *cli, const struct option_row *row, const char *value)
{
	if (!value[0])
		return message_option(row->name, "invalid value '' (empty)");
	*(const char **)option_field(cli, row) = value;
	return EXIT_DONE;
}

static int set_link_dest(struct cli *cli, const struct option_row *row, const char *value)
{
	if (cli->tree.link_dest)
		return message_option(row->name, "was given twice: name one earlier copy");
	return set_string(cli, row, value);
}

/* Does --json ask for lines? A file of that name is ./lines. */
static bool asks_for_lines(const char *value)
{
	return value && strcmp(value, "lines") == 0;
}

/* A file; standard output, which - names, too, is NULL. */
static int set_json(struct cli *cli, const struct option_row *row, const char *value)
{
	if (value && !value[0])
		return message_option(row->name, "invalid file name '' (empty)");
	cli->json = true;
	cli->json_lines = asks_for_lines(value);
	cli->json_file = cli->json_lines || (value && strcmp(value, "-") == 0) ? NULL : value;
	return EXIT_DONE;
}

static int set_file(struct cli *cli, const struct option_row *row, const char *value)
{
	return value[0] ? set_string(cli, row, value)
			: message_option(row->name, "invalid file name '' (empty)");
}

int option_table_action(struct cli *cli, const struct option_row *row, const char *value)
{
	(void)value;
	cli->action = (enum action)row->min;
	return EXIT_DONE;
}

static int set_clean(struct cli *cli, const struct option_row *row, const char *value)
{
	cli->action = ACTION_CLEAN; /* without =DIR, DIR is the operand */
	return value ? set_string(cli, row, value) : EXIT_DONE;
}

static const struct option_word when_words[] = {{"auto", FCOPY_WHEN_AUTO, false},
						{"always", FCOPY_WHEN_ALWAYS, false},
						{"never", FCOPY_WHEN_NEVER, false},
						{.name = NULL}};
static const struct option_word update_words[] = {
    {"older", FCOPY_UPDATE_OLDER, false}, {"changed", FCOPY_UPDATE_CHANGED, false},
    {"none", FCOPY_UPDATE_NONE, false},   {"none-fail", FCOPY_UPDATE_NONE_FAIL, false},
    {"all", FCOPY_UPDATE_ALL, false},     {.name = NULL}};
static const struct option_word backup_words[] = {{"simple", FCOPY_BACKUP_SIMPLE, false},
						  {"numbered", FCOPY_BACKUP_NUMBERED, false},
						  {"existing", FCOPY_BACKUP_EXISTING, false},
						  {"none", FCOPY_BACKUP_NONE, false},
						  {"never", FCOPY_BACKUP_SIMPLE, true},
						  {"t", FCOPY_BACKUP_NUMBERED, true},
						  {"nil", FCOPY_BACKUP_EXISTING, true},
						  {"off", FCOPY_BACKUP_NONE, true},
						  {.name = NULL}};

/* Stores in an enum what the word means that the value is. */
static int set_word(const struct option_row *row, const char *value, void *to)
{
	const struct option_word *w = option_word_find(row, value);
	if (!w)
		return option_word_refuse(row, "value", value);
	*(unsigned *)to = w->value;
	return EXIT_DONE;
}

static int set_when(struct cli *cli, const struct option_row *row, const char *value)
{
	return set_word(row, value ? value : "always", option_field(cli, row));
}

static int set_size(struct cli *cli, const struct option_row *row, const char *value)
{
	uint64_t size;
	if (!size_parse(value, &size) || size < row->min)
		return message_option(row->name,
				      "invalid size '%s' (minimum 1; such as 8192 or 64K)", value);
	*(uint64_t *)option_field(cli, row) = size;
	return EXIT_DONE;
}

static int set_buffer_size(struct cli *cli, const struct option_row *row, const char *value)
{
	uint64_t size;
	if (!size_parse(value, &size) || size < 1 || size > FCOPY_BUFFER_MAX)
		return message_option(row->name, "invalid size '%s' (1 to 1G)", value);
	cli->copy.buffer_size = (size_t)size;
	return EXIT_DONE;
}

static int set_number(struct cli *cli, const struct option_row *row, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);
	if (*end || value[0] < '0' || value[0] > '9' || n < row->min || n > row->max)
		return message_option(row->name, "invalid number '%s' (%d to %d)", value,
				      (int)row->min, (int)row->max);
	*(unsigned *)option_field(cli, row) = (unsigned)n;
	return EXIT_DONE;
}

static int parse_seconds(const struct option_row *row, const char *value, const char *zero,
			 double *seconds)
{
	char *end;
	*seconds = strtod(value, &end);
	if (*end || end == value || value[strspn(value, "0123456789.")] ||
	    !(*seconds >= 0 && *seconds <= row->max))
		return message_option(row->name, "invalid number of seconds '%s' (0 to %d%s)",
				      value, (int)row->max, zero);
	return EXIT_DONE;
}

/* Seconds to milliseconds; 0, no limit, is negative in the library. */
static int set_timeout(struct cli *cli, const struct option_row *row, const char *value)
{
	double seconds;
	if (parse_seconds(row, value, "; 0: no limit", &seconds) != EXIT_DONE)
		return EXIT_USAGE;
	int ms = (int)(seconds * 1000 + 0.5);
	cli->copy.timeout_ms = seconds > 0 ? ms + (ms == 0) : -1;
	return EXIT_DONE;
}

static int set_update(struct cli *cli, const struct option_row *row, const char *value)
{
	cli->update_given = true;
	return set_word(row, value ? value : "older", &cli->tree.update);
}

static int set_window(struct cli *cli, const struct option_row *row, const char *value)
{
	double seconds;
	if (parse_seconds(row, value, "", &seconds) != EXIT_DONE)
		return EXIT_USAGE;
	cli->tree.modify_window_ns = seconds > 0 ? (int64_t)(seconds * 1e9) : -1;
	return EXIT_DONE;
}

static int set_max_delete(struct cli *cli, const struct option_row *row, const char *value)
{
	char *end;
	errno = 0;
	cli->max_delete = strtoull(value, &end, 10);
	if (*end || end == value || value[strspn(value, "0123456789")] || errno)
		return message_option(row->name, "invalid number '%s' (minimum 0)", value);
	cli->tree.max_delete = &cli->max_delete;
	return EXIT_DONE;
}

static int set_follow(struct cli *cli, const struct option_row *row, const char *value)
{
	(void)value;
	cli->tree.follow = (enum fcopy_follow)row->min;
	return EXIT_DONE;
}

static int set_recursive(struct cli *cli, const struct option_row *row, const char *value)
{
	(void)row;
	(void)value;
	cli->tree.recursive = cli->recursive_given = true;
	return EXIT_DONE;
}

/* As cp -a: -r -P --preserve=all, and hard links. */
static int set_archive(struct cli *cli, const struct option_row *row, const char *value)
{
	(void)value;
	cli->tree.recursive = cli->tree.hard_links = true;
	cli->tree.follow = FCOPY_FOLLOW_NEVER;
	return attributes_preserve(cli, row, "all");
}

/* As -a --update=changed --delete -T. */
static int set_mirror(struct cli *cli, const struct option_row *row, const char *value)
{
	cli->tree.update = FCOPY_UPDATE_CHANGED;
	cli->update_given = cli->tree.delete_extra = cli->copy.no_directory = true;
	cli->mirror = true;
	return set_archive(cli, row, value);
}

static int set_target(struct cli *cli, const struct option_row *row, const char *value)
{
	if (cli->target)
		return message_option(row->name, "is given twice");
	cli->target = value;
	cli->tree.into_directory = true;
	return EXIT_DONE;
}

static int set_backup(struct cli *cli, const struct option_row *row, const char *value)
{
	const char *given = value ? value : getenv("VERSION_CONTROL");
	const int r = set_word(row, given && given[0] ? given : "existing", &cli->tree.backup);
	cli->no_backup = cli->tree.backup == FCOPY_BACKUP_NONE;
	return r;
}

static bool is_json_file(const char *text)
{
	const size_t n = strlen(text);
	return asks_for_lines(text) || (n > 5 && strcmp(text + n - 5, ".json") == 0);
}

bool option_is_value(const struct option_row *row, const char *text)
{
	return row->set == set_json              ? is_json_file(text)
	       : row->set == attributes_preserve ? attributes_are_list(text)
						 : option_word_find(row, text) != NULL;
}

static int set_suffix(struct cli *cli, const struct option_row *row, const char *value)
{
	if (!value[0] || strchr(value, '/'))
		return message_option(row->name, "invalid suffix '%s' (not empty, no /)", value);
	cli->tree.backup_suffix = value;
	return cli->tree.backup || cli->no_backup ? EXIT_DONE : set_backup(cli, row, NULL);
}

/* A file system without SELinux has no context to set. */
static int set_context(struct cli *cli, const struct option_row *row, const char *value)
{
	(void)cli;
	(void)value;
	if (access("/sys/fs/selinux/enforce", F_OK) == 0)
		return message_option(row->name, "fcopy cannot set a security context: use cp");
	return EXIT_DONE;
}

/* clang-format off */
/* The most used first, in the groups of OPTIONS in src/man/fcopy.1. */
const struct option_row option_table[] = {
	{.help = "Common options"},
	{"recursive", 'r', NULL, "copy directories and everything below them (or -R)",
	 set_recursive, .with_clean = true,
	 .brief = "copy directories and everything below them"},
	{"archive", 'a', NULL, "copy directories, all attributes and hard links",
	 set_archive,
	 .brief = "copy directories with all attributes"},
	{"target-directory", 't', "DIR", "copy every SRC into DIR",
	 set_target,
	 .brief = "copy every SRC into DIR"},
	{"no-target-directory", 'T', NULL, "DST is the copy itself, even if it is a directory",
	 set_flag, FIELD(copy.no_directory),
	 .brief = "DST is the copy itself, even if it is a directory", .benchmarked = true},
	{"mode", 'm', "MODE", "use this mode: number, name or alias (see --list)",
	 mode_set, .field = 0},
	{"preserve", 'p', "[LIST]", "keep mode, ownership, timestamps (the default), links, xattr or all",
	 attributes_preserve, .words = attribute_words},
	{"force", 'f', NULL, "replace DST even if it has other hard links or another owner, or is read-only",
	 set_flag, FIELD(copy.force), .with_clean = true},
	{"no-clobber", 'n', NULL, "do not replace an existing DST; exit with 0",
	 set_replacing, FIELD(copy.no_clobber),
	 .brief = "do not replace an existing DST"},
	{"update", 'u', "[WHICH]", "replace only older files (default), or changed ones (size, time; with -a or -p), none (none-fail: and fail), or all",
	 set_update, .words = update_words,
	 .brief = "replace only older files"},
	{"verbose", 'v', NULL, "print each copied file; -vv: also how, and why", set_count,
	 FIELD(verbose),
	 .brief = "print each copied file"},
	{"quiet", 'q', NULL, "print only errors and hints", set_flag, FIELD(quiet),
	 .with_clean = true, .benchmarked = true},
	{.help = "Safety"},
	{"fsync", 0, NULL, "succeed only when the copy is flushed to storage",
	 set_flag, FIELD(copy.fsync),
	 .brief = "succeed only when the copy is flushed to storage", .benchmarked = true},
	{"verify", 0, NULL, "flush the copy, read both from storage and compare",
	 set_flag, FIELD(copy.verify),
	 .brief = "read both back from storage and compare them"},
	{"strict", 0, NULL, "fail if SRC changes, is not --size bytes long, or is shorter than --count",
	 set_flag, FIELD(copy.strict)},
	{"resume", 0, NULL, "keep or continue an unfinished copy, DST.fcopy-part; for one directory, implies -T",
	 set_flag, FIELD(copy.resume),
	 .brief = "keep an unfinished copy, and continue it"},
	{"clean", 0, "[DIR]", "list unfinished copies in DIR (-r: and below); remove them after a yes on a terminal, or with -f",
	 set_clean, FIELD(clean), .with_clean = true,
	 .brief = "list unfinished copies in DIR; -f: remove them"},
	{"keep-going", 0, NULL, "commit a new tree without the entries that failed; exit with 1",
	 set_flag, FIELD(tree.keep_going)},
	{"inplace", 0, "[WHEN]", "overwrite DST itself; a failure leaves it incomplete (auto: only if DST cannot be replaced)",
	 set_when, .words = when_words, FIELD(copy.in_place)},
	{"shard", 0, "SHARE", "copy one share of SRC: I/N, auto, auto/N, finish/N; see fcopy-shards(7)",
	 shard_parse, .field = 0},
	{"job", 0, "NAME", "with --shard: join only shards with the same NAME",
	 shard_parse_job, .field = 0},
	{.help = "Trees"},
	{"mirror", 0, NULL, "make DST equal to SRC, and remove all else from DST (-aT --update=changed --delete)",
	 set_mirror,
	 .brief = "make DST equal to SRC; remove all else from DST"},
	{"dry-run", 0, NULL, "change nothing; print what would be done",
	 set_flag, FIELD(tree.dry_run),
	 .brief = "change nothing; print what would be done"},
	{"delete", 0, NULL, "with -r, remove from DST what SRC lacks",
	 set_flag, FIELD(tree.delete_extra)},
	{"max-delete", 0, "N", "fail, and keep all that SRC lacks, if that is more than N",
	 set_max_delete, .field = 0},
	{"link-dest", 0, "DIR", "make hard links to unchanged files of DIR",
	 set_link_dest, FIELD(tree.link_dest)},
	{"checksum", 0, NULL, "with --mirror or --update=changed, compare bytes",
	 set_flag, FIELD(tree.checksum)},
	{"modify-window", 0, "SEC", "treat times that differ by at most SEC as equal",
	 set_window, .max = 1000000},
	{"exclude", 0, "PATTERN", "do not copy entries that match (as in rsync)",
	 filters_set, .min = FILTER_EXCLUDE,
	 .brief = "do not copy entries that match"},
	{"include", 0, "PATTERN", "copy entries that match; the first match decides",
	 filters_set, .min = FILTER_INCLUDE},
	{"exclude-from", 0, "FILE", "read exclude patterns from the lines of FILE",
	 filters_set, .min = FILTER_EXCLUDE_FROM},
	{"files-from", 0, "FILE", "copy only the entries of SRC that FILE lists",
	 filters_set, .min = FILTER_FILES},
	{"null", '0', NULL, "--exclude-from, --files-from: names end with NUL",
	 set_flag, FIELD(null)},
	{"one-file-system", 'x', NULL, "copy mount points below SRC as empty directories",
	 set_flag, FIELD(tree.one_file_system)},
	{.help = "Progress and reports"},
	{"progress", 0, NULL, "show progress at once, even without a terminal",
	 set_flag, FIELD(progress)},
	{"stats", 0, NULL, "afterwards, print times, bytes and calls to stderr",
	 set_flag, FIELD(stats)},
	{"json", 0, "[FILE]", "afterwards, write a JSON object to stdout or FILE; --json=lines: also one for each entry",
	 set_json, .field = 0, .with_clean = true, .benchmarked = true},
	{"log-file", 0, "FILE", "append what -v prints and all errors, with times",
	 set_file, FIELD(log_file)},
	{.help = "Streams and sizes"},
	{"size", 0, "SIZE", "expect SIZE bytes; warn about more or fewer",
	 set_size, FIELD(copy.expected_size), .min = 1},
	{"count", 0, "SIZE", "copy at most SIZE bytes (of one file, as --size)",
	 set_size, FIELD(copy.count), .min = 1, .benchmarked = true},
	{"limit-rate", 0, "SIZE", "move at most SIZE bytes per second",
	 set_size, FIELD(copy.limit_rate), .min = 1, .benchmarked = true},
	{"keep-listening", 'k', NULL, "send SRC to each client, until SIGTERM",
	 set_flag, FIELD(keep_listening)},
	{"max-clients", 0, "N", "with -k, serve at most N at once (default 256)",
	 set_number, FIELD(max_clients), .min = 1, .max = FCOPY_CLIENTS_MAX},
	{"timeout", 0, "SECONDS", "close an idle connection (default 60; 0: never)",
	 set_timeout, .max = 1000000},
	{.help = "How the bytes are moved"},
	{"sparse", 0, "WHEN", "(only %) auto: keep holes (default); always: also turn zeros into holes; never",
	 set_when, .words = when_words, FIELD(copy.sparse), .takes = FCOPY_TAKES_SPARSE, .benchmarked = true},
	{"reflink", 0, "[WHEN]", "(only %) clone, which shares the blocks of SRC: auto (default), always (without WHEN), never",
	 set_when, .words = when_words, FIELD(copy.reflink), .takes = FCOPY_TAKES_REFLINK, .benchmarked = true},
	{"preallocate", 0, "WHEN", "allocate blocks first: auto, always, never",
	 set_when, .words = when_words, FIELD(copy.preallocate), .benchmarked = true},
	{"no-cache", 0, NULL, "(only %) keep the copy out of the page cache, and flush it",
	 set_flag, FIELD(copy.no_cache), .takes = FCOPY_TAKES_NO_CACHE, .benchmarked = true},
	{"threads", 'j', "N", "use N threads: for trees, or one file (%)",
	 set_number, FIELD(copy.threads), .min = 1, .max = FCOPY_THREADS_MAX, .takes = FCOPY_TAKES_THREADS, .benchmarked = true},
	{"buffer-size", 0, "SIZE", "(only %) bytes per call",
	 set_buffer_size, .takes = FCOPY_TAKES_BUFFER_SIZE, .benchmarked = true},
	{.help = "Measurements and information"},
	{"benchmark", 0, NULL, "time every mode; its files are made where DST would be, and removed",
	 option_table_action, .min = ACTION_BENCHMARK, .benchmarked = true},
	{"runs", 0, "N", "with --benchmark: runs of each mode (default 5)",
	 set_number, FIELD(runs), .min = 1, .max = BENCHMARK_RUNS_MAX, .benchmarked = true},
	{"list", 0, NULL, "list the modes, and which this kernel lacks",
	 option_table_action, .min = ACTION_LIST, .benchmarked = true},
	{"help", 'h', NULL, "print this help; -h: a short one", option_table_action, .min = ACTION_HELP, .benchmarked = true},
	{"version", 0, NULL, "print the version", option_table_action, .min = ACTION_VERSION, .benchmarked = true},
	{.help = "Options of cp"},
	{"interactive", 'i', NULL, "ask before DST is replaced",
	 set_replacing, FIELD(interactive)},
	{"backup", 'b', "[CONTROL]", "keep the old DST: simple (DST~), numbered (DST.~1~), existing, none",
	 set_backup, .words = backup_words},
	{"suffix", 'S', "SUFFIX", "as -b, with SUFFIX instead of ~",
	 set_suffix, .words = backup_words},
	{"remove-destination", 0, NULL, "make DST a new file; do not follow a symlink",
	 set_flag, FIELD(tree.remove_destination)},
	{"link", 'l', NULL, "make hard links instead of copies",
	 set_flag, FIELD(tree.link)},
	{"symbolic-link", 's', NULL, "make symlinks to SRC instead of copies",
	 set_flag, FIELD(tree.symbolic_link)},
	{"attributes-only", 0, NULL, "copy attributes, but no bytes: a new file is empty",
	 set_flag, FIELD(tree.attributes_only)},
	{"keep-directory-symlink", 0, NULL, "with -r, follow symlinks in DST to directories",
	 set_flag, FIELD(tree.keep_directory_symlink)},
	{"parents", 0, NULL, "copy a/b/SRC as DST/a/b/SRC",
	 set_flag, FIELD(tree.parents)},
	{"no-preserve", 0, "LIST", "do not preserve the attributes in LIST",
	 attributes_drop, .words = attribute_words},
	{"no-dereference", 'P', NULL, "copy symlinks (default with -r); -d: also keep hard links",
	 set_follow, .min = FCOPY_FOLLOW_NEVER},
	{"dereference", 'L', NULL, "follow symlinks (default: without -r)",
	 set_follow, .min = FCOPY_FOLLOW_ALWAYS},
	{"dereference-args", 'H', NULL, "follow only a SRC that is a symlink",
	 set_follow, .min = FCOPY_FOLLOW_OPERANDS},
	{"strip-trailing-slashes", 0, NULL, "ignore slashes at the end of each SRC",
	 set_flag, FIELD(strip_slashes)},
	{"copy-contents", 0, NULL, "ignored; refused with -r",
	 set_flag, FIELD(copy_contents)},
	{"context", 'Z', "[CTX]", "ignored; refused with SELinux",
	 set_context, .field = 0},
	{.letter = '.'},
};
/* clang-format on */
