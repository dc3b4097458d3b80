/* SPDX-License-Identifier: MIT
 * What a file is besides its bytes.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "error.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ATTRIBUTE_MAX 65536 /* XATTR_SIZE_MAX */
#define TRIES         8     /* of a look at a name that another copy replaces */

static bool absent(int err)
{
	return err == ENODATA || err == EOPNOTSUPP;
}

/* On a FUSE file system the name can be missing for an instant while another copy renames a file
 * over it: rename(2) is not atomic for a concurrent lookup there. */
static ssize_t get_attribute(const char *path, const char *name, char value[ATTRIBUTE_MAX])
{
	ssize_t n = -1;
	errno = ENOENT;
	for (int tries = 0; n < 0 && errno == ENOENT && tries < TRIES; tries++)
		n = lgetxattr(path, name, value, ATTRIBUTE_MAX);
	return n;
}

/* Gives fd the attribute that the file at path has, or takes away what a default ACL or the
 * security module gave it. */
static int keep_attribute(int fd, const char *path, const char *name)
{
	char value[ATTRIBUTE_MAX];
	ssize_t n = get_attribute(path, name, value);
	if (n >= 0)
		return fsetxattr(fd, name, value, (size_t)n, 0) < 0 ? -errno : 0;
	if (!absent(errno))
		return -errno;
	return fremovexattr(fd, name) < 0 && !absent(errno) ? -errno : 0;
}

int metadata_keep_owner(int fd, const struct place *old, const char *path, bool force,
			struct fcopy_error *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_call(e, "fstat", path, errno);
	if (st.st_uid == old->st.st_uid && st.st_gid == old->st.st_gid)
		return 0;
	if (fchown(fd, old->st.st_uid, old->st.st_gid) == 0)
		return 0;
	int err = errno;
	if (force) {
		(void)!fchown(fd, (uid_t)-1, old->st.st_gid); /* better than neither */
		return 0;
	}
	return error_refuse(e, path, err, "its owner or group cannot be kept",
			    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}

int metadata_keep_acl(int fd, const struct place *old, const char *path, bool force,
		      struct fcopy_error *e)
{
	char name[sizeof("/proc/self/fd/") + 12 + NAME_MAX];
	if (old->dir == AT_FDCWD)
		snprintf(name, sizeof(name), "%s", old->name);
	else
		snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", old->dir, old->name);
	int r = keep_attribute(fd, name, "system.posix_acl_access");
	if (r == 0)
		r = keep_attribute(fd, name, "security.selinux");
	if (r == -ENOENT && !force && access("/proc/self/fd", F_OK) == 0)
		return error_refuse(e, path, ENOENT, "was removed while its copy was made",
				    FCOPY_ADVICE_NONE);
	if (r == -ENOENT && !force)
		return error_proc(e, "lgetxattr", path, -r);
	if (r < 0 && !force)
		return error_refuse(e, path, -r, "its ACL or security label cannot be kept",
				    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
	return 0;
}
