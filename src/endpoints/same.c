/* SPDX-License-Identifier: MIT
 * Are the source and the destination of a copy the same file?
 */
#include "endpoint.h"
#include "io/hash.h"

#include <time.h>

bool same_file(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
		return a->st_rdev == b->st_rdev;
	return (S_ISREG(a->st_mode) || S_ISFIFO(a->st_mode)) && same_inode(a, b);
}

#define CLOCK_TRIES 50 /* of a millisecond: longer than the tick of a file's timestamps */

/* fstat without the attributes that FUSE and NFS clients cache; a seccomp filter may deny statx. */
static int same_stat_now(int fd, struct stat *st)
{
	struct statx sx;
	int r = fstat(fd, st);
	if (r == 0 && statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE | STATX_CTIME,
			    &sx) == 0) {
		st->st_size = (off_t)sx.stx_size;
		st->st_ctim = statx_time(sx.stx_ctime);
	}
	return r;
}

/* Changes the ctime: sets the mode that the file has; or its times if the mode has setuid or setgid
 * bits, which a new owner must not get back. A user who may do neither calls fchown(2) with -1,
 * which changes only what a write would change, too. */
static int same_touch(int fd, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	if ((st->st_mode & 06000 ? futimens(fd, times) : fchmod(fd, st->st_mode & 07777)) == 0)
		return 0;
	return fchown(fd, (uid_t)-1, (gid_t)-1);
}

/* Does a write to dst change what src reads, although their inode numbers differ? It does if one is
 * a file of an overlay mount and the other its lower or upper file, or if one is a FUSE mirror.
 * Inode numbers do not help: overlayfs has its own st_dev, and st_ino of a copied-up file is that
 * of the lower file. But both always show the same ctime and size.
 *
 * Equal ctimes alone prove nothing: a snapshot has them too. So change the ctime of dst: that of
 * src follows only if the two are one inode. If the ctime of dst does not change, assume that dst
 * is src.
 *
 * This check misses a metacopy file of overlayfs: it has its own ctime and the data of the lower
 * file.
 *
 * Returns 1, 0, or -errno. */
static int same_aliases(const struct endpoint *src, int dst, const struct stat *st)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	struct stat a, b, now;
	if (!S_ISREG(src->st.st_mode) || !S_ISREG(st->st_mode))
		return 0;
	if (same_stat_now(src->fd, &a) < 0 || same_stat_now(dst, &b) < 0)
		return -errno;
	if (a.st_size != b.st_size || !same_ctime(&a, &b))
		return 0;
	for (int i = 0; i < CLOCK_TRIES; i++) {
		struct stat st;
		if (fstat(dst, &st) < 0 || same_touch(dst, &st) < 0)
			return 1;
		if (same_stat_now(dst, &now) < 0 || same_stat_now(src->fd, &a) < 0)
			return -errno;
		if (!same_ctime(&b, &now))
			return same_ctime(&a, &now);
		nanosleep(&tick, NULL);
	}
	return 1;
}

int same_is_source(const struct endpoint *src, int fd, const struct stat *st)
{
	return same_file(&src->st, st) ? 1 : same_aliases(src, fd, st);
}

const struct fcopy_output *same_output(const struct fcopy_options *options, const struct stat *st)
{
	for (size_t i = 0; i < options->output_count; i++)
		if (options->outputs[i].dev == st->st_dev && options->outputs[i].ino == st->st_ino)
			return &options->outputs[i];
	return NULL;
}

int same_refuse(const char *src, const char *dst, struct fcopy_error *error)
{
	error_refuse(error, src, EINVAL, "are the same file", FCOPY_ADVICE_NONE);
	error->path2 = dst;
	return error_unsuitable(error);
}

int same_refuse_output(const struct fcopy_output *o, const char *dst, struct fcopy_error *error)
{
	error_refuse(error, o->option ? NULL : dst, EINVAL, o->option ? o->reason : o->taken,
		     FCOPY_ADVICE_USAGE);
	error->option = o->option;
	return error_unsuitable(error);
}

/* Which inode is it? A file that is removed can leave its inode number to a new one: the generation
 * in the file handle differs then, or else the time of birth. */

/* A hash; 0: the file system has no handles. */
static uint64_t identity_handle(int fd)
{
	union {
		struct file_handle head;
		unsigned char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
	int mount;
	if (name_to_handle_at(fd, "", &handle.head, &mount, AT_EMPTY_PATH) < 0)
		return 0;
	const size_t end = offsetof(struct file_handle, f_handle) + handle.head.handle_bytes;
	return hash_add(HASH_START, handle.bytes, end) | 1;
}

struct identity identity_of(int fd)
{
	struct statx sx;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &sx) < 0)
		return (struct identity){.known = false};
	struct identity id = {.dev_major = sx.stx_dev_major,
			      .dev_minor = sx.stx_dev_minor,
			      .ino = sx.stx_ino,
			      .handle = identity_handle(fd)};
	if (sx.stx_mask & STATX_BTIME) {
		id.birth_seconds = sx.stx_btime.tv_sec;
		id.birth_nanoseconds = sx.stx_btime.tv_nsec;
	}
	id.known = id.handle || id.birth_seconds || id.birth_nanoseconds;
	return id;
}

bool identity_is_same(const struct identity *a, const struct identity *b)
{
	return a->known && b->known && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->ino == b->ino && a->handle == b->handle &&
	       a->birth_seconds == b->birth_seconds && a->birth_nanoseconds == b->birth_nanoseconds;
}
