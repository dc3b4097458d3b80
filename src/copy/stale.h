/* SPDX-License-Identifier: MIT
 *
 * Warns about what killed copies left.
 */
#ifndef COPY_STALE_H
#define COPY_STALE_H

#include "copy.h"

/* Warns about temporaries of this user in `dir` that a killed copy left more than a day
 * ago. Reads a limited number of names. report: for the events, or NULL. */
void stale_warn(int dir, const struct fcopy_options *, const struct fcopy_report *);
/* The same of one name in it. */
void stale_warn_name(int dir, const char *name, const struct fcopy_options *);

#endif
