/* SPDX-License-Identifier: MIT
 * Names that other users cannot guess, and the rename that replaces nothing.
 */
#define _GNU_SOURCE
#include "io/libc.h"
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PREFIX ".fcopy-"

static const char letters[] = "0123456789abcdefghijklmnopqrstuv";

void temporary_spell(const unsigned char random[TEMPORARY_RANDOM], char name[TEMPORARY_SIZE])
{
	char *end = stpcpy(name, PREFIX);
	for (size_t i = 0; i < TEMPORARY_RANDOM; i++)
		*end++ = letters[random[i] % 32];
	*end = '\0';
}

int temporary_draw(char name[TEMPORARY_SIZE])
{
	unsigned char random[TEMPORARY_RANDOM];
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	temporary_spell(random, name);
	return 0;
}

bool temporary_is_drawn(const char *name)
{
	size_t prefix = sizeof(PREFIX) - 1, length = strlen(name);
	return length == TEMPORARY_SIZE - 1 && strncmp(name, PREFIX, prefix) == 0 &&
	       strspn(name + prefix, letters) == length - prefix;
}

/* Any errno but ENOENT: it may exist. */
static bool private_exists(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* NFS and others lack the flag: there rename(2) replaces no directory that has entries, and a link
 * is a name that replaces nothing. Without links, too, another process can create the name between
 * the check and the rename. */
static int private_rename_unflagged(int from, const char *name, int to, const char *as,
				    struct failure *fail)
{
	struct stat st;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		if (renameat(from, name, to, as) == 0)
			return 0;
		return errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
	}
	if (linkat(from, name, to, as, 0) < 0) {
		if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK)
			return private_exists(to, as)             ? -EEXIST
			       : renameat(from, name, to, as) < 0 ? -errno
								  : 0;
		return fail_at(fail, "linkat");
	}
	if (unlinkat(from, name, 0) == 0)
		return 0;
	const int r = fail_at(fail, "unlinkat");
	unlinkat(to, as, 0);
	return r;
}

int private_rename_as(int from, const char *name, int to, const char *as, struct failure *fail)
{
	if (renameat2(from, name, to, as, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) /* the file system lacks the flag, or the kernel */
		return -errno;
	return private_rename_unflagged(from, name, to, as, fail);
}

int private_rename(int from, const char *name, int to, const char *as)
{
	return private_rename_as(from, name, to, as, NULL);
}
