/* SPDX-License-Identifier: MIT
 * The permissions of new directories: what mkdir(2) leaves of the source's, and what they have
 * during the copy.
 */
#define _GNU_SOURCE
#include "permissions.h"
#include "endpoints/acl.h"
#include "endpoints/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

bool permissions_are_hidden(const struct tree *t)
{
	const unsigned last = FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_MODE;
	return t->root.ground.foreign && t->options->copy.preserve & last &&
	       !t->root.ground.fixed_modes;
}

int permissions_admit_owner(int parent, const char *name)
{
	struct stat st;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	mode_t lacks = 0700 & ~st.st_mode;
	if (lacks && fchmodat(parent, name, (st.st_mode & 07777) | lacks, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return (int)lacks;
}

/* A default ACL replaces the umask (acl(5)). A directory inherits the one that it was created
 * under. */
mode_t permissions_left(const struct tree *t, int fd)
{
	mode_t mode;
	return acl_default_mode(fd, &mode) ? mode : 0777 & ~t->umask;
}

int permissions_set(int fd, mode_t mode)
{
	struct stat st;
	if ((fstat(fd, &st) == 0 && (st.st_mode & 07777) == mode) || fchmod(fd, mode) == 0)
		return 0;
	return -errno;
}

bool permissions_are_fixed(int err)
{
	return err == EPERM || err == ENOSYS || err == EOPNOTSUPP;
}
