/* SPDX-License-Identifier: MIT
 * Where text for the user goes, stderr or a hint that has begun; and the names and words in it.
 */
#define _GNU_SOURCE
#include "hint.h"
#include "part/part.h"
#include "terminal.h"
#include "text.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Thread_local struct {
	FILE *f; /* NULL: none has begun */
	const char *start;
	char *text;
	size_t size;
} hint;

#define HINT "fcopy: hint: "
#define NOTE "fcopy: "

FILE *hint_stream(void)
{
	return hint.f ? hint.f : stderr;
}

static FILE *begin(const char *start)
{
	hint.start = start;
	hint.f = open_memstream(&hint.text, &hint.size);
	if (!hint.f)
		fputs(start, stderr); /* no memory: one line */
	return hint_stream();
}

FILE *hint_begin(void)
{
	return begin(HINT);
}

FILE *note_begin(void)
{
	return begin(NOTE);
}

/* A program that reads stderr gets whole lines. */
static size_t line_columns(void)
{
	if (!isatty(STDERR_FILENO))
		return SIZE_MAX;
	size_t width = terminal_width(STDERR_FILENO) - 1;
	return width < TEXT_COLUMNS ? width : TEXT_COLUMNS;
}

void hint_end(void)
{
	FILE *f = hint.f;
	hint.f = NULL;
	if (f && fclose(f) == 0) {
		fputs(hint.start, stderr);
		text_wrap(stderr, hint.text, line_columns(), strlen(hint.start), HINT_SPACE);
	}
	if (f)
		free(hint.text);
	fputc('\n', stderr);
}

void hint_printf(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vfprintf(hint_begin(), format, args);
	va_end(args);
	hint_end();
}

void note_printf(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vfprintf(note_begin(), format, args);
	va_end(args);
	hint_end();
}

void message_print_on(FILE *f, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		size_t length = utf8_length(c), n = length ? length : 1;
		bool escape = utf8_is_control(c, length);
		if (*c == ' ') { /* never the end of a line: a hint may be copied */
			fputc(f == hint_stream() && f != stderr ? HINT_SPACE : ' ', f);
			c++;
			continue;
		}
		for (; n > 0; n--)
			fprintf(f, escape ? "\\%03o" : "%c", *c++);
	}
}

void message_print(const char *text)
{
	message_print_on(hint_stream(), text);
}

/* The file itself, if dst is a symlink: a part is next to it. */
static const char *follow_symlink(const char *dst, char real[PATH_MAX])
{
	char link[2];
	return readlink(dst, link, sizeof(link)) > 0 && realpath(dst, real) ? real : dst;
}

void message_beside(const char *dst, const char *suffix)
{
	char real[PATH_MAX];
	message_print(follow_symlink(dst, real));
	fputs(suffix, hint_stream());
}

bool message_part_exists(const char *dst)
{
	char real[PATH_MAX], part[PATH_MAX];
	struct stat st;
	return part_make_path(part, follow_symlink(dst, real)) && lstat(part, &st) == 0;
}

#define HEADER_LINES 8 /* of a journal; each has 8 digits and a space before its kind */

bool message_part_is_unfinished(const char *dst)
{
	char real[PATH_MAX], part[PATH_MAX], data[PATH_MAX + sizeof("/" PART_JOURNAL)];
	struct stat st;
	if (!part_make_path(part, follow_symlink(dst, real)))
		return false;
	snprintf(data, sizeof(data), "%s/" PART_DATA, part);
	if (lstat(data, &st) < 0)
		return false;
	snprintf(data, sizeof(data), "%s/" PART_JOURNAL, part);
	FILE *journal = fopen(data, "re");
	bool shards = false;
	for (int i = 0; journal && i < HEADER_LINES && fgets(data, sizeof(data), journal); i++)
		shards |= strlen(data) > 9 && strncmp(data + 9, "shards ", 7) == 0;
	if (journal)
		fclose(journal);
	return !shards;
}

void message_part(const char *dst)
{
	char real[PATH_MAX], part[PATH_MAX];
	part_make_path(part, follow_symlink(dst, real));
	message_print(part);
}

void message_part_quoted(const char *dst)
{
	char real[PATH_MAX], part[PATH_MAX];
	part_make_path(part, follow_symlink(dst, real));
	message_quoted(part);
}

void message_quoted(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-+,:=@%";
	FILE *f = hint_stream();
	bool escapes = false;
	for (const unsigned char *c = (const unsigned char *)path; *c && !escapes;) {
		size_t length = utf8_length(c);
		escapes = length == 0 || utf8_is_control(c, length);
		c += length ? length : 1;
	}
	if (path[strspn(path, plain)] == '\0') {
		fputs(path, f);
		return;
	}
	fputs(escapes ? "$'" : "'", f);
	for (const char *c = path; *c; c++) {
		unsigned char byte = (unsigned char)*c;
		if (escapes && (byte < ' ' || byte > '~' || byte == '\'' || byte == '\\'))
			fprintf(f, "\\%03o", byte);
		else if (byte == '\'')
			fputs("'\\''", f);
		else
			fputc(byte == ' ' && f != stderr ? HINT_SPACE : byte, f);
	}
	fputc('\'', f);
}
