/* SPDX-License-Identifier: MIT
 *
 * The progress line and the last line of a copy, laid out for a width. Everything here may run in a
 * signal handler: it uses neither stdio nor locks nor memory from malloc.
 */
#ifndef SHOW_LINE_H
#define SHOW_LINE_H

#include "text.h"

#include <stdbool.h>

#define LINE_PLAIN SIZE_MAX /* a width: every field, without a bar */

struct line {
	const char *name;       /* of the file; it is shortened in the middle if need be */
	const char *state;      /* of a phase other than copying, or of the end; NULL: none */
	uint64_t bytes, total;  /* the position, and where it will end; total 0: unknown */
	uint64_t speed;         /* bytes a second; 0: unknown */
	uint64_t left;          /* seconds; LINE_UNKNOWN: unknown */
	uint64_t stalled;       /* seconds without a byte; 0: bytes are moving */
	uint64_t elapsed;       /* seconds since the phase began */
	uint64_t entries;       /* of a tree that are finished; 0: not shown */
	uint64_t total_entries; /* of a tree; 0: unknown */
	uint64_t entry_speed;   /* entries a second; 0: not shown */
	bool at_least;          /* total_entries may grow: no percentage of it */
	bool ended;             /* the last line: no percentage; speed is the average */
	bool colour, blocks;    /* the terminal shows colours, and UTF-8 */
};

#define LINE_UNKNOWN UINT64_MAX

/* Adds the line, at most `width` columns wide; the least important fields are left out. */
void line_lay_out(const struct line *, size_t width, struct text *);

/* The current speed of a copy and the time left, from samples of its counters. */

/* Bytes a second; 0 if no time has passed. */
uint64_t speed_rate(uint64_t bytes, uint64_t ms);

/* Takes a sample of line->bytes and of `moved`, and stores speed, left and stalled in *line. A new
 * since_ms, when the phase began, discards the samples of the last phase. Used by one thread. */
void speed_measure(struct line *line, uint64_t since_ms, uint64_t now_ms, uint64_t moved);

#endif
