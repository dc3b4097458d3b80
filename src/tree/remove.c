/* SPDX-License-Identifier: MIT
 * Removes the tree of a copy that failed, with two open directories whatever its depth: what is
 * below the first level is moved up to it.
 */
#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct removal {
	int root;
	unsigned long moved; /* names directories that were moved up */
	int failure;         /* the last errno */
	bool progress;       /* something was removed since the start of this pass */
};

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void remove_moved_up(struct removal *r, int dir, const char *name)
{
	char up[32];
	do
		snprintf(up, sizeof(up), ".%lu", ++r->moved);
	while (renameat2(dir, name, r->root, up, RENAME_NOREPLACE) < 0 && errno == EEXIST);
}

/* Directories of the source may have been read-only. The tree is still ours alone. */
static int remove_open(int dir, const char *name)
{
	fchmodat(dir, name, 0700, 0);
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_entries(struct removal *r, int dir);

static void remove_one(struct removal *r, int dir, const char *name)
{
	bool gone = unlinkat(dir, name, 0) == 0;
	if (!gone && (errno == EISDIR || errno == EPERM)) {
		gone = unlinkat(dir, name, AT_REMOVEDIR) == 0;
		if (!gone && (errno == ENOTEMPTY || errno == EEXIST || errno == EACCES)) {
			int fd = dir == r->root ? remove_open(dir, name) : -1;
			if (fd >= 0) {
				remove_entries(r, fd);
				close(fd);
				gone = unlinkat(dir, name, AT_REMOVEDIR) == 0;
			} else if (dir != r->root) {
				fchmodat(dir, name, 0700, 0); /* its .. changes */
				remove_moved_up(r, dir, name);
				gone = true;
			}
		}
	}
	r->progress |= gone;
	if (!gone)
		r->failure = errno;
}

static void remove_entries(struct removal *r, int dir)
{
	_Alignas(8) char names[8192];
	ssize_t n;
	while ((n = getdents64(dir, names, sizeof(names))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(names + at);
			if (!is_dot(d->d_name))
				remove_one(r, dir, d->d_name);
			at += d->d_reclen;
		}
}

int remove_tree(int root, int dir, const char *name)
{
	struct removal r = {.root = root};
	int result = 0;
	fchmod(root, 0700);
	do {
		r.progress = false;
		lseek(root, 0, SEEK_SET);
		remove_entries(&r, root);
		result = unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0;
	} while (result < 0 && r.progress);
	return result < 0 && r.failure ? -r.failure : result;
}
