/* SPDX-License-Identifier: MIT
 * What the copy shall have of the source besides its bytes.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "error.h"

#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST_MAX  65536 /* XATTR_LIST_MAX */
#define VALUE_MAX 65536 /* XATTR_SIZE_MAX */

static bool absent(int err)
{
	return err == ENODATA || err == EOPNOTSUPP;
}

/* -ENODATA: the source has none. */
static int copy_attribute(int src, int dst, const char *name)
{
	char value[VALUE_MAX];
	ssize_t n = fgetxattr(src, name, value, sizeof(value));
	if (n < 0)
		return absent(errno) ? -ENODATA : -errno;
	return fsetxattr(dst, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

/* The ACLs come with the mode, the security label with the directory. */
static bool is_ours(const char *name)
{
	return strncmp(name, "system.", 7) != 0 && strcmp(name, "security.selinux") != 0;
}

static int copy_attributes(int src, int dst)
{
	char list[LIST_MAX];
	int first = 0;
	ssize_t n = flistxattr(src, list, sizeof(list));
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (char *name = list; name < list + n; name += strlen(name) + 1) {
		int r = is_ours(name) ? copy_attribute(src, dst, name) : 0;
		first = first || r == -ENODATA ? first : r;
	}
	return first;
}

/* One that the directory gave to the copy, or that DST had, would let in whom the source does not.
 */
static int copy_acl(int src, int dst, const char *name)
{
	int r = copy_attribute(src, dst, name);
	if (r != -ENODATA)
		return r;
	return fremovexattr(dst, name) < 0 && !absent(errno) ? -errno : 0;
}

static int copy_mode(int src, int dst, const struct stat *st)
{
	struct stat now;
	if (fstat(dst, &now) < 0)
		return -errno;
	bool owned = now.st_uid == st->st_uid && now.st_gid == st->st_gid;
	int r = copy_acl(src, dst, "system.posix_acl_access");
	if (r == 0 && S_ISDIR(st->st_mode))
		r = copy_acl(src, dst, "system.posix_acl_default");
	if (fchmod(dst, st->st_mode & (owned ? 07777 : 01777)) < 0)
		return -errno;
	return r == 0 && !owned && st->st_mode & 06000 ? -EPERM : r;
}

/* Without privilege the owner is lost, but a group that the user belongs to can be kept. */
static int copy_owner(int dst, const struct stat *st)
{
	if (fchown(dst, st->st_uid, st->st_gid) == 0)
		return 0;
	int err = errno;
	if (err == EPERM)
		(void)!fchown(dst, (uid_t)-1, st->st_gid);
	return -err;
}

int preserve_attribute(enum fcopy_attribute which, int src, int dst, const struct stat *st,
		       const char **call)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	switch (which) {
	case FCOPY_ATTR_TIMESTAMPS:
		*call = "futimens";
		return futimens(dst, times) < 0 ? -errno : 0;
	case FCOPY_ATTR_OWNERSHIP: *call = "fchown"; return copy_owner(dst, st);
	case FCOPY_ATTR_XATTR: *call = "fsetxattr"; return copy_attributes(src, dst);
	case FCOPY_ATTR_MODE: *call = "fchmod"; return copy_mode(src, dst, st);
	}
	return 0;
}

int preserve_one(const struct endpoint *src, const struct endpoint *dst, enum fcopy_attribute which,
		 struct fcopy_error *e)
{
	const char *call = NULL;
	if (!S_ISREG(dst->st.st_mode) || !S_ISREG(src->st.st_mode))
		return error_refuse(e, dst->path, EOPNOTSUPP, PRESERVE_IMPOSSIBLE,
				    FCOPY_ADVICE_NONE);
	int r = preserve_attribute(which, src->fd, dst->fd, &src->st, &call);
	return r < 0 ? error_call(e, call, dst->path, -r) : 0;
}
