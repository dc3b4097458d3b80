/* SPDX-License-Identifier: MIT
 *
 * --json=lines: one object for each entry, written while the copy runs; the summary comes last.
 */
#ifndef SHOW_LINES_H
#define SHOW_LINES_H

#include "cli/cli.h"

/* Lines are written in whole, within a second. lines_end() writes the rest. */
void lines_start(const struct cli *);
void lines_end(void);

/* Adds the line of an entry. Cancels the copy if standard output has no reader any more. */
void lines_entry(const struct fcopy_entry *);
/* The line of a copy of one file that has ended. */
void lines_file(const struct cli *, const struct fcopy_report *);

int lines_lost(void); /* errno of a failed write, or 0 */

#endif
