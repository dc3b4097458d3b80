/* SPDX-License-Identifier: MIT
 * Are the attributes that a copy would get from its source equal to those that it has?
 */
#define _GNU_SOURCE
#include "equal.h"
#include "acl.h"
#include "endpoint.h"
#include "io/io.h"
#include "io/sum.h"
#include "metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST_MAX  65536 /* XATTR_LIST_MAX */
#define VALUE_MAX 65536 /* XATTR_SIZE_MAX */

/* May an ordinary user give a file to this group? */
static bool equal_is_member(gid_t gid)
{
	gid_t group[NGROUPS_MAX];
	int n = getgroups(NGROUPS_MAX, group);
	if (gid == getegid())
		return true;
	while (n > 0 && group[n - 1] != gid)
		n--;
	return n > 0;
}

static bool equal_stores(struct equal *q, int dir, enum storage_ability ability,
			 enum fcopy_attribute which)
{
	if (q->dry_run || q->required & which || storage_stores(q->storage, dir, ability))
		return true;
	__atomic_or_fetch(&q->left_out, which, __ATOMIC_RELAXED);
	return false;
}

/* A user cannot give files to other users, and need not try each time. */
static bool equal_may_give(struct equal *q, const struct stat *s, const struct stat *d)
{
	if (s->st_gid != d->st_gid && equal_is_member(s->st_gid))
		return true;
	__atomic_or_fetch(&q->left_out, FCOPY_ATTR_OWNERSHIP, __ATOMIC_RELAXED);
	return false;
}

unsigned equal_preserves(struct equal *q, int dir, const struct stat *s, const struct stat *d,
			 unsigned preserve)
{
	const unsigned owner = FCOPY_ATTR_OWNERSHIP, mode = FCOPY_ATTR_MODE;
	const bool owned = s->st_uid == d->st_uid && s->st_gid == d->st_gid;
	if (preserve & owner && !owned &&
	    (q->root ? !equal_stores(q, dir, STORAGE_CHANGES_OWNERS, FCOPY_ATTR_OWNERSHIP)
		     : !equal_may_give(q, s, d)))
		preserve &= ~owner;
	if (preserve & mode && !S_ISLNK(s->st_mode) && (s->st_mode ^ d->st_mode) & 0777 &&
	    !equal_stores(q, dir, STORAGE_CHANGES_MODES, FCOPY_ATTR_MODE))
		preserve &= ~mode;
	return preserve;
}

/* What a copy gets, as far as this user can set it. */
static bool equal_compares(const struct equal *q, const char *name)
{
	return metadata_is_removable(name) && (q->root || strncmp(name, "user.", 5) == 0);
}

/* An attribute of a kind that DST does not store is as equal as it can be. */
static bool equal_attribute(struct equal *q, const char *a, const char *b, const char *name)
{
	ssize_t n = getxattr(a, name, NULL, 0), m = getxattr(b, name, NULL, 0);
	if (n >= 0 && m < 0 && errno == EOPNOTSUPP && !(q->required & FCOPY_ATTR_XATTR)) {
		__atomic_or_fetch(&q->left_out, FCOPY_ATTR_XATTR, __ATOMIC_RELAXED);
		return true;
	}
	if (n != m)
		return false;
	if (n <= 0)
		return true;
	char *value = malloc((size_t)2 * VALUE_MAX);
	bool equal = value && (n = getxattr(a, name, value, VALUE_MAX)) > 0 &&
		     getxattr(b, name, value + VALUE_MAX, VALUE_MAX) == n &&
		     memcmp(value, value + VALUE_MAX, (size_t)n) == 0;
	free(value);
	return equal;
}

#ifndef SYS_listxattrat /* Linux 6.13; the headers may be older */
#define SYS_listxattrat 465
#endif

static bool equal_lacks_attributes(int dir, const char *name, int flags)
{
	char list[1024];
	long n = syscall(SYS_listxattrat, dir, name, flags, list, sizeof(list));
	if (n < 0)
		return errno == EOPNOTSUPP;
	for (const char *at = list; at < list + n; at += strlen(at) + 1)
		if (metadata_is_removable(at) || strncmp(at, "system.posix_acl_", 17) == 0)
			return false;
	return true;
}

bool metadata_lacks_attributes(int dir, const char *name, bool follow)
{
	return equal_lacks_attributes(dir, name, follow ? 0 : AT_SYMLINK_NOFOLLOW);
}

/* The names that one of the files has. */
static bool equal_listed(struct equal *q, const char *listed, const char *a, const char *b)
{
	char list[LIST_MAX];
	ssize_t n = listxattr(listed, list, sizeof(list));
	for (char *name = list; name < list + n; name += strlen(name) + 1)
		if (equal_compares(q, name) && !equal_attribute(q, a, b, name))
			return false;
	return true;
}

uint64_t metadata_sum(int fd)
{
	char list[LIST_MAX], value[VALUE_MAX];
	const struct io_path path = io_proc_path(fd);
	const ssize_t n = listxattr(path.text, list, sizeof(list));
	uint64_t sum = 0;
	for (const char *name = list; name < list + n; name += strlen(name) + 1) {
		if (!metadata_is_removable(name) && strncmp(name, "system.posix_acl_", 17) != 0)
			continue;
		const ssize_t m = getxattr(path.text, name, value, sizeof(value));
		sum = sum_add(sum_add(sum, name, strlen(name)), value, m > 0 ? (size_t)m : 0);
	}
	return sum;
}

/* Most times are equal: then nothing is asked. */
bool equal_times(const struct equal *q, int dst, const struct stat *s, const struct stat *d)
{
	const int64_t ns = storage_time_difference(&s->st_mtim, &d->st_mtim);
	if (ns == 0 || q->window_ns != 0)
		return ns == 0 || ns <= q->window_ns;
	const struct storage_times times = storage_times(q->storage, dst, d->st_dev);
	return storage_time_is_equal(&times, &s->st_mtim, d);
}

bool metadata_stat_is_equal(const struct equal *q, const struct stat *s, int dst,
			    const struct stat *d, unsigned preserve)
{
	const bool owned = s->st_uid == d->st_uid && s->st_gid == d->st_gid;
	/* Without the owner, setuid and setgid are not copied. */
	const mode_t bits = owned ? 07777 : 01777;
	if (preserve & FCOPY_ATTR_OWNERSHIP && !owned)
		return false;
	if (preserve & FCOPY_ATTR_TIMESTAMPS && !equal_times(q, dst, s, d))
		return false;
	return !(preserve & FCOPY_ATTR_MODE) || S_ISLNK(s->st_mode) ||
	       !((s->st_mode ^ d->st_mode) & bits);
}

/* Where DST stores no ACLs, the copy's group has no more than the ACL of the source gives it. */
static mode_t equal_mode_without_acl(const char *path, mode_t mode)
{
	_Alignas(8) char value[VALUE_MAX];
	ssize_t n = getxattr(path, "system.posix_acl_access", value, sizeof(value));
	return n > 0 ? acl_group_mode(value, (size_t)n, mode) : mode;
}

bool metadata_is_equal(struct equal *q, int src, const struct stat *s, int dst,
		       const struct stat *d, unsigned preserve)
{
	/* Most have none. A path below /proc takes several times as long. */
	if (equal_lacks_attributes(src, "", AT_EMPTY_PATH) &&
	    equal_lacks_attributes(dst, "", AT_EMPTY_PATH))
		return metadata_stat_is_equal(q, s, dst, d, preserve);
	const struct io_path a = io_proc_path(src), b = io_proc_path(dst);
	const bool link = S_ISLNK(s->st_mode);
	struct stat wanted = *s;
	if (preserve & FCOPY_ATTR_MODE && !link && (s->st_mode ^ d->st_mode) & 0777 &&
	    getxattr(b.text, "system.posix_acl_access", NULL, 0) < 0 && errno == EOPNOTSUPP)
		wanted.st_mode = equal_mode_without_acl(a.text, s->st_mode);
	if (!metadata_stat_is_equal(q, &wanted, dst, d, preserve))
		return false;
	if (preserve & FCOPY_ATTR_MODE && !link &&
	    !equal_attribute(q, a.text, b.text, "system.posix_acl_access"))
		return false;
	if (preserve & FCOPY_ATTR_MODE && S_ISDIR(s->st_mode) &&
	    !equal_attribute(q, a.text, b.text, "system.posix_acl_default"))
		return false;
	return !(preserve & FCOPY_ATTR_XATTR) || link ||
	       (equal_listed(q, a.text, a.text, b.text) && equal_listed(q, b.text, a.text, b.text));
}
