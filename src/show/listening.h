/* SPDX-License-Identifier: MIT
 *
 * What is printed when a socket listens.
 */
#ifndef SHOW_LISTENING_H
#define SHOW_LISTENING_H

#include "cli/cli.h"

/* FCOPY_EVENT_LISTENING. With port 0 the port is printed even with --quiet: the kernel chose it. */
void listening_print(const struct cli *, const struct fcopy_event *);

#endif
