/* SPDX-License-Identifier: MIT
 * Text, sizes and times for a line that a signal handler may want; then UTF-8, lines of words, and
 * what a terminal can show.
 */
#include "text.h"
#include "patient.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void text_clear(struct text *t)
{
	t->length = 0;
	t->at[0] = '\0';
}

static void add_bytes(struct text *t, const char *from, size_t n)
{
	if (n > sizeof(t->at) - 1 - t->length)
		n = sizeof(t->at) - 1 - t->length;
	memcpy(t->at + t->length, from, n);
	t->length += n;
	t->at[t->length] = '\0';
}

void text_add(struct text *t, const char *s)
{
	add_bytes(t, s, strlen(s));
}

/* At least `digits` digits. */
static void add_number(struct text *t, uint64_t n, int digits)
{
	char digit[20];
	size_t at = sizeof(digit);
	do {
		digit[--at] = (char)('0' + n % 10);
		n /= 10;
		digits--;
	} while (n > 0 || digits > 0);
	add_bytes(t, digit + at, sizeof(digit) - at);
}

void text_number(struct text *t, uint64_t n)
{
	add_number(t, n, 1);
}

void text_spaces(struct text *t, size_t n)
{
	while (n-- > 0)
		add_bytes(t, " ", 1);
}

/* Three digits of whole + hundredths / 100. */
static void add_three(struct text *t, uint64_t whole, uint64_t hundredths)
{
	text_number(t, whole);
	if (whole >= 100)
		return;
	text_add(t, ".");
	add_number(t, whole < 10 ? hundredths : hundredths / 10, whole < 10 ? 2 : 1);
}

void text_size(struct text *t, uint64_t bytes)
{
	text_add(t, amount(bytes).text);
}

static void add_share(struct text *t, uint64_t bytes, const char *between, uint64_t total)
{
	char digits[AMOUNT_MAX];
	unsigned unit = amount_unit(total);
	bool decimal = amount_has_decimal(total, unit);
	/* Rounded down: 100 % is shown at the end only. */
	amount_write_digits(digits, bytes, unit, decimal, false);
	text_add(t, digits);
	text_add(t, between);
	text_size(t, total);
}

void text_share(struct text *t, uint64_t bytes, uint64_t total)
{
	size_t start = t->length, width;
	add_share(t, total, "/", total);
	width = t->length - start;
	t->length = start;
	t->at[start] = '\0';
	add_share(t, bytes, "/", total);
	text_align(t, start, width);
}

void text_share_words(struct text *t, uint64_t bytes, uint64_t total)
{
	const unsigned unit = amount_unit(total);
	/* "99 MiB of 1.0 GiB", not "0.0 of 1.0 GiB" */
	if (bytes > 0 && bytes >> (10 * unit) == 0) {
		text_size(t, bytes);
		text_add(t, " of ");
		text_size(t, total);
	} else {
		add_share(t, bytes, " of ", total);
	}
}

const char *text_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

const char *text_copy_path(const char *src, const char *dst, char path[PATH_MAX])
{
	const size_t length = strlen(dst);
	size_t end = strlen(src), start;
	while (end > 1 && src[end - 1] == '/')
		end--;
	for (start = end; start > 0 && src[start - 1] != '/';)
		start--;
	const int n = snprintf(path, PATH_MAX, "%s%s%.*s", dst,
			       length > 0 && dst[length - 1] == '/' ? "" : "/", (int)(end - start),
			       src + start);
	return n < PATH_MAX ? path + n - (end - start) : NULL;
}

/* A character of a name, as a terminal shows it. */
struct glyph {
	size_t bytes, columns;
	bool printable; /* otherwise a ? is shown */
};

static struct glyph glyph_at(const char *s, bool utf8)
{
	/* East Asian wide characters and symbols that may be as wide take two columns, combining
	 * marks none. */
	static const struct {
		uint32_t first, last;
		size_t columns;
	} ranges[] = {{0x300, 0x36f, 0},     {0x1100, 0x115f, 2}, {0x2300, 0x27bf, 2},
		      {0x2b00, 0x2bff, 2},   {0x2e80, 0xa4cf, 2}, {0xa960, 0xa97c, 2},
		      {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0},
		      {0xfe10, 0xfe6f, 2},   {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2},
		      {0x16fe0, 0x10ffff, 2}};
	const unsigned char *c = (const unsigned char *)s;
	size_t n = utf8_length(c);
	if (n == 0 || utf8_is_control(c, n) || (n > 1 && !utf8))
		return (struct glyph){n ? n : 1, 1, false};
	uint32_t code = utf8_code(c, n);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return (struct glyph){n, ranges[i].columns, true};
	return (struct glyph){n, 1, true};
}

size_t text_columns(const char *name, bool utf8)
{
	size_t columns = 0;
	while (*name) {
		struct glyph g = glyph_at(name, utf8);
		columns += g.columns;
		name += g.bytes;
	}
	return columns;
}

/* Adds as many characters as `columns` have room for. Returns the rest of the name. */
static const char *add_glyphs(struct text *t, const char *name, size_t columns, bool utf8)
{
	while (*name) {
		struct glyph g = glyph_at(name, utf8);
		if (g.columns > columns)
			break;
		add_bytes(t, g.printable ? name : "?", g.printable ? g.bytes : 1);
		columns -= g.columns;
		name += g.bytes;
	}
	return name;
}

void text_fit(struct text *t, const char *name, size_t columns, bool utf8)
{
	size_t left = text_columns(name, utf8);
	if (left <= columns) {
		add_glyphs(t, name, columns, utf8);
		return;
	}
	size_t mark = utf8 ? 1 : 2;
	size_t tail = columns > mark ? (columns - mark) / 2 : 0;
	name = add_glyphs(t, name, columns > mark ? columns - mark - tail : 0, utf8);
	text_add(t, utf8 ? "…" : "..");
	for (left = text_columns(name, utf8); left > tail; left = text_columns(name, utf8))
		name += glyph_at(name, utf8).bytes;
	add_glyphs(t, name, tail, utf8);
}

void text_duration(struct text *t, uint64_t us)
{
	if (us < 1000) {
		text_number(t, us);
		text_add(t, " us");
	} else if (us < 1000000) {
		add_three(t, us / 1000, us % 1000 / 10);
		text_add(t, " ms");
	} else {
		add_three(t, us / 1000000, us % 1000000 / 10000);
		text_add(t, " s");
	}
}

/* The unit in which the rounded duration has at most three digits, in microseconds. */
static uint64_t duration_unit(uint64_t us)
{
	return us < 1000 ? 1 : us < 999500 ? 1000 : 1000000;
}

void text_duration_in_unit(struct text *t, uint64_t us, uint64_t scale)
{
	uint64_t unit = duration_unit(scale);
	bool decimal = unit > 1 && scale < 10 * unit - unit / 20; /* 9.95 */
	uint64_t tenths = (us * 10 + unit / 2) / unit;
	text_number(t, decimal ? tenths / 10 : (us + unit / 2) / unit);
	if (decimal) {
		text_add(t, ".");
		text_number(t, tenths % 10);
	}
}

void text_duration_brief(struct text *t, uint64_t us)
{
	uint64_t unit = duration_unit(us);
	text_duration_in_unit(t, us, us);
	text_add(t, unit == 1 ? " us" : unit == 1000 ? " ms" : " s");
}

void text_clock(struct text *t, uint64_t seconds)
{
	if (seconds >= 3600) {
		text_number(t, seconds / 3600);
		text_add(t, ":");
	}
	add_number(t, seconds / 60 % 60, seconds >= 3600 ? 2 : 1);
	text_add(t, ":");
	add_number(t, seconds % 60, 2);
}

void text_align(struct text *t, size_t start, size_t width)
{
	size_t have = t->length - start;
	size_t more = width > have ? width - have : 0;
	if (more > sizeof(t->at) - 1 - t->length)
		return;
	memmove(t->at + start + more, t->at + start, have + 1);
	memset(t->at + start, ' ', more);
	t->length += more;
}

void text_write(const struct text *t, int fd)
{
	(void)patient_write(fd, t->at, t->length);
}

/* UTF-8, as far as file names in messages need it. */

size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char first, last, second_least, second_most;
		size_t length;
	} forms[] = {
	    {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (s[0] < forms[i].first || s[0] > forms[i].last)
			continue;
		size_t n = forms[i].length;
		if (n > 1 && (s[1] < forms[i].second_least || s[1] > forms[i].second_most))
			return 0;
		for (size_t k = 2; k < n; k++)
			if (s[k] < 0x80 || s[k] > 0xbf)
				return 0;
		return n;
	}
	return 0;
}

uint32_t utf8_code(const unsigned char *s, size_t n)
{
	uint32_t code = n < 2 ? s[0] : s[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++)
		code = code << 6 | (s[i] & 0x3f);
	return code;
}

bool utf8_is_control(const unsigned char *s, size_t n)
{
	/* C0, DEL and C1; soft hyphen, marks and overrides of the direction, of no width, line and
	 * paragraph separators, byte order mark, annotations, tags. */
	static const struct {
		uint32_t first, last;
	} ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
		      {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
		      {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	const uint32_t code = utf8_code(s, n);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return n > 0 || code < 0xa0;
	return false;
}

/* Breaks a text into lines between words. */

void text_wrap(FILE *f, char *words, size_t columns, size_t indent, char glue)
{
	size_t column = indent;
	for (char *next; words; words = next) {
		next = strchr(words, ' ');
		if (next)
			*next++ = '\0';
		for (char *c = words; *c; c++)
			*c = *c == glue ? ' ' : *c;
		size_t width = text_columns(words, true);
		if (column > indent && column + 1 + width > columns) {
			fprintf(f, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', f);
			column++;
		}
		fputs(words, f);
		column += width;
	}
}

/* What a terminal can show. */

size_t terminal_width(int fd)
{
	struct winsize size;
	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return 80;
	return size.ws_col;
}

bool terminal_moves_cursor(void)
{
	const char *term = getenv("TERM");
	return term && strcmp(term, "dumb") != 0;
}

bool terminal_colour(int fd)
{
	const char *no = getenv("NO_COLOR");
	return isatty(fd) && !(no && *no) && terminal_moves_cursor();
}

bool terminal_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (int i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

bool terminal_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);
	return group < 0 || group == getpgrp();
}
