/* SPDX-License-Identifier: MIT
 *
 * Builds a line of text without stdio and malloc, so that a signal handler may use it. What does
 * not fit is left out. Also UTF-8, and what a terminal can show.
 */
#ifndef SHOW_TEXT_H
#define SHOW_TEXT_H

#include "patient.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	size_t length;
	char at[1024]; /* ends with a null byte */
};

void text_clear(struct text *);
void text_add(struct text *, const char *);
void text_number(struct text *, uint64_t);
void text_spaces(struct text *, size_t n);

/* At most three digits and the unit that fits: "512 B", "9.5 MiB", "512 MiB". */
void text_size(struct text *, uint64_t bytes);
/* "237/512 MiB": `bytes` in the unit of `total`, aligned as `total` is. */
void text_share(struct text *, uint64_t bytes, uint64_t total);
/* "179 of 512 MiB", "99 MiB of 1.0 GiB" */
void text_share_words(struct text *, uint64_t bytes, uint64_t total);
/* Three digits and the unit that fits: "87 us", "128 ms", "12.8 s". */
void text_duration(struct text *, uint64_t microseconds);
/* At most three digits: "87 us", "9.8 ms", "12 s". */
void text_duration_brief(struct text *, uint64_t microseconds);
/* Only the digits, in the unit and with the decimals that `scale` would have. */
void text_duration_in_unit(struct text *, uint64_t microseconds, uint64_t scale);
/* "0:07", "12:00:05" */
void text_clock(struct text *, uint64_t seconds);
/* Right-aligns the text from `start` to the end in `width` columns. */
void text_align(struct text *, size_t start, size_t width);

/* The last component of a path; the whole path if it ends with a slash. */
const char *text_file_name(const char *path);

/* The columns that a name takes on a terminal; utf8: the terminal shows UTF-8. Control characters,
 * which must not reach the terminal, are shown as a ?. */
size_t text_columns(const char *name, bool utf8);
/* Adds the name, shortened in the middle if it takes more than `columns`. */
void text_fit(struct text *, const char *name, size_t columns, bool utf8);

#define TEXT_COLUMNS 79 /* of a line, where the width of a terminal does not say less */
/* Prints words, which end with a space, in lines of at most `columns`. The first line is already
 * `indent` columns long, and the others begin with as many spaces. A byte `glue` is printed as a
 * space, but does not end a word. Changes the words. */
void text_wrap(FILE *, char *words, size_t columns, size_t indent, char glue);

/* Writes the text to fd. A failure is ignored: it could not be reported anywhere. */
void text_write(const struct text *, int fd);

/* UTF-8, and the characters that control a terminal. */

/* The length in bytes of the UTF-8 character at s, or 0 if s is not valid (RFC 3629: no surrogates,
 * no overlong forms, nothing above U+10FFFF). */
size_t utf8_length(const unsigned char *s);

/* The code point of the character of n bytes, 1 to 4, at s. */
uint32_t utf8_code(const unsigned char *s, size_t n);

/* Does the character of n bytes at s move the cursor, or change the order or visibility of its
 * neighbours? n 0: the byte at s is not valid UTF-8; a terminal may take it as Latin-1. */
bool utf8_is_control(const unsigned char *s, size_t n);

/* What a terminal can show. */

size_t terminal_width(int fd);    /* columns */
bool terminal_moves_cursor(void); /* false: TERM=dumb, which gets plain lines */
bool terminal_colour(int fd);
bool terminal_utf8(void);
bool terminal_foreground(int fd); /* false: this process is a background job there */

#endif
