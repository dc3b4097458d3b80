/* SPDX-License-Identifier: MIT
 * Implements output.h.
 */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_find(struct output *o, const char *path)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	*o = (struct output){.dir = -1, .name = slash ? slash + 1 : path};
	int n = slash ? snprintf(directory, sizeof(directory), "%.*s", (int)(o->name - path), path)
		      : snprintf(directory, sizeof(directory), ".");
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	o->dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return o->dir < 0 ? -errno : 0;
}

/* Opens what the symlink says: the owner of the directory can exchange its name. */
static int output_follow(struct output *o, int flags)
{
	char text[PATH_MAX];
	struct stat st;
	int link = openat(o->dir, o->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = link < 0 || fstat(link, &st) < 0 ? -1
						     : readlinkat(link, "", text, sizeof(text) - 1);
	const int err = errno;
	if (link >= 0)
		close(link);
	if (n < 0)
		return -err;
	text[n] = '\0';
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		o->reason = "is a symlink of another user";
		return -EPERM;
	}
	int fd = openat(o->dir, text, flags, 0666);
	return fd < 0 ? -errno : fd;
}

static bool output_is_shared(const struct output *o)
{
	struct stat st;
	return fstat(o->dir, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0) ||
	       (st.st_mode & 022);
}

int output_open(struct output *o, int flags)
{
	const bool shared = output_is_shared(o);
	o->reason = NULL;
	/* Nobody else can exchange a name in /dev or /proc/self/fd. */
	int fd = openat(o->dir, o->name, flags | (shared ? O_NOFOLLOW : 0), 0666);
	if (fd < 0 && shared && errno == ELOOP)
		return output_follow(o, flags);
	return fd < 0 ? -errno : fd;
}

void output_remove(const struct output *o, int fd)
{
	struct stat st, named;
	if (fstat(fd, &st) == 0 && fstatat(o->dir, o->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    named.st_dev == st.st_dev && named.st_ino == st.st_ino)
		unlinkat(o->dir, o->name, 0);
}

void output_close(struct output *o)
{
	if (o->dir >= 0)
		close(o->dir);
	o->dir = -1;
}
