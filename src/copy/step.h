/* SPDX-License-Identifier: MIT
 *
 * One engine at work.
 */
#ifndef COPY_STEP_H
#define COPY_STEP_H

#include "copy.h"

/* Runs one engine over t and records what it did. Returns what the engine returns; a
 * failure is recorded in the report, a refusal in its step. */
int step_run(struct copy *, const struct engine *, struct transfer *t);
/* The same in several threads at once. */
int step_run_threads(struct copy *, const struct engine *, struct transfer *t, unsigned threads);
/* Will the data be flushed, or writeback started, before the commit? */
bool step_flushes(const struct copy *);
/* Turns the refusal of the engine that t holds into the copy's failure. Returns -errno. */
int step_refused(struct copy *, const struct engine *, const struct transfer *t);

#endif
