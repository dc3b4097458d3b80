/* SPDX-License-Identifier: MIT
 *
 * The name under which an unfinished copy is kept beside it.
 */
#ifndef PART_NAME_H
#define PART_NAME_H

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PART_SUFFIX ".fcopy-part"
#define PART_DATA   "data"

/* Writes NAME.fcopy-part, or a hash (FNV-1a of 64 bits) in place of NAME if that is too long. */
static inline void part_make_name(char part[NAME_MAX + 1], const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	if (snprintf(part, NAME_MAX + 1, "%s" PART_SUFFIX, name) <= NAME_MAX)
		return;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	snprintf(part, NAME_MAX + 1, "%016" PRIx64 PART_SUFFIX, hash);
}

/* For messages: the path of the part beside dst, a path of a file or directory that has a name.
 * Returns false if it is too long. */
static inline bool part_make_path(char part[PATH_MAX], const char *dst)
{
	char name[NAME_MAX + 1];
	const char *slash = strrchr(dst, '/'), *last = slash ? slash + 1 : dst;
	part_make_name(name, last);
	return snprintf(part, PATH_MAX, "%.*s%s", (int)(last - dst), dst, name) < PATH_MAX;
}

#endif
