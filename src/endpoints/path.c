/* SPDX-License-Identifier: MIT
 * The one place that splits a path.
 */
#define _GNU_SOURCE
#include "operand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Notes where the last component of the path starts, and copies it without its slashes. */
int operand_split(struct operand *o)
{
	size_t end = strlen(o->path), start;
	o->slash = end > 0 && o->path[end - 1] == '/';
	while (end > 1 && o->path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && o->path[start - 1] != '/'; start--)
		;
	o->start = start;
	snprintf(o->place.name, sizeof(o->place.name), "%.*s", (int)(end - start), o->path + start);
	return start >= PATH_MAX || end - start > NAME_MAX ? -ENAMETOOLONG : 0;
}

bool operand_is_unnamed(const struct operand *o)
{
	const char *name = o->place.name;
	return !name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

size_t operand_directory(const struct operand *o, char directory[])
{
	memcpy(directory, o->path, o->start);
	directory[o->start] = '\0';
	return o->start;
}

int operand_open_directory(const struct operand *o)
{
	char directory[PATH_MAX];
	if (o->start >= sizeof(directory))
		return -ENAMETOOLONG;
	size_t n = operand_directory(o, directory);
	int fd = open(n ? directory : ".", O_PLACE | O_DIRECTORY);
	if (fd < 0)
		return -errno;
	return fd;
}
