/* SPDX-License-Identifier: MIT
 *
 * What the rest of the program uses of this room: messages, the progress line and signals; sink.h
 * has the rest.
 */
#ifndef SHOW_SHOW_H
#define SHOW_SHOW_H

#include "cli/cli.h"

#include <stdbool.h>

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
