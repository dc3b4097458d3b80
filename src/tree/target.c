/* SPDX-License-Identifier: MIT
 * The name that the copy of an operand gets.
 */
#define _GNU_SOURCE
#include "target.h"
#include "endpoints/error.h"
#include "rivals.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int target_open_parent(const char *path, char directory[PATH_MAX])
{
	size_t length;
	size_t n = (size_t)(place_last_component(path, &length) - path);
	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(directory, path, n);
	directory[n] = '\0';
	int fd = open(n ? directory : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

static int fail_parent(struct tree *t, const char *dst, int err)
{
	struct fcopy_error error;
	error_operation(&error, "open of its directory", "open", dst, err);
	report_operand(t, &error);
	return -err;
}

/* Is it LINK/, with a symlink to a directory? With its slash it is that directory: see
 * path_resolution(7). */
static bool is_followed_link(const char *dst)
{
	struct stat st;
	char link[PATH_MAX];
	size_t n = strlen(dst);
	if (n < 2 || n > sizeof(link) || dst[n - 1] != '/')
		return false;
	while (n > 1 && dst[n - 1] == '/')
		n--;
	memcpy(link, dst, n);
	link[n] = '\0';
	return lstat(link, &st) == 0 && S_ISLNK(st.st_mode) && stat(dst, &st) == 0 &&
	       S_ISDIR(st.st_mode);
}

int target_find(struct tree *t, struct target *target, const char *src, const char *dst)
{
	size_t length;
	const char *name = place_last_component(target->into ? src : dst, &length);
	bool unnamed = operand_is_unnamed(name, length) || (!target->into && is_followed_link(dst));
	if (unnamed || target->into) {
		int n = snprintf(target->directory, PATH_MAX, "%s", dst);
		target->parent = n < PATH_MAX ? open(dst, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
		if (n >= PATH_MAX || target->parent < 0)
			return tree_fail(t, "open", dst, n < PATH_MAX ? errno : ENAMETOOLONG);
	} else {
		target->parent = target_open_parent(dst, target->directory);
		if (target->parent < 0)
			return fail_parent(t, dst, -target->parent);
	}
	if (length > NAME_MAX) {
		close(target->parent);
		return tree_fail(t, "open", dst, ENAMETOOLONG);
	}
	snprintf(target->name, sizeof(target->name), "%.*s", unnamed ? 1 : (int)length,
		 unnamed ? "." : name);
	size_t used = strlen(target->directory);
	bool slash = used > 0 && target->directory[used - 1] != '/';
	int n = unnamed ? snprintf(target->path, PATH_MAX, "%s", dst)
			: snprintf(target->path, PATH_MAX, "%s%s%s", target->directory,
				   slash ? "/" : "", target->name);
	if (n < PATH_MAX)
		return 0;
	close(target->parent);
	return tree_fail(t, "open", dst, ENAMETOOLONG);
}

bool target_was_made(const struct tree *t, const struct target *target)
{
	struct stat st;
	return t->several && !t->options->copy.no_clobber &&
	       fstatat(target->parent, target->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       inodes_has(t->made, &st);
}

void target_note_made(struct tree *t, const struct target *target)
{
	struct stat st;
	if (t->several && t->committed &&
	    fstatat(target->parent, target->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    inodes_add(t->made, &st) < 0)
		tree_stop(t, ENOMEM);
}
