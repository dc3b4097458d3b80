/* SPDX-License-Identifier: MIT
 * Symlinks that a destination is written through.
 */
#define _GNU_SOURCE
#include "error.h"
#include "io/io.h"
#include "operand.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Does the symlink still lead to what was opened? */
static bool leads_there(const struct place *p)
{
	struct stat st;
	return fstatat(p->dir, p->name, &st, 0) == 0 && st.st_dev == p->st.st_dev &&
	       st.st_ino == p->st.st_ino;
}

/* Replaces a symlink by the place of its target: the kernel follows it once, under its own rules
 * for sticky directories, and the path that it found must lead to the same inode again. */
static int place_follow_symlink(struct place *p, const char *path, struct fcopy_error *e)
{
	char real[PATH_MAX];
	struct operand found = {.path = real, .place = {.dir = -1, .target = -1}};
	/* An unlinked file, reached through /proc/PID/fd/N, can only be written in place. */
	if (p->st.st_nlink == 0 && leads_there(p))
		return 0;
	ssize_t n = readlink(io_proc_path(p->target).text, real, sizeof(real) - 1);
	if (n < 0)
		return error_proc(e, "readlink", path, errno);
	real[n] = '\0';
	int r = operand_split(&found);
	if (r < 0)
		return error_call(e, "open", path, -r);
	found.place.dir = operand_open_directory(&found);
	if (found.place.dir < 0)
		return error_operation(e, "open of its directory", "open", path, -found.place.dir);
	r = place_stat(&found.place, path, e);
	if (r == 0 && (!found.place.exists || found.place.st.st_dev != p->st.st_dev ||
		       found.place.st.st_ino != p->st.st_ino))
		r = error_refuse(e, path, ESTALE, "its target moved while it was opened",
				 FCOPY_ADVICE_NONE);
	if (r < 0) {
		place_close(&found.place);
		return r;
	}
	found.place.target = p->target;
	p->target = -1;
	place_close(p);
	*p = found.place;
	return 0;
}

/* What a name leads to, and then its place if it is a regular file. */
int place_follow(struct place *p, const char *path, struct fcopy_error *e)
{
	int r = p->symlink && p->target < 0 ? place_open_target(p, p->name, path, e) : 0;
	if (r == 0 && place_is_directory(p))
		r = error_refuse_operand(e, path, EISDIR, "is a directory", FCOPY_ADVICE_NONE);
	return r == 0 && p->symlink && S_ISREG(p->st.st_mode) ? place_follow_symlink(p, path, e)
							      : r;
}

/* A symlink of another user could lead to any file that he cannot write. It is followed
 * only to a file of his in a directory of his. */
static int place_check_link(const struct place *p, const struct stat *link, const char *path,
			    struct fcopy_error *e)
{
	struct stat dir;
	if (link->st_uid == 0 || link->st_uid == geteuid())
		return 0;
	if (S_ISREG(p->st.st_mode) && p->st.st_uid == link->st_uid && fstat(p->dir, &dir) == 0 &&
	    dir.st_uid == link->st_uid)
		return 0;
	return error_refuse(e, path, EPERM,
			    "is a symlink of another user; its target, or the directory of the "
			    "target, is not that user's",
			    FCOPY_ADVICE_NONE);
}

/* Opens what the symlink leads to, and notes the stat of the very symlink that was followed: its
 * owner can exchange the name. */
static int place_open_link(struct place *p, struct stat *link, const char *path,
			   struct fcopy_error *e)
{
	char text[PATH_MAX];
	int fd = openat(p->dir, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 || fstat(fd, link) < 0 ? -1 : readlinkat(fd, "", text, sizeof(text) - 1);
	int r = n < 0 ? error_call(e, "readlink", path, errno) : 0;
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return r;
	text[n] = '\0';
	return place_open_target(p, text, path, e);
}

int place_follow_found(struct place *p, const char *path, struct fcopy_error *e)
{
	struct stat link = {0};
	const bool followed = p->symlink;
	int r = followed ? place_open_link(p, &link, path, e) : 0;
	if (r == 0)
		r = place_follow(p, path, e);
	if (r == 0 && followed)
		r = place_check_link(p, &link, path, e);
	return r;
}

int place_accept(struct place *p, bool follow, const char *path, struct fcopy_error *e)
{
	if (!follow)
		return place_is_directory(p)
			   ? error_refuse_operand(e, path, EISDIR, "is a directory",
						  FCOPY_ADVICE_NONE)
			   : 0;
	int r = place_follow_found(p, path, e);
	/* Opening a FIFO could block, and writing would overwrite a device. */
	if (r == 0 && p->exists && !S_ISREG(p->st.st_mode))
		r = error_refuse(e, path, EEXIST, "is not a regular file: a file cannot replace it",
				 FCOPY_ADVICE_NONE);
	return r;
}
