/* SPDX-License-Identifier: MIT
 *
 * The progress line: what is known of a running copy, laid out for a width.
 */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include "text.h"

#include <stdbool.h>

#define LINE_PLAIN SIZE_MAX /* a width: everything, without a bar */

struct line {
	const char *phase;
	uint64_t bytes, total;     /* total 0: unknown */
	uint64_t current, average; /* bytes a second; 0: unknown */
	uint64_t milliseconds;     /* since the phase began */
	bool ended;                /* nothing is left to come */
	bool colour, blocks;       /* what the bar may be made of */
};

/* Adds the line, at most `width` columns wide; what matters least is left out first. Uses neither
 * stdio nor locks. */
void line_lay_out(const struct line *, size_t width, struct text *);

#endif
