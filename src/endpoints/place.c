/* SPDX-License-Identifier: MIT
 * One name in a directory that is held open.
 */
#include "endpoint.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

void place_close(struct place *p)
{
	if (p->dir >= 0 && !p->borrowed)
		close(p->dir);
	io_close(p->target);
	p->dir = p->target = -1;
}

static struct stat place_convert(const struct statx *sx)
{
	return (struct stat){.st_dev = makedev(sx->stx_dev_major, sx->stx_dev_minor),
			     .st_ino = sx->stx_ino,
			     .st_mode = sx->stx_mode,
			     .st_nlink = sx->stx_nlink,
			     .st_uid = sx->stx_uid,
			     .st_gid = sx->stx_gid,
			     .st_rdev = makedev(sx->stx_rdev_major, sx->stx_rdev_minor),
			     .st_size = (off_t)sx->stx_size,
			     .st_blksize = (blksize_t)sx->stx_blksize,
			     .st_blocks = (blkcnt_t)sx->stx_blocks,
			     .st_atim = statx_time(sx->stx_atime),
			     .st_mtim = statx_time(sx->stx_mtime),
			     .st_ctim = statx_time(sx->stx_ctime)};
}

static void place_look(struct place *p)
{
	struct statx sx;
	errno = 0;
	/* Container filters deny statx(2), and some file systems fail it. */
	p->flagged = statx(p->dir, p->name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &sx) == 0 &&
		     (sx.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS;
	p->flags = p->flagged ? sx.stx_attributes : 0;
	if (p->flagged)
		p->st = place_convert(&sx);
	p->exists = p->flagged ||
		    (errno != ENOENT && fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0);
}

int place_stat(struct place *p, const char *path, struct fcopy_error *e)
{
	place_look(p);
	/* What was found was replaced before it was looked at; some storage counts no links. */
	for (int tries = 0; tries < 5 && p->exists && p->st.st_nlink == 0; tries++)
		place_look(p);
	p->symlink = p->exists && S_ISLNK(p->st.st_mode);
	return p->exists || errno == ENOENT ? 0 : error_look_up(e, "stat", path, errno);
}

/* fd: the target, or -errno. */
static int place_set_target(struct place *p, int fd, const char *path, struct fcopy_error *e)
{
	p->flagged = false;
	p->target = fd;
	if (fd == -ENOENT)
		return error_refuse_operand(e, path, ENOENT, "is a dangling symlink",
					    FCOPY_ADVICE_REMOVE_LINK);
	if (fd == -ELOOP)
		return error_refuse_operand(e, path, ELOOP, "is a loop of symlinks",
					    FCOPY_ADVICE_REMOVE_LOOP);
	if (fd < 0)
		return error_call(e, "open", path, -fd);
	return fstat(p->target, &p->st) < 0 ? error_call(e, "fstat", path, errno) : 0;
}

int place_open_target(struct place *p, const char *path, struct fcopy_error *e)
{
	const int fd = openat(p->dir, p->name, O_PLACE);
	/* cppcheck-suppress resourceLeak ; place_close() closes it */
	return place_set_target(p, fd < 0 ? -errno : fd, path, e);
}

/* Old container runtimes answer faccessat2(2), which glibc calls, with EPERM and not with ENOSYS:
 * then faccessat(2) decides, for the real user. */
int place_access(const struct place *p, const char *name, int mode)
{
	return faccessat(p->dir, name, mode, AT_EACCESS) == 0 ||
		       (errno == EPERM && syscall(SYS_faccessat, p->dir, name, mode) == 0)
		   ? 0
		   : errno;
}

bool place_is_directory(const struct place *p)
{
	return p->exists && S_ISDIR(p->st.st_mode);
}

bool place_leads_nowhere(const struct fcopy_error *e)
{
	return e->advice == FCOPY_ADVICE_REMOVE_LINK || e->advice == FCOPY_ADVICE_REMOVE_LOOP;
}

int place_enter(struct place *p, int dir, const char *name, const char *path, struct fcopy_error *e)
{
	*p = (struct place){.dir = fcntl(dir, F_DUPFD_CLOEXEC, 0), .target = -1};
	if (p->dir < 0)
		return error_call(e, "fcntl(F_DUPFD)", path, errno);
	strcpy(p->name, name);
	return place_stat(p, path, e);
}

int place_borrow(struct place *p, int dir, const char *name, const char *path,
		 struct fcopy_error *e)
{
	*p = (struct place){.dir = dir, .borrowed = true, .target = -1};
	strcpy(p->name, name);
	return place_stat(p, path, e);
}

int place_share(struct place *p, const struct place *other, const char *path, struct fcopy_error *e)
{
	*p = *other;
	p->target = -1;
	p->borrowed = false;
	p->dir = fcntl(other->dir, F_DUPFD_CLOEXEC, 0);
	return p->dir < 0 ? error_call(e, "fcntl(F_DUPFD)", path, errno) : 0;
}

/* Symlinks that a destination is written through. */

/* Does the symlink still lead to what was opened? */
static bool place_leads_there(const struct place *p)
{
	struct stat st;
	return fstatat(p->dir, p->name, &st, 0) == 0 && same_inode(&st, &p->st);
}

/* Replaces a symlink by the place of its target: the kernel follows it once, under its own rules
 * for sticky directories, and the path that it found must lead to the same inode again. */
static int place_follow_symlink(struct place *p, const char *path, struct fcopy_error *e)
{
	char real[PATH_MAX];
	struct operand found = {.path = real, .place = {.dir = -1, .target = -1}};
	/* An unlinked file, reached through /proc/PID/fd/N, can only be written in place. */
	if (p->st.st_nlink == 0 && place_leads_there(p))
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
	if (r == 0 && (!found.place.exists || !same_inode(&found.place.st, &p->st)))
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

int place_follow(struct place *p, const char *path, struct fcopy_error *e)
{
	int r = p->symlink && p->target < 0 ? place_open_target(p, path, e) : 0;
	if (r == 0 && place_is_directory(p))
		r = error_refuse_operand(e, path, EISDIR, "is a directory", FCOPY_ADVICE_NONE);
	return r == 0 && p->symlink && S_ISREG(p->st.st_mode) ? place_follow_symlink(p, path, e)
							      : r;
}

/* Can the user search the directory and all directories above it? Ignores group permissions: the
 * user's groups are not known. */
static bool place_is_reachable(int dir, uid_t user)
{
	struct stat st, above = {0};
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	bool reachable = at >= 0 && fstat(at, &st) == 0, top = false;
	while (reachable && !top) {
		reachable = st.st_mode & (st.st_uid == user ? S_IXUSR : S_IXOTH);
		const int up = openat(at, "..", O_PLACE | O_DIRECTORY);
		close(at);
		at = up;
		if (at < 0 || fstat(at, &above) < 0)
			reachable = false;
		top = same_inode(&above, &st);
		st = above;
	}
	io_close(at);
	return reachable;
}

/* Another user who made or moved a symlink could lead it to a file that this user may not write.
 * Follows it only to a regular file that the same user owns, in a directory that the same user owns
 * and can reach. */
static int place_check_user(const struct place *p, uid_t user, const char *path,
			    struct fcopy_error *e)
{
	struct stat dir;
	if (user == 0 ||
	    (S_ISREG(p->st.st_mode) && p->st.st_uid == user && fstat(p->dir, &dir) == 0 &&
	     dir.st_uid == user && place_is_reachable(p->dir, user)))
		return 0;
	return error_refuse(e, path, EPERM,
			    "is, or leads through, a symlink that another user made or can move; "
			    "its target, or the directory of the target, is not that user's, or "
			    "out of that user's reach",
			    FCOPY_ADVICE_NONE);
}

int place_follow_found(struct place *p, const char *path, struct fcopy_error *e)
{
	uid_t user = 0;
	int r = p->symlink
		    ? place_set_target(p, io_open_link(p->dir, p->name, O_PATH, &user), path, e)
		    : 0;
	if (r == 0)
		r = place_follow(p, path, e);
	if (r == 0 && p->exists && S_ISFIFO(p->st.st_mode) && io_is_foreign(&p->st))
		r = error_refuse(e, path, EPERM, "is a FIFO of another user", FCOPY_ADVICE_NONE);
	return r == 0 ? place_check_user(p, user, path, e) : r;
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

/* The one place that splits a path. */

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
