/* SPDX-License-Identifier: MIT
 *
 * What the command line asks for, and the functions of the program, the only code that prints.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "fcopy.h"

#include <stdio.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define BENCHMARK_RUNS_MAX 1000

enum action { ACTION_COPY, ACTION_BENCHMARK, ACTION_LIST, ACTION_HELP, ACTION_VERSION };

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

/* What the command line asks for. */
struct cli {
	enum action action;
	const char *src, *dst;
	struct fcopy_options copy;
	struct fcopy_tree_options tree; /* all but its .copy, which is the one above */
	char **sources;                 /* of a tree */
	size_t source_count;            /* 0: one file, src to dst */
	const char *target;             /* -t */
	unsigned verbose;               /* how often -v was given */
	bool quiet, progress, stats, json, csv;
	const char *json_file; /* NULL: standard output */
	bool json_lines;       /* an object for each entry, too */
	const char *log_file;  /* NULL: none */
	unsigned runs;         /* of --benchmark; 0: its own number */
	bool keep_listening;
	unsigned max_clients; /* 0: the library's own */
	struct filter_arguments filters;
	uint64_t max_delete; /* if tree.max_delete is set */
	bool update_given;
	bool interactive; /* -i */
	bool declined;    /* ... and a file was kept */
	bool as_cp;       /* called by the name cp: there is no operand MODE, and usage errors are
			     failures */
	bool null;        /* names in files end with a null byte */
	bool recursive_given; /* -r, not only -a: as with rsync, a listed directory stands for what
				 is in it */
};

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

/* size.c: a SIZE as in coreutils: 8192, 64K and 64KiB (1024), 64kB (1000), up to E. */
bool size_parse(const char *text, uint64_t *size);

/* help.c */
void help_print(void);
void list_print(void);
void list_json(FILE *);

/* messages.c: on stderr, `fcopy: PATH: CALL: REASON`, and a line with a hint if there is one. */
void message_error(const struct fcopy_error *);
void message_text(const struct fcopy_error *);   /* without the hint */
void message_reason(const struct fcopy_error *); /* PATH: CALL: REASON, without a newline */
/* The report's error; of a full disk also how much space was needed and free. */
void message_failure(const struct fcopy_report *);
/* `fcopy: warning: PATH: CALL: REASON`. */
void message_warning(const struct fcopy_report *, const struct fcopy_error *);
/* `fcopy: WHAT: REASON`. Returns EXIT_USAGE. */
int message_usage(const char *what, const char *reason, ...) __attribute__((format(printf, 2, 3)));
/* The same about --name. */
int message_option(const char *name, const char *reason, ...) __attribute__((format(printf, 2, 3)));
const char *message_last_usage(void); /* the text of the last usage error */
/* hint.c: parts of a message, and of a hint: text with its control characters escaped, which could
 * move the cursor, fake a second line or reverse the text; the name of DST.fcopy-part, which is
 * next to the file itself if dst is a symlink. */
void message_print(const char *text);
void message_print_on(FILE *, const char *text);
void message_part(const char *dst);
void message_beside(const char *dst, const char *suffix); /* the same with another suffix */
bool message_part_exists(const char *dst);
void message_quoted(const char *path); /* as one shell word */

/* events.c: for options.notify, with the struct cli as user. */
void event_print(void *user, const struct fcopy_event *);

/* entry_line.c: does -v list this entry? Writes its line without the end: `SRC -> DST`, or what
 * else was done. */
bool entry_is_listed(const struct cli *, const struct fcopy_entry *);
void entry_list(const struct cli *, const struct fcopy_entry *, FILE *);

/* flood.c: counts a warning. Returns whether it is one of the first five of its call and errno;
 * with -v and for a server always true. */
bool flood_passes(const struct cli *, const struct fcopy_error *);
void flood_print(void); /* how many there were of each */

/* tree_print.c: copies cli->sources, with cli->copy complete. Returns fcopy_tree()'s result; the
 * failures are printed. */
int tree_copy(struct cli *, struct fcopy_tree_report *);
/* Prints a failed entry, and keeps it for --json. */
void tree_failed(const struct cli *, const struct fcopy_error *);
/* After the progress line is gone: how many failed, and which SRC is in place, or kept. */
void tree_print_end(const struct cli *, const struct fcopy_tree_report *, bool interrupted);

/* standard.c: gives a closed descriptor 0, 1 or 2 a placeholder. Without it SRC or DST would get
 * that number, and a message on stderr would be written into the copy. */
void standard_reserve(void);

/* progress.c: shows the counters that it returns, and answers SIGUSR1, until it is stopped. */
struct fcopy_progress *progress_start(const struct cli *);
/* Only answers SIGUSR1, for the copy that begins now. */
struct fcopy_progress *progress_answer(const struct cli *);
/* Erases the line, so that something else can be printed, and keeps it off until the unlock. */
void progress_lock(void);
void progress_unlock(void);
/* Between the two: what the copy waits for, "a sender" or "a receiver", and where. */
void progress_wait_for(const char *what, const char *address);
/* Prints the last line of a copy that succeeded, if there was a line or --progress was given. */
void progress_stop(const struct fcopy_report *);

/* terminal.c: what fd can show. */
size_t terminal_width(int fd);    /* columns */
bool terminal_moves_cursor(void); /* false: TERM=dumb, which gets plain lines */
bool terminal_colour(int fd);
bool terminal_utf8(void);
bool terminal_foreground(int fd); /* false: this process is a background job there */

/* signals.c: SIGINT, SIGTERM and SIGHUP set *cancel, but SIGTERM *stop if stop is not NULL; a
 * second one kills. */
void signals_catch(volatile int *cancel, volatile int *stop);
/* SIGPIPE sets *cancel, too: a tree must be removed also when the reader of messages has ended. */
void signals_catch_pipe(void);
/* A write to a socket whose peer is gone fails with EPIPE instead of ending the process. */
void signals_ignore_pipe(void);
/* SIGPIPE is only noted: a message that nobody reads must not end the copy of a file. */
void signals_note_pipe(void);
/* The copy failed with EPIPE: was it by SIGPIPE? If so, signals_caught returns that signal. */
bool signals_take_pipe(void);
/* Sets *cancel without a signal: nobody reads the report any more. */
void signals_cancel(void);
const char *signals_name(int number); /* without SIG */
/* The signal that set *cancel, or that signals_take_pipe took; 0: none. */
int signals_caught(void);
/* Ends the process by that signal, if there was one. */
void signals_reraise(void);

#endif
