/* SPDX-License-Identifier: MIT
 * SRC and DST that are no names in the file system: open descriptors, and TCP addresses.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "io/error.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A descriptor's number in decimal digits; -1: it is none. */
static int number(const char *digits)
{
	char *end;
	long n = digits[0] >= '0' && digits[0] <= '9' ? strtol(digits, &end, 10) : -1;
	return n >= 0 && *end == '\0' && n <= INT_MAX ? (int)n : -1;
}

/* The descriptor that a path such as -, /dev/stdin or fd:3 names, or -1. */
static int stream_number(const char *path, int dash)
{
	static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	static const char *const prefixes[] = {"fd:", "/dev/fd/", "/proc/self/fd/"};
	if (path[0] == '-' && path[1] == '\0')
		return dash;
	for (int i = 0; i < 3; i++)
		if (strcmp(path, names[i]) == 0)
			return i;
	for (int i = 0; i < 3; i++) {
		size_t n = strlen(prefixes[i]);
		if (strncmp(path, prefixes[i], n) == 0)
			return number(path + n);
	}
	return -1;
}

static bool is_number(const char *path)
{
	return strncmp(path, "fd:", 3) == 0 && stream_number(path, -1) >= 0;
}

bool stream_names(const char *path)
{
	return tcp_names(path) || stream_number(path, STDIN_FILENO) >= 0;
}

int stream_open(struct endpoint *e, const char *path, int dash, struct fcopy_error *error)
{
	if (tcp_names(path))
		return tcp_open(e, path, error);
	*e = (struct endpoint){
	    .ops = &in_place_ops, .path = path, .place = {.dir = -1, .target = -1}};
	e->fd = fcntl(stream_number(path, dash), F_DUPFD_CLOEXEC, 0);
	if (e->fd < 0)
		return error_call(error, "fcntl(F_DUPFD)", path, errno);
	/* The socket behind - may have other users, and our end is not theirs. */
	bool connection = is_number(path);
	if (fstat(e->fd, &e->st) < 0)
		error_call(error, "fstat", path, errno);
	else if (!connection || !S_ISSOCK(e->st.st_mode) || socket_adopt(e, error) == 0)
		return 0;
	e->ops->abort(e);
	return -error->err;
}

bool fcopy_is_socket(const char *operand)
{
	struct stat st;
	return tcp_names(operand) ||
	       (is_number(operand) && fstat(stream_number(operand, -1), &st) == 0 &&
		S_ISSOCK(st.st_mode));
}
