/* SPDX-License-Identifier: MIT
 * Resolves SRC and DST. DST becomes a name in a directory that stays open: no other process can
 * replace a checked path component before it is used.
 */
#define _GNU_SOURCE
#include "operand.h"
#include "error.h"
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void operand_close(struct operand *o)
{
	place_close(&o->place);
}

static int share_descriptor(int *fd)
{
	*fd = *fd < 0 ? -1 : fcntl(*fd, F_DUPFD_CLOEXEC, 0);
	return *fd;
}

int operand_share(struct operand *o, const struct operand *other)
{
	*o = *other;
	o->place.target = -1;
	if (other->place.dir >= 0 && share_descriptor(&o->place.dir) < 0)
		return -errno;
	o->place.target = other->place.target;
	if (other->place.target < 0 || share_descriptor(&o->place.target) >= 0)
		return 0;
	int err = errno;
	place_close(&o->place);
	return -err;
}

/* Notes where the last component of the path starts, and copies it without its slashes. */
static int operand_split(struct operand *o)
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

static enum operand_kind kind_of_type(mode_t mode)
{
	return S_ISREG(mode)   ? OPERAND_FILE
	       : S_ISDIR(mode) ? OPERAND_DIRECTORY
	       : S_ISLNK(mode) ? OPERAND_SYMLINK
			       : OPERAND_DEVICE;
}

/* Returns whether the operand is a stream. dash: the descriptor that - stands for. */
static bool operand_start(struct operand *o, const char *path, int dash)
{
	*o = (struct operand){.path = path, .place = {.dir = -1, .target = -1}};
	o->stream = fcopy_operand_kind(path, dash, &o->fd);
	if (o->stream == FCOPY_KIND_PATH)
		return false;
	o->kind = OPERAND_STREAM;
	if (o->fd < 0 || fstat(o->fd, &o->place.st) < 0)
		o->place.st.st_mode = o->stream >= FCOPY_KIND_SOCKET ? S_IFSOCK : S_IFREG;
	return true;
}

void operand_find_source(struct operand *o, const char *path, bool follow)
{
	struct stat *st = &o->place.st;
	if (operand_start(o, path, STDIN_FILENO))
		return;
	o->follow = follow;
	operand_split(o); /* stat(2) refuses what is too long */
	o->place.exists = (follow ? stat(path, st) : lstat(path, st)) == 0;
	int err = errno;
	if (o->place.exists)
		o->kind = kind_of_type(st->st_mode);
	else if (err == ENOENT && follow && lstat(path, st) == 0)
		error_refuse(&o->error, path, ENOENT, "is a dangling symlink", FCOPY_ADVICE_NONE);
	else
		error_call(&o->error, "stat", path, err);
}

/* DST is split: opens its directory, and looks its name up. */
static int operand_look(struct operand *o)
{
	struct place *p = &o->place;
	struct fcopy_error *e = &o->error;
	p->dir = operand_open_directory(o);
	if (p->dir < 0)
		return error_operation(e, "open of its directory", "open", o->path, -p->dir);
	int r = 0;
	if (p->name[0])
		r = place_stat(p, o->path, e);
	else /* the root, which is its own directory */
		p->exists = fstat(p->dir, &p->st) == 0;
	if (r == 0 && p->symlink)
		r = place_open_target(p, o->path, e);
	else if (r == 0 && place_is_directory(p)) {
		p->target = openat(p->dir, p->name[0] ? p->name : "/", O_PLACE | O_DIRECTORY);
		r = p->target < 0 ? error_call(e, "open", o->path, errno) : 0;
	}
	return r;
}

void operand_find_destination(struct operand *o, const char *path, bool into)
{
	if (operand_start(o, path, STDOUT_FILENO))
		return;
	int r = operand_split(o);
	if (path[0] == '\0')
		r = -ENOENT;
	if (r < 0 || strlen(path) >= PATH_MAX) {
		error_call(&o->error, "open", path, r == -ENOENT ? ENOENT : ENAMETOOLONG);
		return;
	}
	r = operand_look(o);
	if (r < 0 && o->error.advice == FCOPY_ADVICE_REMOVE_LINK)
		o->kind = OPERAND_SYMLINK;
	else if (r < 0)
		o->kind = OPERAND_FAILED;
	else if (!o->place.exists)
		o->kind = OPERAND_NEW;
	else
		o->kind = kind_of_type(o->place.st.st_mode);
	if (o->kind == OPERAND_DIRECTORY && into)
		o->kind = OPERAND_INTO;
}

/* Writes DIRECTORY/NAME. */
static int join_path(char path[], const char *directory, const char *name, struct fcopy_error *e)
{
	size_t used = strlen(directory);
	bool slash = used > 0 && directory[used - 1] != '/';
	int n = snprintf(path, PATH_MAX, "%s%s%s", directory, slash ? "/" : "", name);
	return n < PATH_MAX ? 0 : error_call(e, "open", directory, ENAMETOOLONG);
}

int operand_find_copy(struct operand *copy, const struct operand *dst, const struct operand *src,
		      char path[], struct fcopy_error *e)
{
	const struct place *p = &dst->place;
	*copy = *dst;
	copy->place.dir = copy->place.target = -1;
	copy->path = path;
	/* LINK/ is the directory that it leads to: see path_resolution(7). */
	bool itself = dst->kind == OPERAND_INTO
			  ? operand_is_unnamed(src)
			  : place_is_directory(p) &&
				(operand_is_unnamed(dst) || (p->symlink && dst->slash));
	bool within = itself || dst->kind == OPERAND_INTO;
	const char *name = itself ? "." : within ? src->place.name : p->name;
	char directory[PATH_MAX];
	operand_directory(dst, directory);
	int r = 0;
	if (itself)
		strcpy(path, dst->path);
	else
		r = join_path(path, within ? dst->path : directory, name, e);
	if (r == 0 && within)
		r = place_enter(&copy->place, p->target, name, path, e);
	else if (r == 0)
		r = place_share(&copy->place, p, path, e);
	copy->kind = r < 0                ? OPERAND_FAILED
		     : copy->place.exists ? kind_of_type(copy->place.st.st_mode)
					  : OPERAND_NEW;
	copy->start = within ? strlen(path) - strlen(name) : dst->start;
	return r;
}

int operand_move(struct operand *copy, int dir, const char *path, struct fcopy_error *e)
{
	char name[NAME_MAX + 1];
	strcpy(name, copy->place.name);
	copy->path = path;
	copy->start = strlen(path) - strlen(name);
	int r = place_enter(&copy->place, dir, name, path, e);
	copy->kind = r < 0                ? OPERAND_FAILED
		     : copy->place.exists ? kind_of_type(copy->place.st.st_mode)
					  : OPERAND_NEW;
	return r;
}

/* A file system that is mounted below /dev, such as /dev/shm, is for files. */
int operand_check_device(const struct operand *dst, struct fcopy_error *e)
{
	struct stat dev, shm, root, dir;
	if (dst->kind != OPERAND_NEW || stat("/dev", &dev) < 0 || stat("/", &root) < 0 ||
	    fstat(dst->place.dir, &dir) < 0 || dir.st_dev != dev.st_dev)
		return 0;
	bool itself = dir.st_ino == dev.st_ino, mounted = dev.st_dev != root.st_dev;
	bool shared = stat("/dev/shm", &shm) == 0 && shm.st_dev == dir.st_dev &&
		      shm.st_ino == dir.st_ino;
	if (shared || (!itself && !mounted))
		return 0;
	error_refuse(e, dst->path, ENODEV,
		     "no such device: the copy would be a regular file in /dev",
		     FCOPY_ADVICE_DEVICE);
	return error_unsuitable(e);
}

/* Replaces a symlink by the place of its target: the kernel follows it once, under its own rules
 * for sticky directories, and the path that it found must lead to the same inode again. */
static int place_follow_symlink(struct place *p, const char *path, struct fcopy_error *e)
{
	char real[PATH_MAX];
	struct operand found = {.path = real, .place = {.dir = -1, .target = -1}};
	/* An unlinked file, reached through /proc/PID/fd/N, can only be written in place. */
	if (p->st.st_nlink == 0)
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
static int place_follow(struct place *p, const char *path, struct fcopy_error *e)
{
	int r = p->symlink && p->target < 0 ? place_open_target(p, path, e) : 0;
	if (r == 0 && place_is_directory(p))
		r = error_refuse(e, path, EISDIR, "is a directory", FCOPY_ADVICE_NONE);
	return r == 0 && p->symlink && S_ISREG(p->st.st_mode) ? place_follow_symlink(p, path, e)
							      : r;
}

/* dst is OPERAND_INTO, and path a copy of its path: both become those of the name in it. */
static int enter_directory(struct operand *dst, const struct operand *src, char path[],
			   struct fcopy_error *e)
{
	struct place entered = {.dir = -1, .target = -1};
	if (src->kind == OPERAND_STREAM)
		return error_refuse(e, path, EISDIR,
				    "is a directory, and the source has no name to use there",
				    FCOPY_ADVICE_USAGE);
	int r = join_path(path, dst->path, src->place.name, e);
	if (r == 0)
		r = place_enter(&entered, dst->place.target, src->place.name, path, e);
	place_close(&dst->place);
	dst->place = entered;
	return r;
}

void operand_find_file(struct operand *dst, const struct operand *src, char path[])
{
	struct fcopy_error *e = &dst->error;
	const enum operand_kind kind = dst->kind;
	int r = 0;
	snprintf(path, PATH_MAX, "%s", dst->path);
	if (kind == OPERAND_FAILED || kind == OPERAND_SYMLINK)
		e->path = path;
	else if (kind == OPERAND_INTO)
		r = enter_directory(dst, src, path, e);
	else if (kind == OPERAND_NEW && dst->slash)
		r = error_refuse(e, path, ENOENT, "no such directory", FCOPY_ADVICE_NONE);
	else if (kind != OPERAND_STREAM && kind != OPERAND_DIRECTORY && dst->slash)
		r = error_call(e, "open", path, ENOTDIR);
	dst->path = path;
	const bool unsuitable = (r < 0 && kind != OPERAND_INTO) || kind == OPERAND_DIRECTORY;
	if (r == 0 && e->err == 0 && kind != OPERAND_STREAM)
		r = place_follow(&dst->place, path, e);
	if (unsuitable)
		error_unsuitable(e);
	if (r < 0 || e->err)
		dst->kind = OPERAND_FAILED;
	else if (kind != OPERAND_STREAM)
		dst->kind = dst->place.exists ? kind_of_type(dst->place.st.st_mode) : OPERAND_NEW;
}

/* In a tree, a symlink of another user could lead to any file that he cannot write. It is followed
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
	return error_refuse(
	    e, path, EPERM,
	    "is a symlink of another user, and does not lead to a file of that user",
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
	p->target = openat(p->dir, text, O_PLACE);
	if (p->target < 0 && errno == ENOENT)
		return error_refuse(e, path, ENOENT, "is a dangling symlink",
				    FCOPY_ADVICE_REMOVE_LINK);
	if (p->target < 0)
		return error_call(e, "open", path, errno);
	return fstat(p->target, &p->st) < 0 ? error_call(e, "fstat", path, errno) : 0;
}

int place_find_new(struct place *p, int dir, const char *name, const char *path, struct stat *old,
		   struct fcopy_error *e)
{
	int r = place_enter(p, dir, name, path, e);
	*old = p->exists ? p->st : (struct stat){0};
	if (r == 0 && place_is_directory(p))
		r = error_refuse(e, path, EISDIR, "is a directory", FCOPY_ADVICE_NONE);
	if (r < 0)
		place_close(p);
	p->exists = p->symlink = false;
	return r;
}

int place_find_in(struct place *p, int dir, const char *name, const char *path,
		  struct fcopy_error *e)
{
	struct stat link = {0};
	/* a name that the kernel returned: NAME_MAX at most */
	int r = place_enter(p, dir, name, path, e);
	const bool followed = r == 0 && p->symlink;
	if (followed)
		r = place_open_link(p, &link, path, e);
	if (r == 0)
		r = place_follow(p, path, e);
	if (r == 0 && followed)
		r = place_check_link(p, &link, path, e);
	if (r < 0)
		place_close(p);
	return r;
}
