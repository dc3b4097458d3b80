/* SPDX-License-Identifier: MIT
 * Implements acl.h.
 */
#define _GNU_SOURCE
#include "acl.h"
#include "io/io.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

#define VALUE_MAX 65536 /* XATTR_SIZE_MAX */

/* The permissions of a default ACL, as posix_acl_create_masq() in fs/posix_acl.c combines them with
 * the mode of a new file: the mask, if there is one, limits the group bits. */
static mode_t mode_of_acl(const struct posix_acl_xattr_entry *entry, size_t count)
{
	mode_t user = 0, group = 0, other = 0;
	bool masked = false;
	for (size_t i = 0; i < count; i++) {
		mode_t bits = le16toh(entry[i].e_perm) & 07;
		switch (le16toh(entry[i].e_tag)) {
		case ACL_USER_OBJ: user = bits; break;
		case ACL_GROUP_OBJ: group = masked ? group : bits; break;
		case ACL_MASK:
			group = bits;
			masked = true;
			break;
		case ACL_OTHER: other = bits; break;
		default: break; /* a named user or group */
		}
	}
	return user << 6 | group << 3 | other;
}

bool acl_default_mode(int dir, mode_t *mode)
{
	_Alignas(8) char value[VALUE_MAX];
	const struct posix_acl_xattr_header *acl = (const void *)value;
	const size_t head = sizeof(*acl);
	ssize_t n = getxattr(dir == AT_FDCWD ? "." : io_proc_path(dir).text,
			     "system.posix_acl_default", value, sizeof(value));
	if (n < (ssize_t)head || le32toh(acl->a_version) != POSIX_ACL_XATTR_VERSION)
		return false;
	*mode = mode_of_acl((const void *)(value + head),
			    ((size_t)n - head) / sizeof(struct posix_acl_xattr_entry));
	return true;
}

mode_t acl_group_mode(const void *value, size_t size, mode_t mode)
{
	const struct posix_acl_xattr_header *acl = value;
	const struct posix_acl_xattr_entry *entry = (const void *)(acl + 1);
	if (size < sizeof(*acl) || le32toh(acl->a_version) != POSIX_ACL_XATTR_VERSION)
		return mode;
	for (size_t n = (size - sizeof(*acl)) / sizeof(*entry); n > 0; n--, entry++)
		if (le16toh(entry->e_tag) == ACL_GROUP_OBJ)
			mode &= ~(mode_t)070 | (le16toh(entry->e_perm) & 07) << 3;
	return mode;
}
