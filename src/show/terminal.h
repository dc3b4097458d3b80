/* SPDX-License-Identifier: MIT
 *
 * What a terminal can show.
 */
#ifndef SHOW_TERMINAL_H
#define SHOW_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

size_t terminal_width(int fd);    /* columns */
bool terminal_moves_cursor(void); /* false: TERM=dumb, which gets plain lines */
bool terminal_colour(int fd);
bool terminal_utf8(void);
bool terminal_foreground(int fd); /* false: this process is a background job there */

#endif
