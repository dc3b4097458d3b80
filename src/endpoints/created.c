/* SPDX-License-Identifier: MIT
 * A new file in a directory that other users cannot see yet: it has its final name from the start.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* NFS and FUSE report failed writes at close. */
static int created_commit(struct endpoint *e, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	(void)options;
	int r = endpoint_close(e);
	return r < 0 ? error_call(error, "close", e->path, -r) : 0;
}

static void created_abort(struct endpoint *e)
{
	endpoint_close(e);
	unlinkat(file_of(e)->place.dir, file_of(e)->place.name, 0);
}

int created_open(struct endpoint *e, int dir, const char *name, mode_t mode, const char *path,
		 struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.commit = created_commit, .abort = created_abort};
	*e = (struct endpoint){.ops = &ops, .path = path, .positional = true};
	file_of(e)->place.dir = dir;
	e->st.st_mode = S_IFREG;
	/* The kernel returned the name: it has at most NAME_MAX bytes. */
	strcpy(file_of(e)->place.name, name);
	e->fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	return e->fd < 0 ? error_call(error, "open", path, errno) : 0;
}
