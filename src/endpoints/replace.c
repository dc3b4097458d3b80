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

/* linkat(AT_EMPTY_PATH) needs no /proc, but CAP_DAC_READ_SEARCH before Linux 6.10. */
static int link_descriptor(const struct endpoint *e, const char *name)
{
	return linkat(e->fd, "", e->place.dir, name, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int link_by_proc(const struct endpoint *e, const char *name)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", e->fd);
	return linkat(AT_FDCWD, path, e->place.dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Finds the way in which a nameless file can get its name here. "." exists, so the answer of a way
 * that works is EEXIST, and of one that does not, ENOENT for the old name (do_linkat in fs/namei.c
 * looks that up first). */
static bool find_link(struct endpoint *e)
{
	static int (*const ways[])(const struct endpoint *, const char *) = {link_descriptor,
									     link_by_proc};
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		e->link = ways[i];
		if (e->link(e, ".") == -EEXIST)
			return true;
	}
	e->link = NULL;
	return false;
}

/* Draws a name that nobody can guess and plant. */
static int draw_name(char name[TEMPORARY_SIZE])
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
	unsigned char random[16];
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	char *end = stpcpy(name, ".fcopy-");
	for (size_t i = 0; i < sizeof(random); i++)
		*end++ = letters[random[i] % 32];
	*end = '\0';
	return 0;
}

static void forget(struct endpoint *e)
{
	if (e->temporary[0])
		unlinkat(e->place.dir, e->temporary, 0);
	e->temporary[0] = '\0';
}

static int create_named(struct endpoint *e)
{
	int r = -EEXIST;
	for (int tries = 0; r == -EEXIST && tries < 8; tries++) {
		r = draw_name(e->temporary);
		if (r < 0)
			break;
		e->fd = openat(e->place.dir, e->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			       0600);
		r = e->fd < 0 ? -errno : 0;
	}
	if (r < 0)
		e->temporary[0] = '\0';
	return r;
}

/* Only a nameless file gets umask and default ACL from the kernel; a named one has to know. A
 * process without /proc takes the strictest. */
static mode_t read_umask(void)
{
	char line[256];
	unsigned mask = 077;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Umask: %o", &mask) == 1)
			break;
	if (f)
		fclose(f);
	return mask;
}

static int create(struct endpoint *e, mode_t mode)
{
	e->fd = openat(e->place.dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (e->fd >= 0 && find_link(e))
		return 0;
	int err = e->fd >= 0 ? EOPNOTSUPP : errno;
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
	/* Kernels and file systems without O_TMPFILE see a directory opened for writing. */
	if (err != EOPNOTSUPP && err != EISDIR && err != EINVAL && err != ENOENT && err != ENOSYS)
		return -err;
	e->mode = e->place.exists ? 0 : mode & ~read_umask();
	return create_named(e);
}

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

static int link_temporary(struct endpoint *e)
{
	int r = -EEXIST;
	for (int tries = 0; r == -EEXIST && tries < 8; tries++) {
		r = draw_name(e->temporary);
		if (r == 0)
			r = e->link(e, e->temporary);
	}
	if (r < 0)
		e->temporary[0] = '\0';
	return r;
}

static int name_it(struct endpoint *e, const char **call)
{
	*call = "linkat";
	if (e->link && !e->place.exists) {
		int r = e->link(e, e->place.name);
		if (r != -EEXIST)
			return r;
		/* Somebody else made the file meanwhile: the later copy wins, as with two cp. */
	}
	if (e->link) {
		int r = link_temporary(e);
		if (r < 0)
			return r;
	}
	*call = "renameat";
	if (renameat(e->place.dir, e->temporary, e->place.dir, e->place.name) < 0)
		return -errno;
	e->temporary[0] = '\0';
	return 0;
}

static int flush_directory(const struct endpoint *e)
{
	int dir = openat(e->place.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 || fsync(dir) < 0 ? -errno : 0;
	if (dir >= 0)
		close(dir);
	return r;
}

static int commit(struct endpoint *e, const struct fcopy_options *options,
		  struct fcopy_error *error)
{
	const char *call = "close";
	if (!e->link && e->mode && fchmod(e->fd, e->mode) < 0)
		return error_call(error, "fchmod", e->path, errno);
	int r = close_duplicate(e->fd);
	if (r == 0)
		r = name_it(e, &call);
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
	forget(e);
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
	place_close(&e->place);
}

int replace_open(struct endpoint *e, const struct endpoint *src,
		 const struct fcopy_options *options, struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {commit, drop};
	mode_t mode = S_ISREG(src->st.st_mode) ? src->st.st_mode & 0777 : 0666;
	e->ops = &ops;
	e->positional = true;
	e->place.exists &= !options->scratch; /* what never gets a name replaces nothing */
	e->fresh = !e->place.exists;
	int r = e->place.exists ? check_existing(e, options->force, error) : 0;
	if (r < 0)
		return r;
	r = create(e, e->place.exists ? 0600 : mode);
	if (r < 0) {
		error_call(error, "open", e->path, -r);
		error->advice = e->place.exists ? FCOPY_ADVICE_IN_PLACE : FCOPY_ADVICE_NONE;
		return r;
	}
	if (e->place.exists)
		r = metadata_keep(e->fd, &e->place, e->path, options->force, error);
	e->st.st_mode = S_IFREG;
	if (r < 0)
		drop(e);
	return r;
}
