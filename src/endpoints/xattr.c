/* SPDX-License-Identifier: MIT
 * Extended attributes.
 */
#include "attributes.h"
#include "io/hash.h"

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#ifndef SYS_listxattrat     /* Linux 6.13; the headers may be older */
#define SYS_listxattrat 465 /* the same on every machine but Alpha */
#endif

/* Most have few names and short values, and the kernel allocates a buffer of the requested size. */
#define XATTR_USUAL 1024

/* The first row whose name begins an attribute's name. Views of something else are left: XFS lists
 * each ACL a second time, as trusted.SGI_ACL_FILE, and a copy of that on another file system would
 * bring a revoked ACL back. The kernel writes security.evm, AFS its own, and an indexer
 * user.Beagle. Which those are says /etc/xattr.conf. */
static const struct {
	const char *name;
	enum xattr_kind kind;
	bool kept;
} xattr_rows[] = {
    {XATTR_ACL, XATTR_MODE, true},
    {XATTR_DEFAULT, XATTR_MODE, false},
    {"security.selinux", XATTR_LEFT, true},
    {"security.evm", XATTR_LEFT, false},
    {"security.capability", XATTR_OWN, false},
    {"trusted.SGI_", XATTR_LEFT, false},
    {"trusted.", XATTR_OWN, false},
    {"user.Beagle.", XATTR_LEFT, false},
    {"user.", XATTR_OWN, false},
    {"system.", XATTR_LEFT, false},
    {"afs.", XATTR_LEFT, false},
    {"xfsroot.", XATTR_LEFT, false},
};

#define XATTR_ROWS (sizeof(xattr_rows) / sizeof(*xattr_rows))

enum xattr_kind xattr_kind(const char *name)
{
	for (size_t i = 0; i < XATTR_ROWS; i++)
		if (strncmp(name, xattr_rows[i].name, strlen(xattr_rows[i].name)) == 0)
			return xattr_rows[i].kind;
	return XATTR_GIVEN;
}

const char *xattr_kept(size_t i)
{
	for (size_t row = 0; row < XATTR_ROWS; row++)
		if (xattr_rows[row].kept && i-- == 0)
			return xattr_rows[row].name;
	return NULL;
}

bool xattr_is_absent(int err)
{
	return err == ENODATA || err == EOPNOTSUPP;
}

static ssize_t xattr_list_named(int dir, const char *name, bool follow, char *list, size_t size)
{
	return syscall(SYS_listxattrat, dir, name, follow ? 0 : AT_SYMLINK_NOFOLLOW, list, size);
}

static ssize_t xattr_call_list(const struct xattr_file *f, char *list, size_t size)
{
	if (!f->by_path)
		return flistxattr(f->fd, list, size);
	const ssize_t n = listxattr(io_proc_path(f->fd).text, list, size);
	if (n >= 0 || errno != ENOENT || !f->name)
		return n;
	const ssize_t named = xattr_list_named(f->dir, f->name, f->follow, list, size);
	if (named < 0 && errno != ERANGE)
		errno = ENOENT;
	return named;
}

ssize_t xattr_list(const struct xattr_file *f, char *list)
{
	ssize_t n = xattr_call_list(f, list, XATTR_USUAL);
	if (n < 0 && errno == ERANGE)
		n = xattr_call_list(f, list, XATTR_LIST);
	return n >= 0 ? n : errno == EOPNOTSUPP ? 0 : -errno;
}

bool xattr_lists(const char *list, ssize_t n, const char *name)
{
	for (const char *at = list; at < list + n; at += strlen(at) + 1)
		if (strcmp(at, name) == 0)
			return true;
	return false;
}

static ssize_t xattr_call_get(const struct xattr_file *f, const char *name, void *value,
			      size_t size)
{
	if (!f->by_path)
		return fgetxattr(f->fd, name, value, size);
	const ssize_t n = getxattr(io_proc_path(f->fd).text, name, value, size);
	if (n >= 0 || errno != ENOENT || !f->name)
		return n;
	const bool bare = xattr_list_named(f->dir, f->name, f->follow, NULL, 0) == 0;
	errno = bare ? ENODATA : ENOENT;
	return -1;
}

ssize_t xattr_get(const struct xattr_file *f, const char *name, void *value)
{
	ssize_t n = xattr_call_get(f, name, value, XATTR_USUAL);
	if (n < 0 && errno == ERANGE)
		n = xattr_call_get(f, name, value, XATTR_VALUE);
	return n < 0 ? -errno : n;
}

ssize_t xattr_ask(const struct xattr_file *f, const char *name)
{
	const ssize_t n = xattr_call_get(f, name, NULL, 0);
	return n < 0 ? -errno : n;
}

/* Asks first, because fremovexattr(2) of an ACL that is not there starts a transaction of the
 * journal on ext4 (ext4_set_acl() in fs/ext4/acl.c). */
int xattr_remove(const struct xattr_file *f, const char *name, struct xattr_blame *blame)
{
	*blame = (struct xattr_blame){.call = f->by_path ? "removexattr" : "fremovexattr"};
	const ssize_t n = xattr_ask(f, name);
	if (n < 0 && xattr_is_absent((int)-n))
		return 0;
	const int r = f->by_path ? removexattr(io_proc_path(f->fd).text, name)
				 : fremovexattr(f->fd, name);
	return r == 0 ? 1 : xattr_is_absent(errno) ? 0 : -errno;
}

static int xattr_set(const struct xattr_file *f, const char *name, const void *value, size_t size)
{
	const int r = f->by_path ? setxattr(io_proc_path(f->fd).text, name, value, size, 0)
				 : fsetxattr(f->fd, name, value, size, 0);
	return r < 0 ? -errno : 0;
}

/* An attribute user.* needs write permission, which a read-only file denies to its owner, too:
 * gives it for a moment. */
static int xattr_set_on_read_only(const struct xattr_file *f, const char *name, const void *value,
				  size_t size)
{
	struct stat st;
	if (f->by_path || fstat(f->fd, &st) < 0 || st.st_mode & 0200 ||
	    fchmod(f->fd, (st.st_mode & 07777) | 0200) < 0)
		return -EACCES;
	int r = xattr_set(f, name, value, size);
	return fchmod(f->fd, st.st_mode & 07777) < 0 && r == 0 ? -errno : r;
}

int xattr_copy(const struct xattr_file *src, const struct xattr_file *dst, const char *name,
	       struct xattr_blame *blame)
{
	char value[XATTR_VALUE];
	*blame = (struct xattr_blame){.call = src->by_path ? "getxattr" : "fgetxattr", .src = true};
	const ssize_t n = xattr_get(src, name, value);
	if (n < 0)
		return xattr_is_absent((int)-n) ? -ENODATA : (int)n;
	*blame = (struct xattr_blame){.call = dst->by_path ? "setxattr" : "fsetxattr"};
	int r = xattr_set(dst, name, value, (size_t)n);
	return r == -EACCES ? xattr_set_on_read_only(dst, name, value, (size_t)n) : r;
}

/* Removes what an earlier attempt copied and the source has lost since. */
static int xattr_remove_others(const char *of_src, ssize_t n, const struct xattr_file *dst,
			       struct xattr_blame *blame)
{
	char list[XATTR_LIST];
	*blame = (struct xattr_blame){.call = dst->by_path ? "listxattr" : "flistxattr"};
	const ssize_t m = xattr_list(dst, list);
	int r = m < 0 ? (int)m : 0;
	for (char *name = list; r >= 0 && name < list + m; name += strlen(name) + 1)
		if (xattr_kind(name) == XATTR_OWN && !xattr_lists(of_src, n, name))
			r = xattr_remove(dst, name, blame);
	return r < 0 ? r : 0;
}

int xattr_copy_all(const struct xattr_file *src, const char *list, ssize_t n,
		   const struct xattr_file *dst, bool reused, struct xattr_blame *first)
{
	int failure = reused ? xattr_remove_others(list, n, dst, first) : 0;
	for (const char *name = list; name < list + n; name += strlen(name) + 1) {
		const enum xattr_kind kind = xattr_kind(name);
		struct xattr_blame blame;
		if (kind != XATTR_OWN && kind != XATTR_GIVEN)
			continue;
		const int r = xattr_copy(src, dst, name, &blame);
		if (r == 0 || r == -ENODATA || failure < 0)
			continue;
		failure = r;
		*first = blame;
	}
	return failure;
}

bool xattr_lacks(int dir, const char *name, bool follow)
{
	char list[XATTR_USUAL];
	const ssize_t n = xattr_list_named(dir, name, follow, list, sizeof(list));
	if (n < 0)
		return errno == EOPNOTSUPP;
	for (const char *at = list; at < list + n; at += strlen(at) + 1)
		if (xattr_kind(at) != XATTR_LEFT)
			return false;
	return true;
}

uint64_t xattr_sum(int fd)
{
	char list[XATTR_LIST], value[XATTR_VALUE];
	const struct xattr_file f = {.fd = fd};
	const ssize_t n = xattr_list(&f, list);
	uint64_t sum = 0;
	for (const char *name = list; name < list + n; name += strlen(name) + 1) {
		if (xattr_kind(name) == XATTR_LEFT)
			continue;
		const ssize_t m = xattr_get(&f, name, value);
		sum = sum_add(sum_add(sum, name, strlen(name)), value, m > 0 ? (size_t)m : 0);
	}
	return sum;
}

/* ACLs as permissions. */

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
	_Alignas(8) char value[XATTR_VALUE];
	const struct posix_acl_xattr_header *acl = (const void *)value;
	const size_t head = sizeof(*acl);
	ssize_t n = getxattr(dir == AT_FDCWD ? "." : io_proc_path(dir).text, XATTR_DEFAULT, value,
			     sizeof(value));
	if (n < (ssize_t)head || le32toh(acl->a_version) != POSIX_ACL_XATTR_VERSION)
		return false;
	*mode = mode_of_acl((const void *)(value + head),
			    ((size_t)n - head) / sizeof(struct posix_acl_xattr_entry));
	return true;
}

mode_t acl_mode_without(const struct xattr_file *f, mode_t mode)
{
	_Alignas(8) char value[XATTR_VALUE];
	const struct posix_acl_xattr_header *acl = (const void *)value;
	const struct posix_acl_xattr_entry *entry = (const void *)(acl + 1);
	const ssize_t size = xattr_get(f, XATTR_ACL, value);
	if (size < (ssize_t)sizeof(*acl) || le32toh(acl->a_version) != POSIX_ACL_XATTR_VERSION)
		return mode;
	for (size_t n = ((size_t)size - sizeof(*acl)) / sizeof(*entry); n > 0; n--, entry++)
		if (le16toh(entry->e_tag) == ACL_GROUP_OBJ)
			mode &= ~(mode_t)070 | (le16toh(entry->e_perm) & 07) << 3;
	return mode;
}
