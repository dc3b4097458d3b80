/* SPDX-License-Identifier: MIT
 *
 * The line of one entry of a tree: for -v, --dry-run and --log-file.
 */
#ifndef SHOW_ENTRY_LINE_H
#define SHOW_ENTRY_LINE_H

#include "cli/cli.h"

/* Does -v list this entry? Writes its line without the end: `SRC -> DST`, or what
 * else was done. */
bool entry_is_listed(const struct cli *, const struct fcopy_entry *);
void entry_list(const struct cli *, const struct fcopy_entry *, FILE *);

#endif
