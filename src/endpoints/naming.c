/* SPDX-License-Identifier: MIT
 * Gives a temporary file its final name, by linkat(2) or by a rename.
 */
#define _GNU_SOURCE
#include "exchange.h"
#include "file.h"
#include "io/libc.h"
#include "partial.h"
#include "storage.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* On any other error, assume that the name exists. */
static bool name_exists(const struct endpoint *e)
{
	struct stat st;
	return fstatat(file_of(e)->place.dir, file_of(e)->place.name, &st, AT_SYMLINK_NOFOLLOW) ==
		   0 ||
	       errno != ENOENT;
}

static int rename_over(struct endpoint *e, const char **call)
{
	int dir = file_of(e)->place.dir;
	*call = "renameat";
	return renameat(partial_home(e), file_of(e)->temporary, dir, file_of(e)->place.name) < 0
		   ? -errno
		   : 0;
}

/* Names the temporary file without replacing any file. Returns -EEXIST if the name is taken. Where
 * the file system has neither the flag nor hard links, another process can create the file between
 * the check and the rename. */
static int rename_to_new(struct endpoint *e, const char **call)
{
	int dir = file_of(e)->place.dir, home = partial_home(e);
	*call = "renameat";
	if (renameat2(home, file_of(e)->temporary, dir, file_of(e)->place.name, RENAME_NOREPLACE) ==
	    0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) /* the file system lacks the flag, or the kernel */
		return -errno;
	*call = "linkat";
	if (linkat(home, file_of(e)->temporary, dir, file_of(e)->place.name, 0) < 0) {
		if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
			return -errno;
		return name_exists(e) ? -EEXIST : rename_over(e, call);
	}
	*call = "unlinkat";
	return unlinkat(home, file_of(e)->temporary, 0) < 0 ? -errno : 0;
}

/* Replaces only the file that was found. Returns -EEXIST if another one has the name. A part keeps
 * its data by its name: what is replaced cannot come out there. */
static int rename_exactly(struct endpoint *e, const char **call)
{
	const struct place *p = &file_of(e)->place;
	struct stat now;
	*call = "renameat";
	if (!file_of(e)->partial) {
		int r = exchange_over(p->dir, file_of(e)->temporary, p->dir, p->name, &p->st,
				      file_of(e)->hands_out);
		if (r == EXCHANGE_ANOTHER)
			strcpy(file_of(e)->handed, file_of(e)->temporary);
		if (r == -ENOTRECOVERABLE) /* it is not ours: abort must not remove it */
			file_of(e)->temporary[0] = '\0';
		return r > 0 ? 0 : r;
	}
	if (fstatat(p->dir, p->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? rename_to_new(e, call) : -errno;
	return exchange_is_same(p->dir, &now, &p->st) ? rename_over(e, call) : -EEXIST;
}

#define RELEASE_MS 1000 /* to wait for storage that releases a closed file later */

/* Some storage renames no file that is open: closes it and tries again. close(2) does not wait for
 * the release of a FUSE file. */
static int rename_named(struct endpoint *e, bool no_clobber, const char **call)
{
	int (*const name)(struct endpoint *, const char **) = no_clobber          ? rename_to_new
							      : file_of(e)->exact ? rename_exactly
										  : rename_over;
	int r = name(e, call);
	if (r == 0 || r == -EEXIST || file_of(e)->link || storage_is_known(file_of(e)->place.dir))
		return r;
	*call = "close";
	int closed = endpoint_close(e);
	if (closed < 0)
		return closed;
	for (int ms = 1; (r = name(e, call)) < 0 && r != -EEXIST && ms < RELEASE_MS; ms *= 2)
		nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
	return r;
}

/* Has another entry of the tree made what has the name now? An exact rename replaces nothing but
 * what was found. */
static bool is_rival(const struct endpoint *e)
{
	const struct place *p = &file_of(e)->place;
	struct stat st = p->st;
	const bool found = file_of(e)->exact && file_of(e)->displaces;
	return (found || fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0) &&
	       e->rivals->is_made(e->rivals->arg, &st);
}

static bool meets_rival(const struct endpoint *e)
{
	if (!e->rivals)
		return false;
	pthread_mutex_lock(e->rivals->lock);
	bool rival = is_rival(e);
	pthread_mutex_unlock(e->rivals->lock);
	return rival;
}

/* A file that had one name when it was opened is claimed: no rival replaces it. */
static int rename_without_rival(struct endpoint *e, bool no_clobber, const char **call)
{
	const struct place *p = &file_of(e)->place;
	if (!e->rivals || (p->exists && p->st.st_nlink == 1))
		return rename_named(e, no_clobber, call);
	pthread_mutex_lock(e->rivals->lock);
	int r = is_rival(e) ? ENDPOINT_RIVAL : rename_named(e, no_clobber, call);
	pthread_mutex_unlock(e->rivals->lock);
	return r;
}

/* btrfs before Linux 6.15 does not log a file whose link count is 0 (btrfs_log_inode_parent() in
 * fs/btrfs/tree-log.c): its fsync(2) returns without a write. The fsync of the directory then logs
 * the name without the data, and a power cut leaves DST torn.
 */
static bool must_flush_named(const struct endpoint *e)
{
	struct statfs fs;
	return file_of(e)->link && file_of(e)->directory >= 0 && fstatfs(e->fd, &fs) == 0 &&
	       (unsigned)fs.f_type == BTRFS_SUPER_MAGIC;
}

/* A user who can rename files in the directory may have exchanged the temporary name just before
 * rename(2). Without a link our file was at DST: a later copy has replaced it. On FUSE and SMB an
 * inode number may change. */
static int check_renamed(const struct endpoint *e)
{
	struct stat st;
	struct statfs fs;
	if (file_of(e)->private ||
	    private_has_name(e->fd, file_of(e)->place.dir, file_of(e)->place.name))
		return 0;
	if (fstat(e->fd, &st) < 0 || st.st_nlink == 0 || fstatfs(e->fd, &fs) < 0 ||
	    fs.f_type == FUSE_SUPER_MAGIC || (unsigned)fs.f_type == SMB2_SUPER_MAGIC ||
	    (unsigned)fs.f_type == CIFS_SUPER_MAGIC)
		return 0;
	return -ESTALE;
}

int temporary_name(struct endpoint *e, bool no_clobber, const char **call)
{
	int r;
	bool fresh = !file_of(e)->place.exists && !file_of(e)->displaces,
	     flush = must_flush_named(e),
	     met = fresh && !file_of(e)->link && !no_clobber && name_exists(e);
	*call = "linkat";
	if (file_of(e)->link && fresh && !flush && !file_of(e)->temporary[0]) {
		r = file_of(e)->link(e, file_of(e)->place.name);
		if (r != -EEXIST)
			return r;
		if (no_clobber)
			return meets_rival(e) ? ENDPOINT_RIVAL : ENDPOINT_SKIPPED;
		met = true;
	}
	/* Another process created DST during the copy: the later copy wins, as with two cp(1).
	 * Flush first: a preallocated file must not replace another before it is on the storage.
	 * With a named temporary file, DST can still appear between the check and the rename. */
	if (met) {
		*call = "fdatasync";
		if (fdatasync(e->fd) < 0)
			return -errno;
	}
	if (file_of(e)->link && !file_of(e)->temporary[0] &&
	    (r = temporary_make_drawn(e, file_of(e)->link, "linkat", call)) < 0)
		return r;
	if (flush) {
		*call = "fsync";
		if (fsync(e->fd) < 0)
			return -errno;
	}
	r = rename_without_rival(e, no_clobber, call);
	if (r < 0)
		return r == -EEXIST && (no_clobber || file_of(e)->exact) ? ENDPOINT_SKIPPED : r;
	if (r == ENDPOINT_RIVAL)
		return r;
	file_of(e)->temporary[0] = '\0';
	*call = NULL;
	return check_renamed(e);
}
