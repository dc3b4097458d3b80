/* SPDX-License-Identifier: MIT
 *
 * Warnings of one kind that come by the thousand.
 */
#ifndef SHOW_FLOOD_H
#define SHOW_FLOOD_H

#include "cli/cli.h"

/* Counts a warning. Returns whether it is one of the first five of its call and errno;
 * with -v and for a server always true. */
bool flood_passes(const struct cli *, const struct fcopy_error *);
void flood_print(void); /* how many there were of each */

#endif
