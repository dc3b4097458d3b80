/* SPDX-License-Identifier: MIT
 * A new file in a directory that other users cannot see yet: it has its final name from the start.
 * Also: a source that its caller has opened.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int created_close(struct endpoint *e)
{
	int fd = e->fd;
	e->fd = -1;
	return fd >= 0 && close(fd) < 0 ? -errno : 0;
}

/* NFS and FUSE report failed writes at close. */
static int created_commit(struct endpoint *e, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	(void)options;
	int r = created_close(e);
	return r < 0 ? error_call(error, "close", e->path, -r) : 0;
}

static void created_abort(struct endpoint *e)
{
	created_close(e);
	unlinkat(file_of(e)->place.dir, file_of(e)->place.name, 0);
}

int created_open(struct endpoint *e, int dir, const char *name, mode_t mode, const char *path,
		 struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.commit = created_commit, .abort = created_abort};
	*e = (struct endpoint){.ops = &ops, .path = path, .positional = true};
	file_of(e)->place.dir = dir;
	e->st.st_mode = S_IFREG;
	strcpy(file_of(e)->place.name,
	       name); /* a name that the kernel returned: NAME_MAX at most */
	e->fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	return e->fd < 0 ? error_call(error, "open", path, errno) : 0;
}

static void adopted_abort(struct endpoint *e)
{
	created_close(e);
}

static int adopted_commit(struct endpoint *e, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	(void)options, (void)error; /* close(2) of a descriptor that was only read has no error */
	created_close(e);
	return 0;
}

void source_adopt(struct endpoint *e, int fd, const char *path, const struct stat *st)
{
	static const struct endpoint_ops ops = {.commit = adopted_commit, .abort = adopted_abort};
	*e = (struct endpoint){.ops = &ops, .path = path, .fd = fd, .positional = true, .st = *st};
}
