/* SPDX-License-Identifier: MIT
 *
 * Without --fsync a copy ends before its device has all data. On a terminal, or with -v or
 * --progress, a line says so if the device is removable, or needs more than two seconds for what it
 * has not written yet.
 */
#ifndef SHOW_UNWRITTEN_H
#define SHOW_UNWRITTEN_H

#include "cli/cli.h"

/* Before the copy: how much each device has written. DST is looked up only after the copy. */
void unwritten_begin(const struct cli *);
/* After a copy of so many bytes that succeeded. dst: its final name. */
void unwritten_print(const char *dst, uint64_t bytes);

#endif
