/* SPDX-License-Identifier: MIT
 * One name in a directory that is held open.
 */
#define _GNU_SOURCE
#include "place.h"
#include "error.h"
#include "io/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void place_close(struct place *p)
{
	if (p->dir >= 0 && !p->borrowed)
		close(p->dir);
	if (p->target >= 0)
		close(p->target);
	p->dir = p->target = -1;
}

static struct timespec time_of(struct statx_timestamp t)
{
	return (struct timespec){.tv_sec = t.tv_sec, .tv_nsec = t.tv_nsec};
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
			     .st_atim = time_of(sx->stx_atime),
			     .st_mtim = time_of(sx->stx_mtime),
			     .st_ctim = time_of(sx->stx_ctime)};
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

int place_open_target(struct place *p, const char *link, const char *path, struct fcopy_error *e)
{
	p->flagged = false;
	p->target = openat(p->dir, link, O_PLACE);
	if (p->target < 0 && errno == ENOENT)
		return error_refuse_operand(e, path, ENOENT, "is a dangling symlink",
					    FCOPY_ADVICE_REMOVE_LINK);
	if (p->target < 0 && errno == ELOOP)
		return error_refuse_operand(e, path, ELOOP, "is a loop of symlinks",
					    FCOPY_ADVICE_REMOVE_LOOP);
	if (p->target < 0)
		return error_call(e, "open", path, errno);
	return fstat(p->target, &p->st) < 0 ? error_call(e, "fstat", path, errno) : 0;
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
