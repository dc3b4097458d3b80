/* SPDX-License-Identifier: MIT
 * Opens SRC according to the type of the file that it names, and operands that are not paths.
 */
#include "replace.h"
#include "socket.h"

#include <netinet/in.h>
#include <stdlib.h>

static void source_close(struct endpoint *e)
{
	endpoint_close(e);
}

/* close(2) of a descriptor that was only read has no error. */
static const struct endpoint_ops source_ops = {.abort = source_close};

void source_adopt(struct endpoint *e, int fd, const char *path, const struct stat *st)
{
	memset(e, 0, offsetof(struct endpoint, state)); /* which a source has none of */
	e->ops = &source_ops;
	e->path = path;
	e->fd = fd;
	e->positional = true;
	e->st = *st;
}

static void leave_open(struct endpoint *e)
{
	e->fd = -1;
}

int source_share(struct endpoint *e, const struct endpoint *open, struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.abort = leave_open};
	*e = *open;
	e->ops = &ops;
	return fstat(e->fd, &e->st) < 0 ? error_call(error, "fstat", e->path, errno) : 0;
}

static int fail_open(const char *path, int err, struct fcopy_error *error)
{
	struct stat st;
	if (err == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return error_refuse_operand(error, path, ENOENT, "is a dangling symlink",
					    FCOPY_ADVICE_NONE);
	error_look_up(error, "open", path, err);
	if (err == ENXIO && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		error_unsuitable(error);
	return -err;
}

int source_open(struct endpoint *e, const struct operand *src, const struct fcopy_options *options,
		struct fcopy_error *error)
{
	const char *path = src->path;
	if (src->kind == OPERAND_STREAM) {
		const int r = stream_open(e, path, STDIN_FILENO, error);
		e->options = options;
		return r;
	}
	*e = (struct endpoint){.ops = &source_ops, .path = path};
	e->fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (e->fd < 0)
		return fail_open(path, errno, error);
	if (fstat(e->fd, &e->st) < 0)
		error_call(error, "fstat", path, errno);
	else if (S_ISDIR(e->st.st_mode)) {
		error_refuse_operand(error, path, EISDIR, "is a directory", FCOPY_ADVICE_RECURSIVE);
	} else if (S_ISBLK(e->st.st_mode) && device_size(e->fd, &e->st.st_size) < 0)
		error_call(error, "ioctl(BLKGETSIZE64)", path, errno);
	else {
		e->positional = S_ISREG(e->st.st_mode) || S_ISBLK(e->st.st_mode);
		return 0;
	}
	source_close(e);
	return -error->err;
}

/* Operands that are not paths. */

static const struct stream *const streams[] = {&tcp_stream, &http_stream, &descriptor_stream};

/* The row that the operand belongs to; NULL: it is a path. */
static const struct stream *stream_find(const char *operand)
{
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++)
		if (streams[i]->names(operand))
			return streams[i];
	return NULL;
}

enum fcopy_kind fcopy_operand_kind(const char *operand, int dash, int *descriptor)
{
	int fd = -1;
	const struct stream *s = stream_find(operand);
	enum fcopy_kind kind = s ? s->kind(operand, dash, &fd) : FCOPY_KIND_PATH;
	if (descriptor)
		*descriptor = fd;
	return kind;
}

int stream_open(struct endpoint *e, const char *operand, int dash, struct fcopy_error *error)
{
	return stream_find(operand)->open(e, operand, dash, error);
}

/* Open descriptors as SRC or DST. They are used at their current offset and not reopened. */

#define DESCRIPTOR "fd:"

/* A descriptor's number in decimal digits without leading zeros; -1: it is none. */
static int descriptor_parse(const char *digits)
{
	char *end;
	bool starts = digits[0] >= '0' && digits[0] <= '9' && (digits[0] != '0' || !digits[1]);
	long n = starts ? strtol(digits, &end, 10) : -1;
	return n >= 0 && *end == '\0' && n <= INT_MAX ? (int)n : -1;
}

/* The descriptor that a path such as -, /dev/stdin or fd:3 names, or -1. */
static int descriptor_number(const char *path, int dash)
{
	static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	static const char *const prefixes[] = {DESCRIPTOR, "/dev/fd/", "/proc/self/fd/"};
	if (path[0] == '-' && path[1] == '\0')
		return dash;
	for (int i = 0; i < 3; i++)
		if (strcmp(path, names[i]) == 0)
			return i;
	for (int i = 0; i < 3; i++)
		if (starts_with(path, prefixes[i]))
			return descriptor_parse(path + strlen(prefixes[i]));
	return -1;
}

/* A connection is half-closed at the commit. fd:N asks for that with any socket. Under another
 * name, such as -, a socket may be shared with later programs, as one from sshd(8) is; but a TCP
 * socket carries one stream, which a program started by inetd(8) must end in order. */
static bool is_connection(const char *path, int fd, mode_t type)
{
	if (!S_ISSOCK(type))
		return false;
	return starts_with(path, DESCRIPTOR) || socket_get_option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

static bool descriptor_names(const char *path)
{
	return starts_with(path, DESCRIPTOR) || descriptor_number(path, STDIN_FILENO) >= 0;
}

static enum fcopy_kind descriptor_kind(const char *path, int dash, int *fd)
{
	struct stat st;
	*fd = descriptor_number(path, dash);
	return fstat(*fd, &st) == 0 && is_connection(path, *fd, st.st_mode) ? FCOPY_KIND_SOCKET
									    : FCOPY_KIND_DESCRIPTOR;
}

static int descriptor_commit(struct endpoint *e, struct fcopy_error *error)
{
	int r = endpoint_close(e);
	return r < 0 ? error_call(error, "close", e->path, -r) : 0;
}

static const struct endpoint_ops descriptor_ops = {.commit = descriptor_commit,
						   .abort = source_close};

static int descriptor_open(struct endpoint *e, const char *path, int dash,
			   struct fcopy_error *error)
{
	int fd = descriptor_number(path, dash);
	if (fd < 0)
		return error_refuse(
		    error, path, EINVAL,
		    "has no descriptor number after fd: (for a file, write ./fd:...)",
		    FCOPY_ADVICE_USAGE);
	*e = (struct endpoint){.ops = &descriptor_ops, .path = path};
	*file_of(e) = file_state();
	e->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (e->fd < 0)
		return error_call(error, "fcntl(F_DUPFD)", path, errno);
	if (fstat(e->fd, &e->st) < 0)
		error_call(error, "fstat", path, errno);
	else if (S_ISSOCK(e->st.st_mode) && socket_get_option(fd, SO_TYPE) != SOCK_STREAM)
		/* A read would drop the rest of a record. */
		error_refuse_operand(error, path, ESOCKTNOSUPPORT, "is not a stream socket",
				     FCOPY_ADVICE_NONE);
	else if (!is_connection(path, fd, e->st.st_mode) ||
		 socket_adopt(e, dash == STDIN_FILENO, error) == 0)
		return 0;
	endpoint_close(e);
	return -error->err;
}

const struct stream descriptor_stream = {descriptor_names, descriptor_kind, descriptor_open};
