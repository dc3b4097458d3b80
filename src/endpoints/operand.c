/* SPDX-License-Identifier: MIT
 * Resolves SRC and DST. DST becomes a name in a directory that stays open: no other process can
 * replace a checked path component before it is used.
 */
#include "endpoint.h"

#include <stdio.h>

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

static enum operand_kind kind_of_type(mode_t mode)
{
	return S_ISREG(mode)   ? OPERAND_FILE
	       : S_ISDIR(mode) ? OPERAND_DIRECTORY
	       : S_ISLNK(mode) ? OPERAND_SYMLINK
			       : OPERAND_DEVICE;
}

/* r: of its look-up. */
static enum operand_kind kind_of_copy(const struct operand *o, int r)
{
	return r < 0             ? OPERAND_FAILED
	       : o->place.exists ? kind_of_type(o->place.st.st_mode)
				 : OPERAND_NEW;
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
		error_refuse_operand(&o->error, path, ENOENT, "is a dangling symlink",
				     FCOPY_ADVICE_NONE);
	else
		error_look_up(&o->error, "stat", path, err);
}

/* DST is split: opens its directory, and looks its name up. */
static int operand_look(struct operand *o)
{
	struct place *p = &o->place;
	struct fcopy_error *e = &o->error;
	p->dir = operand_open_directory(o);
	if (p->dir < 0) {
		error_look_up(e, "open", o->path, -p->dir);
		e->operation = "open of its directory";
		return p->dir;
	}
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
		error_look_up(&o->error, "open", path, r == -ENOENT ? ENOENT : ENAMETOOLONG);
		return;
	}
	r = operand_look(o);
	o->kind = r < 0 && place_leads_nowhere(&o->error) ? OPERAND_SYMLINK : kind_of_copy(o, r);
	if (o->kind == OPERAND_DIRECTORY && into)
		o->kind = OPERAND_INTO;
}

/* Writes DIRECTORY/NAME. */
static int join_path(char path[], const char *directory, const char *name, struct fcopy_error *e)
{
	size_t used = strlen(directory);
	bool slash = used > 0 && directory[used - 1] != '/';
	int n = snprintf(path, PATH_MAX, "%s%s%s", directory, slash ? "/" : "", name);
	return n < PATH_MAX ? 0 : error_look_up(e, "open", directory, ENAMETOOLONG);
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
	copy->kind = kind_of_copy(copy, r);
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
	copy->kind = kind_of_copy(copy, r);
	return r;
}

int operand_foresee(struct operand *copy, int dir, const char *path, struct fcopy_error *e)
{
	copy->path = path;
	copy->start = strlen(path) - strlen(copy->place.name);
	copy->kind = OPERAND_NEW;
	copy->place.exists = copy->place.symlink = false;
	copy->place.dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	copy->place.target = -1;
	if (copy->place.dir >= 0)
		return 0;
	copy->kind = OPERAND_FAILED;
	return error_call(e, "fcntl(F_DUPFD)", path, errno);
}

/* A file system that is mounted below /dev, such as /dev/shm, is for files. */
int operand_check_device(const struct operand *dst, bool replaces, struct fcopy_error *e)
{
	struct stat dev, shm, root, dir, old;
	if (replaces && fstatat(dst->place.dir, dst->place.name, &old, 0) == 0 &&
	    (S_ISBLK(old.st_mode) || S_ISCHR(old.st_mode))) {
		error_refuse(
		    e, dst->path, EEXIST,
		    "is a device: -b or --remove-destination would give its name to a file",
		    FCOPY_ADVICE_FORCE);
		return error_unsuitable(e);
	}
	if (dst->kind != OPERAND_NEW || stat("/dev", &dev) < 0 || stat("/", &root) < 0 ||
	    fstat(dst->place.dir, &dir) < 0 || dir.st_dev != dev.st_dev)
		return 0;
	bool itself = dir.st_ino == dev.st_ino, mounted = dev.st_dev != root.st_dev;
	bool shared = stat("/dev/shm", &shm) == 0 && same_inode(&shm, &dir);
	if (shared || (!itself && !mounted))
		return 0;
	error_refuse(e, dst->path, ENODEV,
		     "no such device: the copy would be a regular file in /dev",
		     FCOPY_ADVICE_DEVICE);
	return error_unsuitable(e);
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
	if (r < 0 && kind != OPERAND_INTO)
		error_unsuitable(e);
	if (r == 0 && e->err == 0 && kind != OPERAND_STREAM)
		r = kind == OPERAND_INTO ? place_follow_found(&dst->place, path, e)
					 : place_follow(&dst->place, path, e);
	if (kind != OPERAND_STREAM || r < 0 || e->err)
		dst->kind = kind_of_copy(dst, e->err ? -e->err : r);
}
