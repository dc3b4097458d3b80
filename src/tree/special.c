/* SPDX-License-Identifier: MIT
 * Symlinks, FIFOs, sockets and devices: created like the source's, never opened.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static int special_create(const struct entry *e, const char *name, const struct stat *st,
			  const char **call)
{
	if (!S_ISLNK(st->st_mode)) {
		*call = "mknod";
		return mknodat(e->dir->dst, name, st->st_mode & (S_IFMT | 07777), st->st_rdev) < 0
			   ? -errno
			   : 0;
	}
	char target[PATH_MAX];
	*call = "readlink";
	ssize_t n = readlinkat(e->dir->src, e->name, target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n == sizeof(target))
		return -ENAMETOOLONG;
	target[n] = '\0';
	*call = "symlink";
	return symlinkat(target, e->dir->dst, name) < 0 ? -errno : 0;
}

/* A file is replaced, a directory is not: rename(2) refuses it with EISDIR. */
static int special_replace(struct worker *w, const struct entry *e, const struct stat *st,
			   const char **call)
{
	char name[TEMPORARY_SIZE];
	if (w->options.no_clobber)
		return -EEXIST;
	*call = "getrandom";
	int r = temporary_draw(name);
	if (r == 0)
		r = special_create(e, name, st, call);
	if (r < 0)
		return r;
	*call = "rename";
	if (renameat(e->dir->dst, name, e->dir->dst, e->as) == 0)
		return 0;
	r = -errno;
	unlinkat(e->dir->dst, name, 0);
	return r;
}

/* Copies the extended attributes of one O_PATH descriptor to another. Through /proc, because the
 * calls for descriptors refuse O_PATH; the link there leads to the file itself, also to a symlink.
 */
static int special_copy_xattrs(int src, int dst)
{
	char from[32], to[32], list[65536], value[65536]; /* XATTR_LIST_MAX, XATTR_SIZE_MAX */
	int first = 0;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", src);
	snprintf(to, sizeof(to), "/proc/self/fd/%d", dst);
	ssize_t n = listxattr(from, list, sizeof(list));
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (char *name = list; name < list + n; name += strlen(name) + 1) {
		if (strncmp(name, "system.", 7) == 0 || strcmp(name, "security.selinux") == 0)
			continue;
		ssize_t size = getxattr(from, name, value, sizeof(value));
		if (size < 0 && errno == ENODATA)
			continue;
		if (size < 0 || setxattr(to, name, value, (size_t)size, 0) < 0)
			first = first ? first : -errno;
	}
	return first;
}

static int special_dress_one(enum fcopy_attribute which, const struct entry *e, int src, int dst,
			     const struct stat *st, const char **call)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	char link[32];
	switch (which) {
	case FCOPY_ATTR_TIMESTAMPS:
		*call = "utimensat";
		return utimensat(e->dir->dst, e->as, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	case FCOPY_ATTR_OWNERSHIP:
		*call = "fchownat";
		return fchownat(dst, "", st->st_uid, st->st_gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
	case FCOPY_ATTR_XATTR: *call = "setxattr"; return special_copy_xattrs(src, dst);
	case FCOPY_ATTR_MODE:
		*call = "chmod";
		if (S_ISLNK(st->st_mode)) /* has no mode */
			return 0;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dst);
		return chmod(link, st->st_mode & 07777) < 0 ? -errno : 0;
	}
	return 0;
}

/* Returns 0, or -errno if an attribute was lost that is required. */
static int special_dress(struct worker *w, const struct entry *e, const struct stat *st)
{
	static const enum fcopy_attribute order[] = {FCOPY_ATTR_TIMESTAMPS, FCOPY_ATTR_OWNERSHIP,
						     FCOPY_ATTR_XATTR, FCOPY_ATTR_MODE};
	const struct fcopy_options *o = &w->options;
	struct fcopy_error error;
	int failure = 0;
	int src = openat(e->dir->src, e->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int dst = openat(e->dir->dst, e->as, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order) && failure == 0; i++) {
		const char *call = "open";
		if (!(o->preserve & order[i]))
			continue;
		int r = src < 0 || dst < 0 ? -errno
					   : special_dress_one(order[i], e, src, dst, st, &call);
		if (r == 0)
			continue;
		error_call(&error, call, entry_dst, -r);
		if (o->preserve_required & order[i])
			failure = r;
		else
			report_warning(w, e, &error);
	}
	if (src >= 0)
		close(src);
	if (dst >= 0)
		close(dst);
	if (failure < 0)
		report_failure(w, e, &error);
	return failure;
}

/* Is the existing destination the source, or what the source leads to? A symlink that replaced it
 * would lead to itself, and its data would be lost. */
static bool special_is_source(const struct entry *e, const struct stat *st)
{
	struct stat dst, target;
	if (fstatat(e->dir->dst, e->as, &dst, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (dst.st_dev == st->st_dev && dst.st_ino == st->st_ino)
		return true;
	return S_ISLNK(st->st_mode) && fstatat(e->dir->src, e->name, &target, 0) == 0 &&
	       dst.st_dev == target.st_dev && dst.st_ino == target.st_ino;
}

int special_copy(struct worker *w, const struct entry *e, const struct stat *st)
{
	const char *call;
	int r = special_create(e, e->as, st, &call);
	if (r == -EEXIST && special_is_source(e, st)) {
		struct fcopy_error error;
		r = error_refuse(&error, entry_src, EINVAL, "are the same file", FCOPY_ADVICE_NONE);
		error.path2 = entry_dst;
		report_failure(w, e, &error);
		return r;
	}
	if (r == -EEXIST && w->tree->resume && resume_remove(e->dir->dst, e->as) == 0)
		r = special_create(e, e->as, st, &call);
	if (r == -EEXIST && w->tree->atomic)
		r = special_replace(w, e, st, &call);
	if (r == -EEXIST && w->options.no_clobber) {
		w->sum.kept++;
		return r;
	}
	if (r < 0) {
		struct fcopy_error error;
		bool src = strcmp(call, "readlink") == 0;
		error_call(&error, call, src ? entry_src : entry_dst, -r);
		report_failure(w, e, &error);
		return r;
	}
	if (w->options.preserve && (r = special_dress(w, e, st)) < 0)
		return r;
	w->sum.symlinks += S_ISLNK(st->st_mode);
	w->sum.specials += !S_ISLNK(st->st_mode);
	return 0;
}
