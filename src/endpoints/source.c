/* SPDX-License-Identifier: MIT
 * Opens SRC according to the type of the file that it names.
 */
#define _GNU_SOURCE
#include "error.h"
#include "replace.h"
#include "socket.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>

static int end_source(struct endpoint *e, const struct fcopy_options *options,
		      struct fcopy_error *error)
{
	(void)options, (void)error; /* close(2) of a descriptor that was only read has no error */
	e->ops->abort(e);
	return 0;
}

static void close_source(struct endpoint *e)
{
	endpoint_close(e);
}

static const struct endpoint_ops source_ops = {.commit = end_source, .abort = close_source};

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
	static const struct endpoint_ops ops = {.commit = end_source, .abort = leave_open};
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

int source_open(struct endpoint *e, const struct operand *src, struct fcopy_error *error)
{
	const char *path = src->path;
	if (src->kind == OPERAND_STREAM)
		return stream_open(e, path, STDIN_FILENO, error);
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
	close_source(e);
	return -error->err;
}
