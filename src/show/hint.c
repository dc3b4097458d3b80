/* SPDX-License-Identifier: MIT
 * Where text for the user goes, stderr or a hint that has begun; the names and words in it; and the
 * hints that follow from an errno.
 */
#define _GNU_SOURCE
#include "hint.h"
#include "part/part.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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

bool message_part_path(const char *dst, char part[PATH_MAX])
{
	char real[PATH_MAX];
	return part_make_path(part, follow_symlink(dst, real));
}

bool message_part_exists(const char *dst)
{
	char part[PATH_MAX];
	struct stat st;
	return message_part_path(dst, part) && lstat(part, &st) == 0;
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
	/* Another user may have put a FIFO or a symlink there. */
	const int fd = open(data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	FILE *journal = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r")
									      : NULL;
	bool shards = false;
	for (int i = 0; journal && i < HEADER_LINES && fgets(data, sizeof(data), journal); i++)
		shards |= strlen(data) > 9 && strncmp(data + 9, "shards ", 7) == 0;
	if (journal)
		fclose(journal);
	else if (fd >= 0)
		close(fd);
	return !shards;
}

void message_part(const char *dst)
{
	char part[PATH_MAX];
	message_part_path(dst, part);
	message_print(part);
}

void message_part_quoted(const char *dst)
{
	char part[PATH_MAX];
	message_part_path(dst, part);
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

/* Hints that follow from the errno of a failure: which directory is missing or not writable, and
 * of what a full file system has run out. */

void hint_directory(const char *path, char directory[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) + (slash == path) : 1;
	snprintf(directory, PATH_MAX, "%.*s", n, slash ? path : ".");
}

#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

bool hint_is_address(const char *path)
{
	const char *colon = strchr(path, ':');
	char *end;
	if (!colon || colon == path ||
	    fcopy_operand_kind(path, STDIN_FILENO, NULL) != FCOPY_KIND_PATH ||
	    path[strspn(path, HOST_CHARACTERS)] != ':' ||
	    path + strspn(path, "0123456789") == colon || colon[1] < '1' || colon[1] > '9')
		return false;
	return strtoul(colon + 1, &end, 10) <= 65535 && *end == '\0';
}

const char *hint_url(const char *path)
{
	static const char start[] = "http:";
	const char *address = path + sizeof(start) - 1;
	return strncmp(path, start, sizeof(start) - 1) == 0 && hint_is_address(address) ? address
											: NULL;
}

/* As rsync(1) takes it, HOST:/PATH; there is no directory "HOST:". */
static bool hint_is_remote(const char *path)
{
	struct stat st;
	char first[PATH_MAX];
	const size_t n = strspn(path, HOST_CHARACTERS);
	if (n == 0 || strncmp(path + n, ":/", 2) != 0)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)n + 1, path);
	return lstat(first, &st) < 0;
}

void hint_new_file(const char *src, const char *dst)
{
	const char *url = hint_url(dst);
	FILE *f = hint_begin();
	message_quoted(dst);
	fputs(" is a new file here; ", f);
	if (url) {
		fprintf(f, "to send to a URL, use curl%c-fT%c", HINT_SPACE, HINT_SPACE);
		message_quoted(src);
		fprintf(f, "%chttp://%s/", HINT_SPACE, url);
	} else {
		fputs("for a connection, write tcp:", f);
		message_quoted(dst);
	}
	hint_end();
}

/* The path is tcp:HOST:PORT, of either operand. Without an address it listens to this machine. */
static void hint_refused(const char *path)
{
	const char *port = strrchr(path, ':');
	const bool here = strstr(path, ":localhost:") || strstr(path, ":127.") ||
			  strstr(path, ":[::1]:");
	hint_printf("nothing listens at this port: start the other side first, with "
		    "tcp-listen:%s%s",
		    here                ? ""
		    : strchr(path, '[') ? "[::]"
					: "0.0.0.0",
		    here ? port + 1 : port);
}

/* Names the first directory of the path that does not exist. */
static void hint_missing(const char *directory)
{
	struct stat st;
	char first[PATH_MAX];
	for (const char *end = directory; *end;) {
		end += strspn(end, "/");
		end += strcspn(end, "/");
		snprintf(first, sizeof(first), "%.*s", (int)(end - directory), directory);
		if (lstat(first, &st) == 0)
			continue;
		FILE *f = hint_begin();
		message_quoted(first);
		fprintf(f, " does not exist; create it: mkdir%c-p%c", HINT_SPACE, HINT_SPACE);
		message_quoted(directory);
		hint_end();
		return;
	}
}

#define NO_DIRECTORY "no such directory"
#define PLENTY       ((unsigned long long)64 << 20) /* bytes: more than one file or directory needs */

/* Does the call make a name? Another one needs bytes, which may have been freed since. */
static bool hint_makes_name(const char *call)
{
	static const char *const calls[] = {"open", "mkdir", "link", "symlink", "rename", "mknod"};
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strncmp(call, calls[i], strlen(calls[i])) == 0)
			return true;
	return false;
}

static void hint_full(const char *path)
{
	struct stat st;
	struct statvfs fs;
	char directory[PATH_MAX];
	if (fcopy_operand_kind(path, STDIN_FILENO, NULL) != FCOPY_KIND_PATH ||
	    (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return; /* a stream or device: not the file system of its name is full */
	hint_directory(path, directory);
	if (statvfs(path, &fs) < 0 && statvfs(directory, &fs) < 0)
		return;
	if (fs.f_files > 0 && fs.f_favail == 0)
		hint_printf("no inodes are left, although there may be space: see "
			    "df%c-i; remove files, or create a file system with more inodes",
			    HINT_SPACE);
	else if ((unsigned long long)fs.f_bavail * fs.f_frsize > PLENTY)
		hint_printf(
		    "the file system has space and inodes: a directory may have reached its "
		    "largest size, or a project its quota");
}

/* A new file was refused: the call names the file, but its directory is why. */
static bool hint_unwritable(const char *path)
{
	struct stat st;
	char directory[PATH_MAX];
	hint_directory(path, directory);
	if (lstat(path, &st) == 0 || errno != ENOENT || access(directory, W_OK) == 0)
		return false;
	FILE *f = hint_begin();
	fputs("you may not write to the directory ", f);
	message_quoted(directory);
	hint_end();
	return true;
}

bool hint_cause(const struct fcopy_error *e)
{
	char directory[PATH_MAX];
	if (!e->path || strlen(e->path) >= PATH_MAX)
		return false;
	if (e->err == ENOENT && hint_is_remote(e->path)) {
		hint_printf("fcopy copies local files: for another host, use rsync or ssh, or "
			    "tcp:HOST:PORT");
	} else if (e->err == ENOENT && e->operation &&
		   strcmp(e->operation, "open of its directory") == 0) {
		hint_directory(e->path, directory);
		hint_missing(directory);
	} else if (e->err == ENOENT && e->reason &&
		   strncmp(e->reason, NO_DIRECTORY, strlen(NO_DIRECTORY)) == 0) {
		hint_missing(e->path);
	} else if (e->err == ENOENT && e->call && hint_url(e->path)) {
		hint_printf("to fetch a URL, use curl%c-OC%c-%chttp://%s/", HINT_SPACE, HINT_SPACE,
			    HINT_SPACE, hint_url(e->path));
	} else if (e->err == ENOENT && e->call && hint_is_address(e->path)) {
		hint_printf("for a connection, write tcp:%s", e->path);
	} else if (e->err == ECONNREFUSED && strchr(e->path, ':')) {
		hint_refused(e->path);
	} else if (e->err == ENOSPC && e->call && hint_makes_name(e->call)) {
		hint_full(e->path);
	} else if (e->err == EACCES && e->call && strcmp(e->call, "open") == 0) {
		return hint_unwritable(e->path);
	} else if (e->err == EDQUOT) {
		hint_printf("your quota of blocks or inodes is used up: see quota%c-s", HINT_SPACE);
	} else {
		return false;
	}
	return true;
}

bool hint_is_attribute(const struct fcopy_error *e)
{
	static const char *const calls[] = {"setxattr", "chmod", "chown", "utimens"};
	static const int errors[] = {EPERM, EACCES, EOPNOTSUPP, ENOSYS, EINVAL, E2BIG, ERANGE};
	bool sets = false, refused = false;
	for (size_t i = 0; e->call && i < sizeof(calls) / sizeof(*calls); i++)
		sets |= strstr(e->call, calls[i]) != NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		refused |= e->err == errors[i];
	/* Of extended attributes, a lack of space means that one is too large, or too many are. */
	if (e->err == ENOSPC || e->err == EDQUOT)
		refused = e->call && strstr(e->call, "setxattr");
	return sets && refused;
}

bool hint_repeats(const struct fcopy_error *e)
{
	return (e->err == EFBIG && e->call) || hint_is_attribute(e);
}
