/* SPDX-License-Identifier: MIT
 * Follows symlinks one name at a time, and finds the user who can have put them in place.
 */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LINKS_MAX 40    /* in one path: path_resolution(7) */
#define NAMES_MAX 10000 /* of a path: 40 links of the greatest length could have 80,000 */

/* What is left of a path. */
struct way {
	int at; /* the directory in which `left` begins, or -errno */
	char left[2 * PATH_MAX];
};

static int way_open(int at, const char *name, int flags)
{
	const int fd = openat(at, name, flags | O_CLOEXEC, 0666);
	/* cppcheck-suppress resourceLeak ; the caller closes it */
	return fd < 0 ? -errno : fd;
}

static void way_enter(struct way *w, int at)
{
	io_close(w->at);
	w->at = at;
}

/* The text of a symlink in /proc need not be a path: only the kernel can follow it. */
static bool is_in_proc(int dir)
{
	struct statfs fs;
	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Replaces the symlink by its text, followed by the rest of the path. Returns 0 or -errno. */
static int way_turn(struct way *w, const char *text, const char *rest)
{
	char left[sizeof(w->left)];
	if (!text[0])
		return -ENOENT;
	if ((size_t)snprintf(left, sizeof(left), "%s%s", text, rest) >= sizeof(left))
		return -ENAMETOOLONG;
	strcpy(w->left, left);
	if (text[0] == '/')
		way_enter(w, way_open(AT_FDCWD, "/", O_PATH));
	return 0;
}

#define GOES_ON INT_MIN /* names are left: no errno, for EAGAIN is that of a file with a lease */

/* Follows the next name. Returns a descriptor of the last one; GOES_ON; or -errno. */
static int way_step(struct way *w, int flags, int *links, io_link *see, void *arg)
{
	char next[NAME_MAX + 1], text[PATH_MAX];
	char *start = w->left + strspn(w->left, "/"), *rest = start + strcspn(start, "/");
	struct stat st;
	if (start == rest) /* a final slash */
		return flags & O_CREAT ? -EISDIR : way_open(w->at, ".", flags | O_DIRECTORY);
	if (rest - start > NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(next, sizeof(next), "%.*s", (int)(rest - start), start);
	const bool link = io_read_link(w->at, next, text, &st) == 0;
	if (link && ++*links > LINKS_MAX)
		return -ELOOP;
	if (link && !see(arg, w->at, &st))
		return -EPERM;
	const bool magic = link && is_in_proc(w->at);
	if (link && !magic) {
		const int r = way_turn(w, text, rest);
		return r == 0 ? GOES_ON : r;
	}
	if (!rest[0])
		return way_open(w->at, next, flags | (magic ? 0 : O_NOFOLLOW));
	way_enter(w, way_open(w->at, next, O_PATH | O_DIRECTORY | (magic ? 0 : O_NOFOLLOW)));
	memmove(w->left, rest, strlen(rest) + 1);
	return GOES_ON;
}

int io_walk(int dir, const char *name, int flags, io_link *see, void *arg)
{
	struct way w = {.at = way_open(dir, ".", O_PATH | O_DIRECTORY)};
	int links = 0, r = GOES_ON;
	snprintf(w.left, sizeof(w.left), "%s", name);
	for (int names = 0; r == GOES_ON; names++)
		r = w.at < 0            ? w.at
		    : names < NAMES_MAX ? way_step(&w, flags, &links, see, arg)
					: -ENAMETOOLONG;
	io_close(w.at);
	return r;
}

/* Trusts only group 0 and the group of this process: other groups may have other members. If there
 * is an ACL, the mode shows its mask. */
static bool is_open_to_all(int fd, const struct stat *dir)
{
	const bool known = dir->st_gid == 0 || dir->st_gid == getegid();
	if (dir->st_mode & S_ISVTX || !(dir->st_mode & (S_IWOTH | S_IWGRP)))
		return false;
	return dir->st_mode & S_IWOTH || !known ||
	       getxattr(io_proc_path(fd).text, "system.posix_acl_access", NULL, 0) > 0;
}

/* Who, but root and this user, decides what the symlink leads to? */
static uid_t user_of(int dir, const struct stat *link)
{
	struct stat st;
	if (io_is_foreign(link))
		return link->st_uid;
	if (fstat(dir, &st) < 0)
		return IO_ANY_USER;
	if (io_is_foreign(&st))
		return st.st_uid;
	return is_open_to_all(dir, &st) ? IO_ANY_USER : 0;
}

struct trail {
	uid_t user;
	bool goes_on;
};

static bool trail_note(void *trail, int dir, const struct stat *link)
{
	struct trail *t = trail;
	if (t->user == 0)
		t->user = user_of(dir, link);
	return t->user == 0 || t->goes_on;
}

int io_open_link(int dir, const char *name, int flags, uid_t *user)
{
	struct trail t = {.goes_on = flags & O_PATH};
	const int fd = io_walk(dir, name, flags, trail_note, &t);
	*user = t.user;
	return fd;
}
