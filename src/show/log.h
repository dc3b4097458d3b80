/* SPDX-License-Identifier: MIT
 *
 * --log-file. Without that option, all of these do nothing.
 */
#ifndef SHOW_LOG_H
#define SHOW_LOG_H

#include "output.h"
#include "report.h"

/* Opens the file before anything is copied; the library will refuse it as an operand. Returns an
 * exit status. */
int log_open(struct cli *, int argc, char **argv);
/* An entry that -v lists; a warning or failure, with `what` before it; the end of the copy. */
void log_entry(const struct cli *, const struct fcopy_entry *);
void log_error(const char *what, const struct fcopy_error *);
void log_end(const struct cli *, const struct fcopy_report *, const struct fcopy_tree_report *);
struct output *log_output(void); /* its file */

#endif
