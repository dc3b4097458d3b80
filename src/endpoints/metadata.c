/* SPDX-License-Identifier: MIT
 * Owner, group, mode, times, ACLs and extended attributes of a file: those of the file that DST
 * replaces (metadata_keep_*), and those of SRC (metadata_copy_attribute).
 */
#define _GNU_SOURCE
#include "metadata.h"
#include "error.h"
#include "file.h"
#include "io/io.h"
#include "storage.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST_MAX     65536 /* XATTR_LIST_MAX */
#define VALUE_MAX    65536 /* XATTR_SIZE_MAX */
#define LOOKUP_TRIES 8     /* while another copy replaces the name */

/* The order matters: chown clears setuid and capabilities, and setting an ACL changes the mode. */
const enum fcopy_attribute metadata_order[METADATA_ATTRIBUTES] = {
    FCOPY_ATTR_TIMESTAMPS, FCOPY_ATTR_OWNERSHIP, FCOPY_ATTR_XATTR, FCOPY_ATTR_MODE};

/* The file has no such attribute, or its file system has none. */
static bool is_absent(int err)
{
	return err == ENODATA || err == EOPNOTSUPP;
}

/* Asks first, because fremovexattr(2) of an ACL that is not there starts a transaction of the
 * journal on ext4 (ext4_set_acl() in fs/ext4/acl.c). */
static int remove_attribute(int fd, const char *name)
{
	if (fgetxattr(fd, name, NULL, 0) < 0 && is_absent(errno))
		return 0;
	return fremovexattr(fd, name) < 0 && !is_absent(errno) ? -errno : 0;
}

/* Without privilege the owner cannot be set, but a group that the user belongs to can. Returns 0,
 * or -errno if the owner or the group was not set. */
static int set_owner(int fd, uid_t uid, gid_t gid)
{
	struct stat st;
	if (fchown(fd, uid, gid) == 0)
		return 0;
	int err = errno;
	/* A file system without owners may refuse even the owner that the file has. */
	if (fstat(fd, &st) == 0 && st.st_uid == uid && st.st_gid == gid)
		return 0;
	if (err == EPERM)
		(void)!fchown(fd, (uid_t)-1, gid);
	return -err;
}

/* Without /proc only an open file can be asked, which needs the permission to read it. Returns
 * ENOENT if the name is not that of the regular file that was found. */
static ssize_t get_opened_attribute(const struct place *p, const char *name, char *value,
				    size_t size)
{
	struct stat st;
	ssize_t n = -1;
	int err = ENOENT;
	int fd = openat(p->dir, p->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		errno = ENOENT;
		return -1;
	}
	if (fstat(fd, &st) == 0 && st.st_dev == p->st.st_dev && st.st_ino == p->st.st_ino) {
		n = fgetxattr(fd, name, value, size);
		err = errno;
	}
	close(fd);
	errno = err;
	return n;
}

/* A file without a name is asked by its descriptor. On a FUSE file system the name can be missing
 * for an instant while another copy renames a file over it: rename(2) is not atomic for a
 * concurrent lookup there. */
static ssize_t get_place_attribute(const struct place *p, const char *name, char *value,
				   size_t size)
{
	char path[sizeof("/proc/self/fd/") + 12 + NAME_MAX];
	if (p->name[0] == '\0')
		return fgetxattr(p->target, name, value, size);
	if (p->dir == AT_FDCWD)
		snprintf(path, sizeof(path), "%s", p->name);
	else
		snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", p->dir, p->name);
	ssize_t n = -1;
	errno = ENOENT;
	for (int tries = 0; n < 0 && errno == ENOENT && tries < LOOKUP_TRIES; tries++)
		n = lgetxattr(path, name, value, size);
	if (n < 0 && errno == ENOENT && S_ISREG(p->st.st_mode) && access("/proc/self/fd", F_OK) < 0)
		return get_opened_attribute(p, name, value, size);
	return n;
}

/* Gives fd the attribute that the file at the place has. If that has none, removes what a default
 * ACL or the security module gave to fd. Some storage answers with EIO or another errno where it
 * has no attributes: one that cannot be read counts as none. Asks for the size first: most files
 * lack the attribute, and the kernel allocates and clears a buffer of the requested size. */
static int keep_attribute(int fd, const struct place *old, const char *name)
{
	char value[VALUE_MAX];
	ssize_t n = get_place_attribute(old, name, NULL, 0);
	if (n > 0)
		n = get_place_attribute(old, name, value, sizeof(value));
	if (n >= 0)
		return fsetxattr(fd, name, value, (size_t)n, 0) < 0 ? -errno : 0;
	if (errno == ENOENT || errno == ENOMEM)
		return -errno;
	const bool absent = is_absent(errno);
	int r = remove_attribute(fd, name);
	return absent ? r : 0;
}

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

bool metadata_default_mode(int dir, mode_t *mode)
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

mode_t metadata_group_mode(const void *value, size_t size, mode_t mode)
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

int metadata_keep_owner(const struct endpoint *e, const struct place *old, bool force,
			struct fcopy_error *error)
{
	struct stat st;
	if (fstat(e->fd, &st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (st.st_uid == old->st.st_uid && st.st_gid == old->st.st_gid)
		return 0;
	int r = set_owner(e->fd, old->st.st_uid, old->st.st_gid);
	if (r == 0 || force)
		return 0;
	return error_refuse(error, e->path, -r, "its owner or group cannot be kept",
			    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}

int metadata_keep_acl(const struct endpoint *e, const struct place *old, bool force,
		      struct fcopy_error *error)
{
	int r = keep_attribute(e->fd, old, "system.posix_acl_access");
	if (r == 0)
		r = keep_attribute(e->fd, old, "security.selinux");
	if (r == 0 || force)
		return 0;
	if (r == -ENOENT && access("/proc/self/fd", F_OK) == 0)
		return error_refuse(error, e->path, ENOENT, "was removed during the copy",
				    FCOPY_ADVICE_NONE);
	if (r == -ENOENT)
		return error_proc(error, "lgetxattr", e->path, -r);
	return error_refuse(error, e->path, -r, "its ACL or security label cannot be kept",
			    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}

/* The call that failed, and whether it was on the source; or why fcopy refused. */
struct blame {
	const char *call;
	bool src;
	const char *reason;
};

/* An attribute user.* needs write permission, which a read-only file denies to its owner, too:
 * gives it for a moment. */
static int set_on_read_only(int fd, const char *name, const char *value, size_t size)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || st.st_mode & 0200 || fchmod(fd, (st.st_mode & 07777) | 0200) < 0)
		return -EACCES;
	int r = fsetxattr(fd, name, value, size, 0) < 0 ? -errno : 0;
	return fchmod(fd, st.st_mode & 07777) < 0 && r == 0 ? -errno : r;
}

/* Returns 0; -ENODATA if the source has no such attribute; or -errno. */
static int copy_attribute(int src, int dst, const char *name, struct blame *blame)
{
	char value[VALUE_MAX];
	*blame = (struct blame){.call = "fgetxattr", .src = true};
	ssize_t n = fgetxattr(src, name, value, sizeof(value));
	if (n < 0)
		return is_absent(errno) ? -ENODATA : -errno;
	*blame = (struct blame){.call = "fsetxattr"};
	if (fsetxattr(dst, name, value, (size_t)n, 0) == 0)
		return 0;
	return errno == EACCES ? set_on_read_only(dst, name, value, (size_t)n) : -errno;
}

/* ACLs belong to the mode, and the directory determines the security label. */
static bool is_copied_alone(const char *name)
{
	return strncmp(name, "system.", 7) != 0 && strcmp(name, "security.selinux") != 0;
}

/* Removes what an earlier attempt copied and the source has lost since. */
static int remove_attributes(int src, int dst, struct blame *blame)
{
	char list[LIST_MAX];
	*blame = (struct blame){.call = "flistxattr"};
	ssize_t n = flistxattr(dst, list, sizeof(list));
	int r = n < 0 && errno != EOPNOTSUPP ? -errno : 0;
	for (char *name = list; r == 0 && name < list + n; name += strlen(name) + 1) {
		bool copied = strncmp(name, "user.", 5) == 0 || strncmp(name, "trusted.", 8) == 0 ||
			      strcmp(name, "security.capability") == 0;
		if (!copied || fgetxattr(src, name, NULL, 0) >= 0 || !is_absent(errno))
			continue;
		*blame = (struct blame){.call = "fremovexattr"};
		r = remove_attribute(dst, name);
	}
	return r;
}

/* The first failure does not end the loop. */
static int copy_attributes(const struct metadata_pair *p, struct blame *first)
{
	char list[LIST_MAX];
	*first = (struct blame){.call = "flistxattr", .src = true};
	ssize_t n = flistxattr(p->src, list, sizeof(list));
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	int failure = p->reused ? remove_attributes(p->src, p->dst, first) : 0;
	for (char *name = list; name < list + n; name += strlen(name) + 1) {
		struct blame blame;
		int r = is_copied_alone(name) ? copy_attribute(p->src, p->dst, name, &blame) : 0;
		if (r == 0 || r == -ENODATA || failure < 0)
			continue;
		failure = r;
		*first = blame;
	}
	return failure;
}

/* Removes an ACL that the source lacks: one of the directory, or DST's old one, could admit users
 * whom the source refuses. */
static int copy_acl(int src, int dst, const char *name, struct blame *blame)
{
	int r = copy_attribute(src, dst, name, blame);
	if (r != -ENODATA)
		return r;
	*blame = (struct blame){.call = "fremovexattr"};
	return remove_attribute(dst, name);
}

/* The copy has no ACL. Its group must not get what the mask allows others. */
static mode_t mode_without_acl(int src, mode_t mode)
{
	_Alignas(8) char value[VALUE_MAX];
	ssize_t n = fgetxattr(src, "system.posix_acl_access", value, sizeof(value));
	return n > 0 ? metadata_group_mode(value, (size_t)n, mode) : mode;
}

static int copy_mode(struct metadata_pair *pair, struct blame *blame)
{
	const int src = pair->src, dst = pair->dst;
	const struct stat *st = pair->st;
	struct stat now;
	*blame = (struct blame){.call = "fstat"};
	if (fstat(dst, &now) < 0)
		return -errno;
	pair->now = now;
	bool owned = now.st_uid == st->st_uid && now.st_gid == st->st_gid;
	int r = copy_acl(src, dst, "system.posix_acl_access", blame);
	const mode_t mode = r < 0 && !blame->src ? mode_without_acl(src, st->st_mode) : st->st_mode;
	if (r == 0 && S_ISDIR(st->st_mode))
		r = copy_acl(src, dst, "system.posix_acl_default", blame);
	if (fchmod(dst, mode & (owned ? 07777 : 01777)) < 0) {
		*blame = (struct blame){.call = "fchmod"};
		return -errno;
	}
	if (r < 0 || owned || !(st->st_mode & 06000))
		return r;
	blame->reason = "its setuid and setgid bits are not copied, because its owner or group "
			"differs";
	return -EPERM;
}

static int copy_attribute_of(enum fcopy_attribute which, struct metadata_pair *pair,
			     struct blame *blame)
{
	const struct stat *st = pair->st;
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	switch (which) {
	case FCOPY_ATTR_TIMESTAMPS:
		*blame = (struct blame){.call = "futimens"};
		return futimens(pair->dst, times) < 0 ? -errno : 0;
	case FCOPY_ATTR_OWNERSHIP:
		*blame = (struct blame){.call = "fchown"};
		return set_owner(pair->dst, st->st_uid, st->st_gid);
	case FCOPY_ATTR_XATTR: return copy_attributes(pair, blame);
	case FCOPY_ATTR_MODE: return copy_mode(pair, blame);
	}
	return 0;
}

int metadata_copy_attribute(enum fcopy_attribute which, struct metadata_pair *pair,
			    struct fcopy_error *e)
{
	struct blame blame = {.call = NULL};
	int r = copy_attribute_of(which, pair, &blame);
	if (r == 0)
		return 0;
	if (blame.reason)
		return error_refuse(e, pair->dst_path, -r, blame.reason, FCOPY_ADVICE_NONE);
	return error_call(e, blame.call, blame.src ? pair->src_path : pair->dst_path, -r);
}

bool metadata_is_reused(const struct endpoint *dst)
{
	return file_of(dst)->keep_part;
}

bool metadata_read_back(unsigned set, struct metadata_pair *pair, struct storage *storage,
			unsigned *lost)
{
	struct stat now;
	*lost = 0;
	if (!(set & (FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_MODE)) ||
	    (pair->now.st_nlink == 0 && fstat(pair->dst, &pair->now) < 0))
		return true;
	/* Many file systems store no fractions of seconds, or round them. */
	if (set & FCOPY_ATTR_TIMESTAMPS && pair->now.st_mtim.tv_sec != pair->st->st_mtim.tv_sec)
		*lost |= FCOPY_ATTR_TIMESTAMPS;
	if (storage_keeps_attributes(storage, pair->dst, &pair->now))
		return true;
	if (set & FCOPY_ATTR_MODE && fstat(pair->dst, &now) == 0 &&
	    (now.st_mode ^ pair->st->st_mode) & 0777)
		*lost |= FCOPY_ATTR_MODE;
	return false;
}

int metadata_fail_stored(enum fcopy_attribute which, const char *path, struct fcopy_error *e)
{
	const bool time = which == FCOPY_ATTR_TIMESTAMPS;
	error_call(e, time ? "futimens" : "fchmod", path, EOPNOTSUPP);
	e->reason = time ? "another modification time was stored" : "another mode was stored";
	return -EOPNOTSUPP;
}
