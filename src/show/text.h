/* SPDX-License-Identifier: MIT
 *
 * Builds a line of text without stdio and malloc, so that a signal handler may use it. What does
 * not fit is left out. Also UTF-8, and what a terminal can show.
 */
#ifndef SHOW_TEXT_H
#define SHOW_TEXT_H

#include "io/amount.h"
#include "patient.h"

#include <limits.h>
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

/* The same as an argument of printf(3): amount(bytes).text */
struct amount {
	char text[AMOUNT_MAX];
};

static inline struct amount amount(uint64_t bytes)
{
	struct amount a = {""};
	amount_write(a.text, bytes);
	return a;
}

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
/* Writes DST/NAME, where NAME is the last component of SRC, and returns NAME in it, which may be
 * empty; NULL: that is too long. */
const char *text_copy_path(const char *src, const char *dst, char path[PATH_MAX]);

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

/* line.c: the progress line and the last line of a copy, laid out for a width. */

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
