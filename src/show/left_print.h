/* SPDX-License-Identifier: MIT
 *
 * What killed copies left: an entry of the list of --clean.
 */
#ifndef SHOW_LEFT_PRINT_H
#define SHOW_LEFT_PRINT_H

#include "json.h"

#include "fcopy.h"

struct text;

/* "unfinished copy, 2.9 KiB, 2 days old" */
void left_describe(struct text *, const struct fcopy_left *);
/* "earlier 'NAME', ": what is in it; nothing if that is not known, or nobody's */
void left_print_old(const struct fcopy_left *, FILE *);
void left_print(const struct fcopy_left *); /* a line on standard output */
void left_json(struct json *, const struct fcopy_left *);

#endif
