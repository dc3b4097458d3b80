/* SPDX-License-Identifier: MIT
 * The permissions of new directories: what mkdir(2) leaves of the source's, and what they have
 * during the copy.
 */
#define _GNU_SOURCE
#include "permissions.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>

bool permissions_are_hidden(const struct tree *t)
{
	const unsigned last = FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_MODE;
	return t->atomic && !t->resume && !t->shard && t->options->copy.preserve & last;
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
	struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[65536 / sizeof(struct posix_acl_xattr_entry)];
	} acl;
	mode_t owner = 0, group = 0, other = 0;
	ssize_t n = fgetxattr(fd, "system.posix_acl_default", &acl, sizeof(acl));
	if (n <= (ssize_t)sizeof(acl.header))
		return 0777 & ~t->umask;
	size_t count = ((size_t)n - sizeof(acl.header)) / sizeof(*acl.entries);
	for (size_t i = 0; i < count; i++) {
		mode_t allowed = le16toh(acl.entries[i].e_perm) & 7;
		switch (le16toh(acl.entries[i].e_tag)) {
		case ACL_USER_OBJ: owner = allowed; break;
		case ACL_GROUP_OBJ:
		case ACL_MASK: group = allowed; break; /* the mask comes later */
		case ACL_OTHER: other = allowed; break;
		}
	}
	return owner << 6 | group << 3 | other;
}
