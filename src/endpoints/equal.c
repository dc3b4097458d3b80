/* SPDX-License-Identifier: MIT
 * Are the attributes that a copy would get from its source equal to those that it has?
 */
#define _GNU_SOURCE
#include "equal.h"
#include "endpoint.h"
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIST_MAX  65536 /* XATTR_LIST_MAX */
#define VALUE_MAX 65536 /* XATTR_SIZE_MAX */

/* Those that metadata.c copies and removes. */
static bool equal_compares(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strncmp(name, "trusted.", 8) == 0 ||
	       strcmp(name, "security.capability") == 0;
}

static bool equal_attribute(const char *a, const char *b, const char *name)
{
	ssize_t n = getxattr(a, name, NULL, 0), m = getxattr(b, name, NULL, 0);
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

bool metadata_lacks_attributes(int dir, const char *name, bool follow)
{
	char list[1024];
	const int flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
	long n = syscall(SYS_listxattrat, dir, name, flags, list, sizeof(list));
	if (n < 0)
		return errno == EOPNOTSUPP;
	for (const char *at = list; at < list + n; at += strlen(at) + 1)
		if (equal_compares(at) || strncmp(at, "system.posix_acl_", 17) == 0)
			return false;
	return true;
}

/* The names that one of the files has. */
static bool equal_listed(const char *listed, const char *a, const char *b)
{
	char list[LIST_MAX];
	ssize_t n = listxattr(listed, list, sizeof(list));
	for (char *name = list; name < list + n; name += strlen(name) + 1)
		if (equal_compares(name) && !equal_attribute(a, b, name))
			return false;
	return true;
}

int64_t metadata_time_difference(const struct timespec *a, const struct timespec *b)
{
	const int64_t s = a->tv_sec - b->tv_sec;
	if (s > INT64_MAX / 2000000000 || s < -(INT64_MAX / 2000000000))
		return INT64_MAX;
	const int64_t ns = s * 1000000000 + (a->tv_nsec - b->tv_nsec);
	return ns < 0 ? -ns : ns;
}

bool metadata_stat_is_equal(const struct stat *s, const struct stat *d, unsigned preserve,
			    int64_t window_ns)
{
	const bool owned = s->st_uid == d->st_uid && s->st_gid == d->st_gid;
	/* Without the owner, setuid and setgid are not copied. */
	const mode_t bits = owned ? 07777 : 01777;
	if (preserve & FCOPY_ATTR_OWNERSHIP && !owned)
		return false;
	if (preserve & FCOPY_ATTR_TIMESTAMPS &&
	    metadata_time_difference(&s->st_mtim, &d->st_mtim) > window_ns)
		return false;
	return !(preserve & FCOPY_ATTR_MODE) || S_ISLNK(s->st_mode) ||
	       !((s->st_mode ^ d->st_mode) & bits);
}

bool metadata_is_equal(int src, const struct stat *s, int dst, const struct stat *d,
		       unsigned preserve, int64_t window_ns)
{
	const struct io_path a = io_proc_path(src), b = io_proc_path(dst);
	const bool link = S_ISLNK(s->st_mode);
	if (!metadata_stat_is_equal(s, d, preserve, window_ns))
		return false;
	if (preserve & FCOPY_ATTR_MODE && !link &&
	    !equal_attribute(a.text, b.text, "system.posix_acl_access"))
		return false;
	return !(preserve & FCOPY_ATTR_XATTR) || link ||
	       (equal_listed(a.text, a.text, b.text) && equal_listed(b.text, a.text, b.text));
}
