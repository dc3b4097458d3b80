/* SPDX-License-Identifier: MIT
 * Owner, group, mode, times, ACLs and extended attributes of a file: those of SRC.
 */
#define _GNU_SOURCE
#include "metadata.h"
#include "acl.h"
#include "error.h"
#include "file.h"
#include "storage.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST_MAX  65536 /* XATTR_LIST_MAX */
#define VALUE_MAX 65536 /* XATTR_SIZE_MAX */

/* The order matters: chown clears setuid and capabilities, and setting an ACL changes the mode. */
const enum fcopy_attribute metadata_order[METADATA_ATTRIBUTES] = {
    FCOPY_ATTR_TIMESTAMPS, FCOPY_ATTR_OWNERSHIP, FCOPY_ATTR_XATTR, FCOPY_ATTR_MODE};

bool metadata_is_absent(int err)
{
	return err == ENODATA || err == EOPNOTSUPP;
}

/* Asks first, because fremovexattr(2) of an ACL that is not there starts a transaction of the
 * journal on ext4 (ext4_set_acl() in fs/ext4/acl.c). */
int metadata_remove(int fd, const char *name)
{
	if (fgetxattr(fd, name, NULL, 0) < 0 && metadata_is_absent(errno))
		return 0;
	return fremovexattr(fd, name) < 0 && !metadata_is_absent(errno) ? -errno : 0;
}

int metadata_set_owner(int fd, uid_t uid, gid_t gid)
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
		return metadata_is_absent(errno) ? -ENODATA : -errno;
	*blame = (struct blame){.call = "fsetxattr"};
	if (fsetxattr(dst, name, value, (size_t)n, 0) == 0)
		return 0;
	return errno == EACCES ? set_on_read_only(dst, name, value, (size_t)n) : -errno;
}

/* Views of something else: XFS lists each ACL a second time, as trusted.SGI_ACL_FILE, and a copy of
 * that on another file system would bring a revoked ACL back. The kernel writes security.evm, AFS
 * its own, and an indexer user.Beagle. Which those are says /etc/xattr.conf. */
static bool is_derived(const char *name)
{
	static const char *const kinds[] = {"trusted.SGI_", "security.evm", "afs.", "xfsroot.",
					    "user.Beagle."};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
			return true;
	return false;
}

/* ACLs belong to the mode, and the directory determines the security label. */
static bool is_copied_alone(const char *name)
{
	return strncmp(name, "system.", 7) != 0 && strcmp(name, "security.selinux") != 0 &&
	       !is_derived(name);
}

bool metadata_is_removable(const char *name)
{
	return (strncmp(name, "user.", 5) == 0 || strncmp(name, "trusted.", 8) == 0 ||
		strcmp(name, "security.capability") == 0) &&
	       !is_derived(name);
}

/* Removes what an earlier attempt copied and the source has lost since. */
static int remove_attributes(int src, int dst, struct blame *blame)
{
	char list[LIST_MAX];
	*blame = (struct blame){.call = "flistxattr"};
	ssize_t n = flistxattr(dst, list, sizeof(list));
	int r = n < 0 && errno != EOPNOTSUPP ? -errno : 0;
	for (char *name = list; r == 0 && name < list + n; name += strlen(name) + 1) {
		if (!metadata_is_removable(name) || fgetxattr(src, name, NULL, 0) >= 0 ||
		    !metadata_is_absent(errno))
			continue;
		*blame = (struct blame){.call = "fremovexattr"};
		r = metadata_remove(dst, name);
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
	return metadata_remove(dst, name);
}

/* The copy has no ACL. Its group must not get what the mask allows others. */
static mode_t mode_without_acl(int src, mode_t mode)
{
	_Alignas(8) char value[VALUE_MAX];
	ssize_t n = fgetxattr(src, "system.posix_acl_access", value, sizeof(value));
	return n > 0 ? acl_group_mode(value, (size_t)n, mode) : mode;
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
		return metadata_set_owner(pair->dst, st->st_uid, st->st_gid);
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
	/* Many file systems store no fractions of seconds, or only even ones. */
	if (set & FCOPY_ATTR_TIMESTAMPS && pair->now.st_mtim.tv_sec != pair->st->st_mtim.tv_sec) {
		const struct storage_times t = storage_times(storage, pair->dst, pair->now.st_dev);
		if (pair->required & FCOPY_ATTR_TIMESTAMPS ||
		    !storage_time_is_equal(&t, &pair->st->st_mtim, &pair->now))
			*lost |= FCOPY_ATTR_TIMESTAMPS;
	}
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
	e->reason = time ? "a different modification time was stored"
			 : "a different mode was stored";
	return -EOPNOTSUPP;
}
