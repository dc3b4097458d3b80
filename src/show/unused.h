/* SPDX-License-Identifier: MIT
 *
 * On a terminal, or with -v or --progress, a line says that an unfinished copy of the same DST
 * exists, which this copy does not continue because --resume is missing.
 */
#ifndef SHOW_UNUSED_H
#define SHOW_UNUSED_H

#include "cli/cli.h"

/* Before the copy, so that the user can still stop it. */
void unused_print(const struct cli *);

#endif
