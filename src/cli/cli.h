/* SPDX-License-Identifier: MIT
 *
 * The program's side that talks to people: the only code that prints.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "fcopy.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

enum action { ACTION_COPY, ACTION_BENCHMARK, ACTION_LIST, ACTION_HELP, ACTION_VERSION };

/* What the command line asks for. */
struct cli {
	enum action action;
	const char *src, *dst;
	struct fcopy_options copy;
	struct fcopy_tree_options tree; /* all but its .copy, which is the one above */
	char **sources;                 /* of a tree */
	size_t source_count;            /* 0: one file, src to dst */
	const char *target;             /* -t */
	bool verbose, quiet, progress, stats, json;
	bool keep_listening;
	unsigned max_clients; /* 0: the library's own */
};

/* options.c: fills *cli from the command line. Returns EXIT_DONE, or EXIT_USAGE after it has said
 * why. */
int options_parse(struct cli *, int argc, char **argv);
/* The same for one mode's number or name. */
int options_set_mode(struct cli *, const char *text);

/* size.c: a SIZE as in coreutils: 8192, 64K and 64KiB (1024), 64kB (1000), up to E. */
bool size_parse(const char *text, uint64_t *size);

/* help.c */
void help_print(void);
void list_print(void);

/* messages.c: one line on stderr, `fcopy: WHAT: CALL: REASON`, and the hint if there is one. */
void message_error(const struct fcopy_error *);
/* For options.notify, with the struct cli as user. */
void message_event(void *user, const struct fcopy_event *);
/* `fcopy: WHAT: REASON`, and where to find help. Returns EXIT_USAGE. */
int message_usage(const char *what, const char *reason, ...) __attribute__((format(printf, 2, 3)));
/* The same about --name. */
int message_option(const char *name, const char *reason, ...) __attribute__((format(printf, 2, 3)));
void message_modes(void);

/* tree_print.c: copies cli->sources, with cli->copy complete. Returns fcopy_tree()'s result; the
 * failures are printed. */
int tree_copy(struct cli *, struct fcopy_tree_report *);

/* standard.c: gives a closed descriptor 0, 1 or 2 a placeholder. Without it SRC or DST would get
 * that number, and a message on stderr would be written into the copy. */
void standard_reserve(void);

/* progress.c: watches the counters that it returns, and answers SIGUSR1, until it is stopped. */
struct fcopy_progress *progress_start(const struct cli *);
/* Only answers SIGUSR1, for the copy that begins now. */
struct fcopy_progress *progress_answer(const struct cli *);
/* Takes the line off the terminal, for something else to be printed, until it may be shown again.
 */
void progress_hide(void);
void progress_show(void);
void progress_stop(const struct fcopy_report *);

/* terminal.c: what fd can show. */
size_t terminal_width(int fd); /* columns */
bool terminal_colour(int fd);
bool terminal_utf8(void);
bool terminal_foreground(int fd); /* false: we are a background job there */

/* signals.c: SIGINT, SIGTERM and SIGHUP set *cancel, but SIGTERM *stop if stop is not NULL; a
 * second one kills. */
void signals_catch(volatile int *cancel, volatile int *stop);
/* A write to a socket whose peer is gone fails with EPIPE, and kills nobody. */
void signals_ignore_pipe(void);
/* Dies by the signal that was caught, if there was one that set *cancel. */
void signals_obey(void);

#endif
