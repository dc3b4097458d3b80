/* SPDX-License-Identifier: MIT
 *
 * Events and phases, for the caller.
 *
 * To add a warning:
 * 1. Call copy_warn() for a file; in a tree report_warning() or report_operand_warning() of
 *    src/tree/report.h. Put numbers that differ from file to file into parentheses at the end of
 *    the reason: warnings that are equal up to there are printed as one.
 * 2. If the user can do something: a value of enum fcopy_advice in include/fcopy.h, and its words
 *    in src/show/advice.c.
 * 3. Tests: `mentions` of tests/cli/helper.bash checks the text, `value 'o["warnings"]'` the JSON
 *    object.
 */
#ifndef COPY_NOTIFY_H
#define COPY_NOTIFY_H

#include "copy.h"

/* Calls options.notify, if the caller set it. */
void copy_notify(const struct copy *, enum fcopy_event_kind, const struct fcopy_error *,
		 const char *text);
/* The same for a warning of fcopy itself about the file at path. */
void copy_warn(const struct copy *, const char *path, int err, const char *reason,
	       enum fcopy_advice);
/* Reports a problem of the source: fails with options.strict, otherwise warns. */
int copy_warn_or_fail(struct copy *, int err, const char *reason);
/* Judges that the copy has, or will have, so many bytes: fails with options.strict if another size
 * is expected, otherwise warns. */
int copy_check_size(struct copy *, uint64_t bytes);
/* Starts a phase of options.progress; total: the bytes that it will handle, 0: unknown. */
void copy_phase(const struct copy *, enum fcopy_phase, uint64_t total);
/* The same for a tree, whose bytes and entries are counted over all sources. copy_tree_begin sets
 * these counters to 0 and starts COPY; copy_tree_phase starts a phase unless it is the current one.
 * The pointer may be NULL. */
void copy_tree_begin(struct fcopy_progress *);
void copy_tree_phase(struct fcopy_progress *, enum fcopy_phase);

/* Cheap questions about a file, before the first byte. */

/* Is little of the file in the page cache; does its file system do uncached I/O? */
bool ask_is_cold(int fd, off_t size);
bool ask_is_uncached(int fd);

#endif
