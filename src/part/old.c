/* SPDX-License-Identifier: MIT
 * Implements old.h.
 */
#define _GNU_SOURCE
#include "old.h"
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Gives the owner of a directory the right to change its .. for one rename. */
static int old_rename_closed(int from, int to, const char *name)
{
	struct stat st;
	int r = -EACCES, fd = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return r;

	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & S_IWUSR) &&
	    io_chmod(fd, (st.st_mode & 07777) | S_IWUSR) == 0) {
		r = private_rename(from, name, to, name);
		(void)!io_chmod(fd, st.st_mode & 07777);
	}
	close(fd);
	return r;
}

int old_rename(int from, int to, const char *name)
{
	const int r = private_rename(from, name, to, name);
	return r == -EACCES ? old_rename_closed(from, to, name) : r;
}

int old_take(struct old *o, int dir, const char *name)
{
	const char *call;
	mode_t left;
	o->fd = -1;
	int r = private_make(&o->at, dir, &call);
	if (r < 0)
		return r;
	o->fd = private_make_directory(o->at.fd, PRIVATE_OLD, 0700, false, false, &left, &call);
	r = o->fd < 0 ? o->fd : old_rename(dir, o->fd, name);
	if (r < 0)
		old_end(o);
	return r;
}

int old_return(struct old *o, const char *name)
{
	return old_rename(o->fd, o->at.parent, name);
}

/* What holds the entry keeps its lock: by it the next mirror knows the directory. */
void old_end(struct old *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (unlinkat(o->at.fd, PRIVATE_OLD, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		private_end(&o->at);
		return;
	}
	close(o->at.lock);
	close(o->at.fd);
}
