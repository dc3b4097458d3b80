/* SPDX-License-Identifier: MIT
 * Failures, warnings and usage errors in words.
 */
#include "cli.h"
#include "hint.h"
#include "part/name.h"
#include "text.h"
#include "utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char usage_text[FCOPY_ERROR_TEXT_MAX]; /* of the last usage error, for --json */

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

void message_reason(const struct fcopy_error *e)
{
	char text[FCOPY_ERROR_TEXT_MAX];
	fcopy_error_text(e, text, sizeof(text));
	message_print(text);
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

void message_part(const char *dst)
{
	char real[PATH_MAX], part[PATH_MAX];
	part_make_path(part, follow_symlink(dst, real));
	message_print(part);
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

/* If the disk is full, prints the space that the copy needed and the space that was free before its
 * first byte. */
static void print_space(const struct fcopy_report *r)
{
	struct text needed = {0}, spare = {0};
	if ((r->error.err != ENOSPC && r->error.err != EDQUOT) || r->space_needed == 0)
		return;
	text_size_brief(&needed, r->space_needed);
	text_size_brief(&spare, r->space_free);
	fprintf(stderr, " (the copy needs %s, %s was free)", needed.at, spare.at);
}

void message_text(const struct fcopy_error *e)
{
	fputs("fcopy: ", stderr);
	message_reason(e);
	fputc('\n', stderr);
}

void message_error(const struct fcopy_error *e)
{
	message_text(e);
	hint_print(e);
}

void message_failure(const struct fcopy_report *r)
{
	fputs("fcopy: ", stderr);
	message_reason(&r->error);
	print_space(r);
	fputc('\n', stderr);
	hint_print(&r->error);
}

void message_warning(const struct fcopy_report *r, const struct fcopy_error *e)
{
	fputs("fcopy: warning: ", stderr);
	if (e->err == ENOSPC && !e->call) {
		struct text needed = {0}, spare = {0};
		text_size_brief(&needed, r->space_needed);
		text_size_brief(&spare, r->space_free);
		message_print(e->path);
		fprintf(stderr, " needs %s, but only %s are free%s", needed.at, spare.at,
			r->existed && r->atomic
			    ? " (the old file is kept until the copy is complete)"
			    : "");
	} else {
		message_reason(e);
	}
	fputc('\n', stderr);
	hint_print(e);
}

const char *message_last_usage(void)
{
	return usage_text;
}

static int print_usage_error(const char *dashes, const char *what, const char *reason, va_list args)
{
	int n = what ? snprintf(usage_text, sizeof(usage_text), "%s%s: ", dashes, what) : 0;
	if (n >= 0 && (size_t)n < sizeof(usage_text))
		vsnprintf(usage_text + n, sizeof(usage_text) - (size_t)n, reason, args);
	fputs("fcopy: ", stderr);
	message_print(usage_text);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

int message_usage(const char *what, const char *reason, ...)
{
	va_list args;
	va_start(args, reason);
	print_usage_error("", what, reason, args);
	va_end(args);
	return EXIT_USAGE;
}

int message_option(const char *name, const char *reason, ...)
{
	va_list args;
	va_start(args, reason);
	print_usage_error("--", name, reason, args);
	va_end(args);
	return EXIT_USAGE;
}
