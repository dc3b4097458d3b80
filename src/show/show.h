/* SPDX-License-Identifier: MIT
 *
 * What the rest of the program uses of this room: messages and the progress line; sink.h
 * has the rest.
 */
#ifndef SHOW_SHOW_H
#define SHOW_SHOW_H

#include "cli/cli.h"

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

#endif
