/* SPDX-License-Identifier: MIT
 * Prints text for the user, and makes the names in it harmless.
 */
#include "part/part.h"
#include "show.h"
#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The names in the text that this thread prints next. */
static _Thread_local struct name {
	struct name *next;
	char *text;
	size_t size;
} * names;

static const char *keep_name(const char *text, void (*write)(FILE *, const char *, char))
{
	struct name *n = calloc(1, sizeof(*n));
	FILE *f = n ? open_memstream(&n->text, &n->size) : NULL;
	if (f)
		write(f, text, GLUE[0]);
	if (!f || fclose(f) != 0) {
		if (n)
			free(n->text);
		free(n);
		return "?"; /* no memory */
	}
	n->next = names;
	names = n;
	return n->text;
}

static void release_names(void)
{
	while (names) {
		struct name *n = names;
		names = n->next;
		free(n->text);
		free(n);
	}
}

static void say_escaped(FILE *f, const char *text, char space)
{
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		size_t length = utf8_length(c), n = length ? length : 1;
		bool escape = utf8_is_control(c, length);
		if (*c == ' ') {
			fputc(space, f);
			c++;
			continue;
		}
		for (; n > 0; n--)
			fprintf(f, escape ? "\\%03o" : "%c", *c++);
	}
}

static void say_quoted(FILE *f, const char *path, char space)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-+,:=@%";
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
			fputc(byte == ' ' ? space : byte, f);
	}
	fputc('\'', f);
}

const char *escaped(const char *text)
{
	return keep_name(text, say_escaped);
}

const char *quoted(const char *path)
{
	return keep_name(path, say_quoted);
}

const char *error_words(const struct fcopy_error *e)
{
	char text[FCOPY_ERROR_TEXT_MAX];
	fcopy_error_text(e, text, sizeof(text));
	return escaped(text);
}

void print_escaped(FILE *f, const char *text)
{
	say_escaped(f, text, ' ');
}

/* A program that reads stderr gets whole lines. */
static size_t line_columns(void)
{
	if (!isatty(STDERR_FILENO))
		return SIZE_MAX;
	size_t width = terminal_width(STDERR_FILENO) - 1;
	return width < TEXT_COLUMNS ? width : TEXT_COLUMNS;
}

/* columns: of a line; 0: it is not broken. */
static void say_wrapped(FILE *f, const char *start, size_t columns, const char *format,
			va_list args)
{
	char *text;
	if (vasprintf(&text, format, args) >= 0) {
		fputs(start, f);
		if (columns > 0)
			text_wrap(f, text, columns, strlen(start), GLUE[0]);
		for (char *c = text; columns == 0 && *c; c++)
			*c = *c == GLUE[0] ? ' ' : *c;
		if (columns == 0)
			fputs(text, f);
		free(text);
	}
	release_names();
}

void say_line(const char *start, bool breaks, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say_wrapped(stderr, start, breaks ? line_columns() : 0, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void print_on(FILE *f, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say_wrapped(f, "", 0, format, args);
	va_end(args);
}

/* DST.fcopy-part is next to the file itself. */
bool part_path(const char *dst, char part[PATH_MAX])
{
	char real[PATH_MAX], link[2];
	const bool symlink = readlink(dst, link, sizeof(link)) > 0 && realpath(dst, real);
	return part_make_path(part, symlink ? real : dst);
}

const char *part_escaped(const char *dst)
{
	char part[PATH_MAX];
	return part_path(dst, part) ? escaped(part) : "?";
}

const char *part_quoted(const char *dst)
{
	char part[PATH_MAX];
	return part_path(dst, part) ? quoted(part) : "?";
}
