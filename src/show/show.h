/* SPDX-License-Identifier: MIT
 *
 * What a user reads beside the results: hints, messages and the progress line; and signals. sink.h
 * and report.h have the results.
 */
#ifndef SHOW_SHOW_H
#define SHOW_SHOW_H

#include "cli/cli.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/* say.c: as printf(3). A hint and a note are broken into lines between words on a terminal. A
 * message is one line. */
#define hint_printf(...)    say_line("fcopy: hint: ", true, __VA_ARGS__)
#define note_printf(...)    say_line("fcopy: ", true, __VA_ARGS__)
#define message_printf(...) say_line("fcopy: ", false, __VA_ARGS__)
void say_line(const char *start, bool breaks, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void print_on(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define GLUE "\1" /* in their text: a space at which a line is not broken */

/* What a name looks like there. Only an argument of these functions: they free it, and print its
 * glue as spaces. */

/* With its control characters escaped, which could move the cursor, fake a second line or reverse
 * the text. */
const char *escaped(const char *text);
const char *quoted(const char *path);                /* as one shell word */
const char *part_escaped(const char *dst);           /* the path of DST.fcopy-part */
const char *part_quoted(const char *dst);            /* the same as one shell word */
const char *error_words(const struct fcopy_error *); /* PATH: CALL: REASON, escaped */

void print_escaped(FILE *, const char *text); /* at once */
/* The path of DST.fcopy-part; false: it is too long. */
bool part_path(const char *dst, char part[PATH_MAX]);

/* hint.c */

#define HINT_SHARDS     "remove %s while no shard runs"
#define HINT_WOULD_KEEP "use --resume to keep an unfinished copy"

/* Hints propose nothing that is refused together with what this command line gives. */
void hint_about(const struct cli *);
/* What the user can do about an error, if there is anything. */
void hint_print(const struct fcopy_error *);
/* Its parts: what the library advises about this path; and what follows from the errno alone, if
 * there is something. */
void hint_advice(enum fcopy_advice, const char *path);
bool hint_cause(const struct fcopy_error *);
/* Is there such a hint, and is it the same for all paths? */
bool hint_is_general(enum fcopy_advice);
/* SRC looks like the value of an option before it, and the failure comes from that. Returns whether
 * it is so. */
bool hint_value(const struct cli *, const struct fcopy_error *);
void hint_bare(const struct cli *); /* the same without a failure; cli->bare_value is set */
/* Is DST HOST:PORT, or http:HOST:PORT, a URL without its slashes? The copy has made a file of that
 * name. */
void hint_new_file(const char *src, const char *dst);
/* Would the same command fail again, whatever is freed or repaired? DST cannot hold so large a
 * file, or refuses an attribute. */
bool hint_repeats(const struct fcopy_error *);
/* Copies the directory part of a path; "." if there is none. */
void hint_directory(const char *path, char directory[PATH_MAX]);

/* messages.c: warnings of one kind that come by the thousand. */

/* Counts a warning. Returns whether it is one of the first five of its call and errno;
 * with -v and for a server always true. */
bool flood_passes(const struct cli *, const struct fcopy_error *);
void flood_print(void); /* how many there were of each */

/* messages.c: on stderr, `fcopy: PATH: CALL: REASON`, and a line with a hint if there is one. */
void message_error(const struct fcopy_error *);
void message_text(const struct fcopy_error *); /* without the hint */
/* The report's error; of a full disk also how much space was needed and free. */
void message_failure(const struct fcopy_report *);
/* `fcopy: warning: PATH: CALL: REASON`. */
void message_warning(const struct fcopy_report *, const struct fcopy_error *);
/* `fcopy: WHAT: REASON`, and the same of --WHAT. what NULL: only the reason. Return EXIT_USAGE. */
#define message_usage(...)  message_refuse("", __VA_ARGS__)
#define message_option(...) message_refuse("--", __VA_ARGS__)
int message_refuse(const char *dashes, const char *what, const char *reason, ...)
    __attribute__((format(printf, 3, 4)));
const char *message_last_usage(void); /* the text of the last usage error */

/* tree_print.c: prints a failed entry. */
void tree_failed(const struct cli *, const struct fcopy_error *);
/* After the progress line is gone: how many failed, and which SRC is in place, or kept. */
void tree_print_end(const struct cli *, const struct fcopy_tree_report *, bool interrupted);

/* progress.c: shows the counters that it returns, and answers SIGUSR1, until it is stopped. NULL: a
 * server that goes on has no single status. */
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

/* Signals that end a copy. */

/* SIGINT, SIGTERM and SIGHUP set *cancel, but SIGTERM *stop if stop is not NULL; a
 * second one kills. */
void signals_catch(volatile int *cancel, volatile int *stop);
/* SIGPIPE sets *cancel, too: a tree must be removed also when the reader of messages has ended. */
void signals_catch_pipe(void);
/* A write to a socket whose peer is gone fails with EPIPE instead of ending the process. */
void signals_ignore_pipe(void);
/* SIGPIPE is only noted: a message without a reader must not end the copy of a file. */
void signals_note_pipe(void);
/* The copy failed with EPIPE: was it by SIGPIPE? If so, signals_caught returns that signal. */
bool signals_take_pipe(void);
/* Sets *cancel without a signal: the report has no reader any more. */
void signals_cancel(void);
const char *signals_name(int number); /* without SIG */
/* The signal that set *cancel, or that signals_take_pipe took; 0: none. */
int signals_caught(void);
/* Ends the process by that signal, if there was one. */
void signals_reraise(void);

/* What is printed when a socket listens. */

/* FCOPY_EVENT_LISTENING. With port 0 the port is printed even with --quiet: the kernel chose it. */
void listening_print(const struct cli *, const struct fcopy_event *);

#endif
