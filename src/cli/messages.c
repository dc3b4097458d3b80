/* SPDX-License-Identifier: MIT
 * Failures, warnings and usage errors in words.
 */
#include "cli.h"
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

void message_print(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		size_t length = utf8_length(c), n = length ? length : 1;
		bool escape = utf8_is_control(c, length);
		for (; n > 0; n--)
			fprintf(stderr, escape ? "\\%03o" : "%c", *c++);
	}
}

void message_reason(const struct fcopy_error *e)
{
	char text[FCOPY_ERROR_TEXT_MAX];
	fcopy_error_text(e, text, sizeof(text));
	message_print(text);
}

const char *message_hint(enum fcopy_advice advice)
{
	switch (advice) {
	case FCOPY_ADVICE_AUTO: return "use auto, or no MODE, to let fcopy choose";
	case FCOPY_ADVICE_IN_PLACE: return "use --inplace to overwrite it";
	case FCOPY_ADVICE_NO_FSYNC:
		return "leave out --fsync and --verify, which this storage does not support";
	case FCOPY_ADVICE_IN_PLACE_AUTO: return "use --inplace=auto to overwrite it";
	case FCOPY_ADVICE_IN_PLACE_OR_FORCE:
		return "use --inplace to overwrite it, or -f to replace it anyway";
	case FCOPY_ADVICE_RECURSIVE: return "use -r to copy directories";
	case FCOPY_ADVICE_DESCRIPTORS:
		return "raise the hard limit of open files (ulimit -Hn): each level of "
		       "directories needs two descriptors";
	case FCOPY_ADVICE_FORCE: return "use -f to replace it anyway";
	case FCOPY_ADVICE_FLUSH:
		return "DST is complete, but may not survive a power cut: check the storage, then "
		       "run sync";
	case FCOPY_ADVICE_CACHE: return "leave out --no-cache";
	case FCOPY_ADVICE_REFLINK:
		return "use --reflink=auto to copy the bytes where a clone is impossible";
	case FCOPY_ADVICE_FLAGS: return "remove the flag with chattr -i or chattr -a";
	case FCOPY_ADVICE_REMOVE_LINK: return "remove the symlink, or create its target";
	default: return NULL;
	}
}

/* The file itself, if dst is a symlink: a part is next to it. */
static const char *follow_symlink(const char *dst, char real[PATH_MAX])
{
	char link[2];
	return readlink(dst, link, sizeof(link)) > 0 && realpath(dst, real) ? real : dst;
}

static void print_beside(const char *dst, const char *suffix)
{
	char real[PATH_MAX];
	message_print(follow_symlink(dst, real));
	fputs(suffix, stderr);
}

bool message_part_exists(const char *dst)
{
	char real[PATH_MAX], part[PATH_MAX];
	struct stat st;
	int n = snprintf(part, sizeof(part), "%s.fcopy-part", follow_symlink(dst, real));
	return n < (int)sizeof(part) && lstat(part, &st) == 0;
}

void message_part(const char *dst)
{
	print_beside(dst, ".fcopy-part");
}

void message_shards(const char *purpose, const char *dst)
{
	fprintf(stderr, "fcopy: hint: %s, remove ", purpose);
	message_part(dst);
	fputs(" and ", stderr);
	print_beside(dst, ".fcopy-shards");
	fputs(" while no shard runs\n", stderr);
}

void message_quoted(const char *path)
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
		fputs(path, stderr);
		return;
	}
	fputs(escapes ? "$'" : "'", stderr);
	for (const char *c = path; *c; c++) {
		unsigned char byte = (unsigned char)*c;
		if (escapes && (byte < ' ' || byte > '~' || byte == '\'' || byte == '\\'))
			fprintf(stderr, "\\%03o", byte);
		else
			fputs(byte == '\'' ? "'\\''" : (char[]){*c, '\0'}, stderr);
	}
	fputc('\'', stderr);
}

void message_hint_path(const struct fcopy_error *e)
{
	bool resume = e->advice == FCOPY_ADVICE_RESUME;
	switch (e->advice) {
	case FCOPY_ADVICE_REMOVE_PART:
	case FCOPY_ADVICE_RESUME:
		fprintf(stderr, "fcopy: hint: %sremove or rename ",
			resume ? "use --resume to continue that copy, or " : "");
		message_part(e->path);
		fputc('\n', stderr);
		break;
	case FCOPY_ADVICE_REMOVE_FILE:
	case FCOPY_ADVICE_REMOVE_TREE:
		fprintf(stderr,
			"fcopy: hint: if no other machine is writing to it, remove it: rm %s",
			e->advice == FCOPY_ADVICE_REMOVE_TREE ? "-r " : "");
		message_quoted(e->path);
		fputc('\n', stderr);
		break;
	case FCOPY_ADVICE_SHARDS: message_shards("to start over", e->path); break;
	default: break;
	}
}

static void print_hint(const struct fcopy_error *e)
{
	const char *text = message_hint(e->advice);
	if (text)
		fprintf(stderr, "fcopy: hint: %s\n", text);
	else
		message_hint_path(e);
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
	print_hint(e);
}

void message_failure(const struct fcopy_report *r)
{
	fputs("fcopy: ", stderr);
	message_reason(&r->error);
	print_space(r);
	fputc('\n', stderr);
	print_hint(&r->error);
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
	print_hint(e);
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
