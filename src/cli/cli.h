/* SPDX-License-Identifier: MIT
 *
 * What the command line asks for.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "copy/conflicts.h"
#include "fcopy.h"
#include "show/patient.h"

#include <stdio.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define BENCHMARK_RUNS_MAX 1000

enum action {
	ACTION_COPY,
	ACTION_BENCHMARK,
	ACTION_CLEAN,
	ACTION_LIST,
	ACTION_HELP,
	ACTION_BRIEF_HELP,
	ACTION_VERSION
};

/* Options that say which entries of a tree are copied. */
enum filter_kind { FILTER_EXCLUDE, FILTER_INCLUDE, FILTER_EXCLUDE_FROM, FILTER_FILES };

struct filter_argument {
	enum filter_kind kind;
	const char *value;
};

struct filter_arguments {
	struct filter_argument *argument; /* in the order of the command line */
	size_t count, size;
	struct fcopy_pattern *pattern; /* what they and their files say */
	const char *files;             /* --files-from */
};

/* What is printed for people: computed once from -q, -v, --progress, --dry-run, the name cp, and
 * whether standard error is a terminal. */
struct voice {
	bool notes;    /* warnings, and what explains a failure */
	bool all;      /* each failure and warning, however many */
	bool entries;  /* each entry of a tree */
	bool steps;    /* mechanisms, and why */
	bool watched;  /* a terminal shows it to somebody */
	bool peers;    /* who connects */
	bool progress; /* the line of progress */
	bool counts;   /* what a merge or mirror did */
	bool tables;   /* on standard output: --list, --clean, --benchmark */
	bool advises;  /* what could be done better or cleaned up; cp(1) does not */
};

/* What the command line asks for. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the members are grouped by subject */
struct cli {
	enum action action;
	const char *src, *dst;
	const char *clean; /* the directory of --clean */
	bool unsearched;   /* ... which has directories, and -r is missing */
	struct fcopy_options copy;
	struct fcopy_output output[4];  /* of copy: --json, --log-file, standard output and error */
	struct fcopy_tree_options tree; /* all but its .copy, which is the one above */
	char **sources;                 /* of a tree */
	size_t source_count;            /* 0: one file, src to dst */
	char **words;                   /* of the command line, without operands */
	int word_count;
	char **served; /* each SRC, if DST is http-listen:; otherwise NULL */
	size_t served_count;
	char **operand; /* all of them, after a usage error */
	size_t operands;
	const char *target;              /* -t */
	const char *no_directory_reason; /* what is said if DST is missing; NULL: the usual */
	bool mirror;                     /* --mirror was given */
	const char *bare;                /* an option without its optional value; or NULL */
	const char *bare_value;          /* ... of which an operand, which does not exist, is one */
	bool bare_is_dst;                /* ... DST, not a SRC */
	unsigned verbose;                /* how often -v was given */
	bool quiet, progress, stats, json;
	struct voice voice;
	const char *json_file; /* NULL: standard output */
	bool json_lines;       /* an object for each entry, too */
	const char *log_file;  /* NULL: none */
	unsigned runs;         /* of --benchmark; 0: its own number */
	bool keep_listening;
	unsigned max_clients; /* 0: the library's own */
	struct filter_arguments filters;
	uint64_t max_delete; /* if tree.max_delete is set */
	bool no_backup;      /* --backup=none, to which -S adds nothing */
	bool update_given;
	struct given_set given; /* all of it, as a set */
	bool interactive;       /* -i */
	bool declined;          /* ... and a file was skipped */
	bool as_cp; /* called by the name cp: there is no operand MODE, and usage errors are
		       failures */
	bool strip_slashes;
	bool copy_contents;
	bool null;            /* names in files end with a null byte */
	bool recursive_given; /* -r, not only -a: as with rsync, a listed directory stands for what
				 is in it */
};

static inline bool cli_is_http(const char *operand, int dash)
{
	return fcopy_operand_kind(operand, dash, NULL) >= FCOPY_KIND_HTTP;
}

/* Is DST, or SRC, a socket? */
static inline bool cli_sends(const struct cli *cli)
{
	return fcopy_operand_kind(cli->dst, 1, NULL) >= FCOPY_KIND_SOCKET;
}

static inline bool cli_receives(const struct cli *cli)
{
	return fcopy_operand_kind(cli->src, 0, NULL) >= FCOPY_KIND_SOCKET;
}

/* options.c: fills *cli from the command line. Returns EXIT_DONE, or EXIT_USAGE after a message;
 * cli->json and cli->json_file are set in either case. */
int options_parse(struct cli *, int argc, char **argv);

/* help.c */
void help_print(bool brief); /* -h, or --help */

/* start.c: copies cli->sources, with cli->copy complete. Returns fcopy_tree()'s result. */
int tree_copy(struct cli *, struct fcopy_tree_report *);

/* --clean. Returns fcopy_clean()'s result, and its error. */
int clean_run(struct cli *, struct fcopy_error *);

/* Gives a closed descriptor 0, 1 or 2 a placeholder. Without it SRC or DST would get
 * that number, and a message on stderr would be written into the copy. */
void standard_reserve(void);

#endif
