/* SPDX-License-Identifier: MIT
 * Resolves the string DST to a name in a directory that stays open: no other process can replace a
 * checked path component before it is used.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"
#include "io/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void place_close(struct place *p)
{
	if (p->dir >= 0)
		close(p->dir);
	if (p->target >= 0)
		close(p->target);
	p->dir = p->target = -1;
}

const char *place_last_component(const char *path, size_t *length)
{
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	*length = end - start;
	return path + start;
}

static int set_name(struct place *p, const char *name, size_t length)
{
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(p->name, name, length);
	p->name[length] = '\0';
	return 0;
}

/* Opens the directory part of a path, and notes its last component. shown: the path for messages.
 */
static int place_split_path(struct place *p, const char *path, const char *shown,
			    struct fcopy_error *e)
{
	char dir[PATH_MAX];
	size_t length;
	const char *name = place_last_component(path, &length);
	size_t start = (size_t)(name - path);
	if (start >= sizeof(dir) || set_name(p, name, length) < 0)
		return error_call(e, "open", shown, ENAMETOOLONG);
	p->dir = AT_FDCWD;
	if (start == 0)
		return 0;
	memcpy(dir, path, start);
	dir[start] = '\0';
	p->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->dir < 0 ? error_operation(e, "open of its directory", "open", shown, errno) : 0;
}

static int place_stat(struct place *p, const char *path, struct fcopy_error *e)
{
	p->exists = fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
	return p->exists || errno == ENOENT ? 0 : error_call(e, "stat", path, errno);
}

/* The place is a directory: it becomes DST/basename(src_path). */
static int place_enter_directory(struct place *p, const char *src_path, char resolved[PATH_MAX],
				 struct fcopy_error *e)
{
	size_t length, used = strlen(resolved);
	if (!src_path)
		return error_refuse(e, resolved, EISDIR,
				    "is a directory, and the source has no name to use there",
				    FCOPY_ADVICE_USAGE);
	int dir = openat(p->dir, p->name[0] ? p->name : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return error_call(e, "open", resolved, errno);
	place_close(p);
	p->dir = dir;
	const char *name = place_last_component(src_path, &length);
	int n = snprintf(resolved + used, PATH_MAX - used, "%s%.*s",
			 resolved[used - 1] == '/' ? "" : "/", (int)length, name);
	if (set_name(p, name, length) < 0 || used + (size_t)n >= PATH_MAX)
		return error_call(e, "open", resolved, ENAMETOOLONG);
	return place_stat(p, resolved, e);
}

/* Replaces a symlink by the place of its target: the kernel follows it once, under its own rules
 * for sticky directories, and the path that it found must lead to the same inode again. */
static int place_follow_symlink(struct place *p, const char *path, struct fcopy_error *e)
{
	char real[PATH_MAX];
	struct place found = {.dir = -1, .target = -1};
	/* An unlinked file, reached through /proc/PID/fd/N, can only be written in place. */
	if (p->st.st_nlink == 0)
		return 0;
	ssize_t n = readlink(io_proc_path(p->target).text, real, sizeof(real) - 1);
	if (n < 0)
		return error_proc(e, "readlink", path, errno);
	real[n] = '\0';
	int r = place_split_path(&found, real, path, e);
	if (r < 0)
		return r;
	r = place_stat(&found, path, e);
	if (r < 0) {
		place_close(&found);
		return r;
	}
	if (!found.exists || found.st.st_dev != p->st.st_dev || found.st.st_ino != p->st.st_ino) {
		place_close(&found);
		return error_refuse(e, path, ESTALE, "its target moved while it was opened",
				    FCOPY_ADVICE_NONE);
	}
	found.target = p->target;
	p->target = -1;
	place_close(p);
	*p = found;
	return 0;
}

/* The place is a symlink: p->st becomes its target's. */
static int open_target(struct place *p, const char *path, struct fcopy_error *e)
{
	p->target = openat(p->dir, p->name, O_PATH | O_CLOEXEC);
	if (p->target < 0 && errno == ENOENT)
		return error_refuse(e, path, ENOENT, "is a dangling symlink",
				    FCOPY_ADVICE_REMOVE_LINK);
	if (p->target < 0)
		return error_call(e, "open", path, errno);
	return fstat(p->target, &p->st) < 0 ? error_call(e, "fstat", path, errno) : 0;
}

static int place_resolve(struct place *p, const char *src_path, bool into, char resolved[PATH_MAX],
			 struct fcopy_error *e)
{
	bool slash = resolved[strlen(resolved) - 1] == '/', entered = false;
	int r = place_split_path(p, resolved, resolved, e);
	if (r == 0 && p->name[0])
		r = place_stat(p, resolved, e);
	if (r < 0)
		return r;
	while (!p->name[0] || p->exists) {
		if (p->name[0] && S_ISLNK(p->st.st_mode) && (r = open_target(p, resolved, e)) < 0)
			return r;
		if (p->name[0] && !S_ISDIR(p->st.st_mode))
			break;
		if (entered || !into)
			return error_refuse(e, resolved, EISDIR, "is a directory",
					    FCOPY_ADVICE_NONE);
		if ((r = place_enter_directory(p, src_path, resolved, e)) < 0)
			return r;
		entered = true;
	}
	if (slash && !entered && !p->exists)
		return error_refuse(e, resolved, ENOENT, "no such directory", FCOPY_ADVICE_NONE);
	if (slash && !entered)
		return error_call(e, "open", resolved, ENOTDIR);
	return p->target >= 0 && S_ISREG(p->st.st_mode) ? place_follow_symlink(p, resolved, e) : 0;
}

int place_find(struct place *p, const char *path, const char *src_path, bool into,
	       char resolved[PATH_MAX], struct fcopy_error *e)
{
	*p = (struct place){.dir = -1, .target = -1};
	if (path[0] == '\0')
		return error_call(e, "open", path, ENOENT);
	if (strlen(path) >= PATH_MAX)
		return error_call(e, "open", path, ENAMETOOLONG);
	strcpy(resolved, path);
	int r = place_resolve(p, src_path, into, resolved, e);
	if (r < 0)
		place_close(p);
	return r;
}

int place_find_in(struct place *p, int dir, const char *name, const char *path,
		  struct fcopy_error *e)
{
	*p = (struct place){.dir = fcntl(dir, F_DUPFD_CLOEXEC, 0), .target = -1};
	if (p->dir < 0)
		return error_call(e, "fcntl(F_DUPFD)", path, errno);
	strcpy(p->name, name); /* a name that the kernel returned: NAME_MAX at most */
	int r = place_stat(p, path, e);
	if (r == 0 && p->exists && S_ISLNK(p->st.st_mode))
		r = open_target(p, path, e);
	if (r == 0 && p->exists && S_ISDIR(p->st.st_mode))
		r = error_refuse(e, path, EISDIR, "is a directory", FCOPY_ADVICE_NONE);
	if (r == 0 && p->target >= 0 && S_ISREG(p->st.st_mode))
		r = place_follow_symlink(p, path, e);
	if (r < 0)
		place_close(p);
	return r;
}
