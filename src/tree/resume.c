/* SPDX-License-Identifier: MIT
 * DST.fcopy-part, the tree that an earlier copy did not complete. While it is resumed, a file gets
 * its name only when it is complete and has the source's modification time. So a file of that name
 * with the source's size and time is complete, and everything else is copied again.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int part_refuse(const char *dst, int err, const char *reason, struct fcopy_error *error)
{
	return error_refuse(error, dst, err, reason, FCOPY_ADVICE_REMOVE_PART);
}

/* Between open and lock, another copy may have committed the part. */
static int part_lock(int fd, int parent, const char *part, const char *dst,
		     struct fcopy_error *error)
{
	struct stat st, named;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			   ? error_refuse(error, dst, EBUSY, "another copy writes its .fcopy-part",
					  FCOPY_ADVICE_NONE)
			   : error_call(error, "lock of its .fcopy-part", dst, errno);
	if (fstat(fd, &st) < 0 || fstatat(parent, part, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return error_call(error, "stat of its .fcopy-part", dst, errno);
	if (st.st_dev != named.st_dev || st.st_ino != named.st_ino)
		return error_refuse(error, dst, EBUSY, "another copy has just used its .fcopy-part",
				    FCOPY_ADVICE_NONE);
	/* Another user could write into it, also while we do. */
	if (st.st_uid != geteuid())
		return part_refuse(dst, EPERM, "its .fcopy-part belongs to another user", error);
	if (st.st_mode & 022)
		return part_refuse(dst, EPERM, "its .fcopy-part may be written by others", error);
	return fchmod(fd, (st.st_mode & 07000) | 0700) < 0 ? error_call(error, "fchmod", dst, errno)
							   : 0;
}

int resume_open(int parent, const char *part, const char *dst, mode_t mode,
		struct fcopy_error *error)
{
	bool created = mkdirat(parent, part, mode & 0755) == 0;
	if (!created && errno != EEXIST)
		return error_call(error, "mkdir", dst, errno);
	int fd = openat(parent, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd >= 0 ? part_lock(fd, parent, part, dst, error)
		: errno == ENOTDIR || errno == ELOOP
		    ? part_refuse(dst, errno, "its .fcopy-part is not a directory", error)
		    : error_call(error, "open of its .fcopy-part", dst, errno);
	if (r == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	if (created)
		unlinkat(parent, part, AT_REMOVEDIR);
	return r;
}

/* Attributes that the earlier copy was perhaps not asked for. */
static bool resume_set_attributes(const struct worker *w, const struct entry *e, int fd,
				  const struct stat *st)
{
	static const enum fcopy_attribute order[] = {FCOPY_ATTR_OWNERSHIP, FCOPY_ATTR_XATTR,
						     FCOPY_ATTR_MODE};
	const char *call;
	bool same = true;
	unsigned preserve = w->tree->options->copy.preserve;
	if (!preserve)
		return true;
	int dst = openat(e->dir->dst, e->as, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (dst < 0)
		return false;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (preserve & order[i])
			same &= metadata_copy_attribute(order[i], fd, dst, st, &call) == 0;
	close(dst);
	return same;
}

bool resume_is_complete(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct stat old;
	if (fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	/* --verify promises that every file of the copy was read back. */
	if (S_ISREG(old.st_mode) && !w->options.verify && old.st_size == st->st_size &&
	    old.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	    old.st_mtim.tv_nsec == st->st_mtim.tv_nsec && resume_set_attributes(w, e, fd, st))
		return true;
	unlinkat(e->dir->dst, e->as, 0);
	return false;
}

static void prune_one(struct worker *w, const struct directory *d, const char *name)
{
	struct stat st;
	struct fcopy_error error;
	if (fstatat(d->src, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	if (errno != ENOENT || unlinkat(d->dst, name, 0) == 0)
		return;
	int fd = openat(d->dst, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : remove_tree(fd, d->dst, name);
	if (fd >= 0)
		close(fd);
	if (r == 0)
		return;
	error_call(&error, "remove", entry_dst, -r);
	report_failure(w, &(struct entry){.dir = (struct directory *)d, .name = name, .as = name},
		       &error);
}

void resume_prune(struct worker *w, const struct directory *d)
{
	_Alignas(8) char names[8192];
	ssize_t n;
	if (lseek(d->dst, 0, SEEK_SET) < 0)
		return;
	while ((n = getdents64(d->dst, names, sizeof(names))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(names + at);
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				prune_one(w, d, entry->d_name);
			at += entry->d_reclen;
		}
}
