/* SPDX-License-Identifier: MIT
 * DST.fcopy-part while shards write to it together. Nothing here truncates or removes it: other
 * shards may have written to it.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Does another process hold the exclusive lock? */
static bool shared_is_committed(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

int shared_lock_commit(int fd, const volatile int *cancel)
{
	int r;
	do
		r = private_take_lock(fd, LOCK_EX, cancel);
	while (r == -EWOULDBLOCK && shared_is_committed(fd));
	/* The other process may have released it since the last try. */
	return r == -EWOULDBLOCK && flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : r;
}

int shared_check_lock(int fd, const volatile int *cancel)
{
	int r = private_take_lock(fd, LOCK_SH, cancel);
	if (r == 0)
		flock(fd, LOCK_UN);
	return private_lacks_locks(-r) ? 0 : r;
}

/* Opens the part, and creates it if its inode is still unknown. A complete part may have got the
 * mode of a read-only file: the commit only needs to read it. */
static int shared_open_file(const struct endpoint *e, bool commit, bool create)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(file_of(e)->place.dir, file_of(e)->temporary,
			O_RDWR | flags | (create ? O_CREAT : 0), 0600);
	if (fd < 0 && errno == EACCES && commit)
		fd = openat(file_of(e)->place.dir, file_of(e)->temporary, O_RDONLY | flags);
	if (fd < 0)
		return -errno;
	return fd;
}

int shared_open(struct endpoint *e, bool commit, uint64_t inode, const volatile int *cancel,
		struct fcopy_error *error)
{
	struct stat st;
	file_of(e)->keep_part = true;
	part_set_name(e);
	int r = shared_open_file(e, commit, inode == 0);
	if (r < 0)
		return error_operation(error, "open of its .fcopy-part", "openat", e->path, -r);
	e->fd = r;
	r = shared_check_lock(e->fd, cancel);
	if (r < 0) {
		part_fail_lock(e, r, error);
	} else if ((r = part_file_is_named(e)) < 0) {
		error_operation(error, "stat of its .fcopy-part", "fstat", e->path, -r);
	} else if (inode == 0) {
		r = part_check(e, error);
	} else if (fstat(e->fd, &st) < 0) {
		r = error_call(error, "fstat", e->path, errno);
	} else if (st.st_ino != inode || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
		r = error_refuse(error, e->path, EPERM,
				 "its .fcopy-part is not the one that its shards began",
				 FCOPY_ADVICE_SHARDS);
	}
	if (r < 0)
		endpoint_close(e);
	return r;
}

int shared_refuse_source(const struct endpoint *e, const struct endpoint *src,
			 struct fcopy_error *error)
{
	struct endpoint copy = *e, *part = &copy;
	part_set_name(part);
	int fd = openat(file_of(part)->place.dir, file_of(part)->temporary,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? 0 : part_refuse_source(e, fd, src, error);
	if (fd >= 0)
		close(fd);
	return r;
}

int shared_close(struct endpoint *e, struct fcopy_error *error)
{
	int r = endpoint_close(e);
	return r < 0 ? error_call(error, "close", e->path, -r) : 0;
}
