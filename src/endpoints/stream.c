/* SPDX-License-Identifier: MIT
 * Operands that are not paths: open descriptors, and TCP addresses.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "error.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTOR "fd:"

static bool is_descriptor(const char *path)
{
	return strncmp(path, DESCRIPTOR, strlen(DESCRIPTOR)) == 0;
}

/* A descriptor's number in decimal digits without leading zeros; -1: it is none. */
static int number(const char *digits)
{
	char *end;
	bool starts = digits[0] >= '0' && digits[0] <= '9' && (digits[0] != '0' || !digits[1]);
	long n = starts ? strtol(digits, &end, 10) : -1;
	return n >= 0 && *end == '\0' && n <= INT_MAX ? (int)n : -1;
}

/* The descriptor that a path such as -, /dev/stdin or fd:3 names, or -1. */
static int stream_number(const char *path, int dash)
{
	static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	static const char *const prefixes[] = {DESCRIPTOR, "/dev/fd/", "/proc/self/fd/"};
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

/* A connection is half-closed at the commit. fd:N asks for that with any socket. Under another
 * name, such as -, a socket may be shared with later programs, as one from sshd(8) is; but a TCP
 * socket carries one stream, which a program started by inetd(8) must end in order. */
static bool is_connection(const char *path, int fd, mode_t type)
{
	if (!S_ISSOCK(type))
		return false;
	return is_descriptor(path) || socket_get_option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

bool stream_names(const char *path)
{
	return tcp_names(path) || is_descriptor(path) || stream_number(path, STDIN_FILENO) >= 0;
}

enum fcopy_kind fcopy_operand_kind(const char *operand, int dash, int *descriptor)
{
	struct stat st;
	int fd = stream_number(operand, dash);
	if (descriptor)
		*descriptor = fd;
	if (tcp_names(operand))
		return tcp_kind(operand);
	if (!stream_names(operand))
		return FCOPY_KIND_PATH;
	return fstat(fd, &st) == 0 && is_connection(operand, fd, st.st_mode)
		   ? FCOPY_KIND_SOCKET
		   : FCOPY_KIND_DESCRIPTOR;
}

mode_t stream_type(const char *path, int dash)
{
	struct stat st;
	int fd = stream_number(path, dash);
	if (tcp_names(path))
		return S_IFSOCK;
	return (fd >= 0 ? fstat(fd, &st) : stat(path, &st)) == 0 ? st.st_mode & S_IFMT : S_IFREG;
}

int stream_open(struct endpoint *e, const char *path, int dash, struct fcopy_error *error)
{
	if (tcp_names(path))
		return tcp_open(e, path, error);
	*e = (struct endpoint){
	    .ops = &in_place_ops, .path = path, .place = {.dir = -1, .target = -1}};
	int fd = stream_number(path, dash);
	if (fd < 0)
		return error_refuse(error, path, EINVAL,
				    "has no descriptor number after fd: (use ./fd:... for a file)",
				    FCOPY_ADVICE_USAGE);
	e->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (e->fd < 0)
		return error_call(error, "fcntl(F_DUPFD)", path, errno);
	if (fstat(e->fd, &e->st) < 0)
		error_call(error, "fstat", path, errno);
	else if (!is_connection(path, fd, e->st.st_mode) || socket_adopt(e, error) == 0)
		return 0;
	e->ops->abort(e);
	return -error->err;
}
