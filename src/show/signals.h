/* SPDX-License-Identifier: MIT
 *
 * Signals that end a copy.
 */
#ifndef SHOW_SIGNALS_H
#define SHOW_SIGNALS_H

#include <stdbool.h>

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

#endif
