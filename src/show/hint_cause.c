/* SPDX-License-Identifier: MIT
 * Hints that follow from the errno of a failure: which directory is missing or not writable, and
 * of what a full file system has run out.
 */
#include "hint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

void hint_new_file(const char *dst)
{
	FILE *f = hint_begin();
	message_quoted(dst);
	fputs(" is a new file here; for a connection, write tcp:", f);
	message_quoted(dst);
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
