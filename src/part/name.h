/* SPDX-License-Identifier: MIT
 *
 * The name under which an unfinished copy is kept beside it.
 */
#ifndef PART_NAME_H
#define PART_NAME_H

#include "io/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PART_SUFFIX ".fcopy-part"
#define PART_DATA   "data"
#define PART_HASHED (16 + sizeof(PART_SUFFIX) - 1) /* the length of a name with a hash */

/* Could this name of an entry be that of a part? */
static inline bool part_is_name(const char *name)
{
	const size_t length = strlen(name), suffix = sizeof(PART_SUFFIX) - 1;
	return length > suffix && strcmp(name + length - suffix, PART_SUFFIX) == 0;
}

/* Does the storage of the directory `parent` take a name of so many bytes? eCryptfs takes 143,
 * others 170 or so, and some do not say how many: then they are asked for that name. parent -1:
 * unknown. */
static inline bool part_name_fits(int parent, const char *name, size_t length)
{
	struct statfs fs;
	struct stat st;
	if (length > NAME_MAX)
		return false;
	if (length <= PART_HASHED || parent == -1)
		return true;
	if (fstatfs(parent, &fs) == 0 && (size_t)fs.f_namelen >= PART_HASHED &&
	    length > (size_t)fs.f_namelen)
		return false;
	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENAMETOOLONG;
}

/* The name with a hash in place of NAME. */
static inline void part_hash_name(char part[NAME_MAX + 1], const char *name)
{
	snprintf(part, NAME_MAX + 1, "%016" PRIx64 PART_SUFFIX,
		 hash_add(HASH_START, name, strlen(name)));
}

/* Writes NAME.fcopy-part, or a hash in place of NAME if that is too long for the directory. */
static inline void part_make_name(char part[NAME_MAX + 1], int parent, const char *name)
{
	const int length = snprintf(part, NAME_MAX + 1, "%s" PART_SUFFIX, name);
	if (!part_name_fits(parent, part, (size_t)length))
		part_hash_name(part, name);
}

/* For messages: the path of the part beside dst, a path of a file or directory that has a name.
 * Returns false if it is too long; then part has only its first bytes. */
static inline bool part_make_path(char part[PATH_MAX], const char *dst)
{
	char name[NAME_MAX + 1];
	const char *slash = strrchr(dst, '/'), *last = slash ? slash + 1 : dst;
	const int length = (int)(last - dst);
	if (snprintf(part, PATH_MAX, "%.*s.", length, dst) >= PATH_MAX)
		return false;
	const int parent = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	part_make_name(name, parent, last);
	if (parent >= 0)
		close(parent);
	return snprintf(part, PATH_MAX, "%.*s%s", length, dst, name) < PATH_MAX;
}

#endif
