/* SPDX-License-Identifier: MIT
 * A file replaced atomically: written under no name, named when it is complete. Whatever can be
 * found out to fail is found out before the first byte.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "io/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int refuse(const struct endpoint *e, int err, const char *reason, struct fcopy_error *error)
{
	return error_refuse(error, e->path, err, reason, FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}

/* What would make the rename fail, or take something away from the owner of the old file. */
static int check_existing(const struct endpoint *e, bool force, struct fcopy_error *error)
{
	struct statx sx;
	if (statx(e->place.dir, e->place.name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &sx) < 0)
		return error_call(error, "statx", e->path, errno);
	if (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return error_refuse(error, e->path, EBUSY,
				    "is a mount point and cannot be replaced",
				    FCOPY_ADVICE_IN_PLACE);
	if (sx.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		return error_refuse(error, e->path, EPERM, "is immutable or append-only",
				    FCOPY_ADVICE_NONE);
	if (force)
		return 0;
	if (e->place.st.st_nlink > 1)
		return refuse(e, EMLINK, "has more hard links, which would keep the old content",
			      error);
	if (faccessat(e->place.dir, e->place.name, W_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EROFS)
		return error_call(error, "open", e->path, EROFS);
	return refuse(e, errno, "is not writable by you", error);
}

/* Errors of flush come with close, but the name needs an open descriptor: so a duplicate is closed
 * first. EINTR too means that the outcome is unknown. */
static int close_duplicate(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	return close(copy) < 0 ? -errno : 0;
}

static int flush_directory(const struct endpoint *e)
{
	int dir = openat(e->place.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 || fsync(dir) < 0 ? -errno : 0;
	if (dir >= 0)
		close(dir);
	return r;
}

static int dress(struct endpoint *e, const struct fcopy_options *options, struct fcopy_error *error)
{
	if (e->place.exists)
		return metadata_keep(e->fd, &e->place, e->path, options->force, error);
	if (fchmod(e->fd, e->mode) < 0)
		return error_call(error, "fchmod", e->path, errno);
	return 0;
}

/* Before that, others could have opened a file that has a name but is not complete. */
static int finish(struct endpoint *e, const struct fcopy_options *options,
		  struct fcopy_error *error)
{
	return e->link ? 0 : dress(e, options, error);
}

static int commit(struct endpoint *e, const struct fcopy_options *options,
		  struct fcopy_error *error)
{
	const char *call = "close";
	int r = close_duplicate(e->fd);
	if (r == 0)
		r = temporary_name(e, options->no_clobber, &call);
	if (r < 0) {
		error_call(error, call, e->path, -r);
		error->advice = e->place.exists ? FCOPY_ADVICE_IN_PLACE : FCOPY_ADVICE_NONE;
		return r;
	}
	if (options->fsync && (r = flush_directory(e)) < 0)
		return error_call(error, "fsync of the directory", e->path, -r);
	close(e->fd);
	place_close(&e->place);
	e->fd = -1;
	return 0;
}

static void drop(struct endpoint *e)
{
	temporary_drop(e);
	place_close(&e->place);
}

int replace_open(struct endpoint *e, const struct endpoint *src,
		 const struct fcopy_options *options, struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {finish, commit, drop};
	mode_t mode = S_ISREG(src->st.st_mode) ? src->st.st_mode & 0777 : 0666;
	e->ops = &ops;
	e->positional = true;
	e->place.exists &= !options->scratch; /* what never gets a name replaces nothing */
	e->fresh = !e->place.exists;
	int r = e->place.exists ? check_existing(e, options->force, error) : 0;
	if (r < 0)
		return r;
	r = temporary_create(e, e->fresh ? mode : 0600, options->resume && !options->scratch);
	if (r < 0) {
		error_call(error, "open", e->path, -r);
		error->advice = e->place.exists ? FCOPY_ADVICE_IN_PLACE : FCOPY_ADVICE_NONE;
		return r;
	}
	e->st.st_mode = S_IFREG;
	if (e->place.exists)
		r = metadata_keep_owner(e->fd, &e->place, e->path, options->force, error);
	if (r == 0 && e->place.exists && e->link) /* nobody can read what has no name */
		r = dress(e, options, error);
	if (r < 0)
		drop(e);
	return r;
}
