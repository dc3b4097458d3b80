/* SPDX-License-Identifier: MIT
 * DST.fcopy-part, where a copy that may be interrupted is written, to be gone on with. The name can
 * be guessed, so that whatever has it is looked at before it is believed.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "error.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define TRIES 8 /* each one lost to another copy, which has ended */

static int refuse(const struct endpoint *e, int err, const char *reason, struct fcopy_error *error)
{
	return error_refuse(error, e->path, err, reason, FCOPY_ADVICE_REMOVE_PART);
}

static int open_or_create(struct endpoint *e)
{
	int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	e->fd = openat(e->place.dir, e->temporary, flags | O_CREAT | O_EXCL, 0600);
	if (e->fd < 0 && errno == EEXIST)
		e->fd = openat(e->place.dir, e->temporary, flags);
	return e->fd < 0 ? -errno : 0;
}

/* Two resumes at once would write into each other's: the lock tells them. One that ended between
 * our open and our lock has given what we hold to DST: then -ENOENT. */
static int lock(const struct endpoint *e, struct stat *st)
{
	struct stat named;
	if (flock(e->fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (fstat(e->fd, st) < 0 ||
	    fstatat(e->place.dir, e->temporary, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return named.st_dev == st->st_dev && named.st_ino == st->st_ino ? 0 : -ENOENT;
}

/* What another user owns he may have open for writing, also after the copy has become ours. */
static int check(const struct endpoint *e, const struct stat *st, struct fcopy_error *error)
{
	if (!S_ISREG(st->st_mode))
		return refuse(e, EPERM, "its .fcopy-part is not a regular file", error);
	if (st->st_uid != geteuid())
		return refuse(e, EPERM, "its .fcopy-part belongs to another user", error);
	if (st->st_nlink != 1)
		return refuse(e, EPERM, "its .fcopy-part has more hard links", error);
	if (st->st_mode & 022)
		return refuse(e, EPERM, "its .fcopy-part may be written by others", error);
	return 0;
}

static int open_and_check(struct endpoint *e, struct fcopy_error *error)
{
	struct stat st = {0};
	int r = open_or_create(e);
	if (r < 0) {
		bool there = fstatat(e->place.dir, e->temporary, &st, AT_SYMLINK_NOFOLLOW) == 0;
		error_operation(error, "open of its .fcopy-part", "openat", e->path, -r);
		if (there && (r == -ELOOP || r == -EISDIR || r == -EACCES))
			error->advice = FCOPY_ADVICE_REMOVE_PART;
		return r;
	}
	r = lock(e, &st);
	if (r == -EWOULDBLOCK)
		error_refuse(error, e->path, EBUSY, "another copy writes its .fcopy-part",
			     FCOPY_ADVICE_NONE);
	else if (r < 0)
		error_operation(error, "lock of its .fcopy-part", "flock", e->path, -r);
	else
		check(e, &st, error);
	if (error->err == 0)
		return 0;
	close(e->fd);
	e->fd = -1;
	return -error->err;
}

int part_open(struct endpoint *e, mode_t mode, struct fcopy_error *error)
{
	int n = snprintf(e->temporary, sizeof(e->temporary), "%s.fcopy-part", e->place.name);
	e->mode = mode & ~temporary_umask();
	int r = n < (int)sizeof(e->temporary) ? -ENOENT
					      : error_operation(error, "open of its .fcopy-part",
								"openat", e->path, ENAMETOOLONG);
	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		*error = (struct fcopy_error){0};
		r = open_and_check(e, error);
	}
	e->keep_part = r == 0;
	if (r < 0)
		e->temporary[0] = '\0';
	return r;
}
