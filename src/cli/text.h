/* SPDX-License-Identifier: MIT
 *
 * A line of text put together without stdio and without memory to free: a signal handler may do
 * it. What does not fit is dropped.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	size_t length;
	char at[1024]; /* always ended by a NUL */
};

void text_clear(struct text *);
void text_add(struct text *, const char *);
void text_number(struct text *, uint64_t);
void text_spaces(struct text *, size_t n);

/* Three digits and the unit that fits: "512 B", "9.54 MiB". */
void text_size(struct text *, uint64_t bytes);
/* The same of a time: "87 us", "128 ms", "12.8 s". */
void text_duration(struct text *, uint64_t microseconds);
/* "0:07", "12:00:05" */
void text_clock(struct text *, uint64_t seconds);
/* Moves what stands from `start` on to the right, until it is `width` wide. */
void text_align(struct text *, size_t start, size_t width);

/* Writes all of it to fd at once, as far as fd takes it: there is nobody to tell otherwise. */
void text_write(const struct text *, int fd);

#endif
