/* SPDX-License-Identifier: MIT
 * Opens SRC and DST, each according to the type of the file that it names.
 */
#define _GNU_SOURCE
#include "file.h"
#include "error.h"
#include "io/libc.h"
#include "stream.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int end_source(struct endpoint *e, const struct fcopy_options *options,
		      struct fcopy_error *error)
{
	(void)options, (void)error; /* close(2) of a descriptor that was only read has no error */
	e->ops->abort(e);
	return 0;
}

static void close_source(struct endpoint *e)
{
	endpoint_close(e);
}

static const struct endpoint_ops source_ops = {.commit = end_source, .abort = close_source};

void source_adopt(struct endpoint *e, int fd, const char *path, const struct stat *st)
{
	*e = (struct endpoint){
	    .ops = &source_ops, .path = path, .fd = fd, .positional = true, .st = *st};
}

static void leave_open(struct endpoint *e)
{
	e->fd = -1;
}

int source_share(struct endpoint *e, const struct endpoint *open, struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.commit = end_source, .abort = leave_open};
	*e = *open;
	e->ops = &ops;
	return fstat(e->fd, &e->st) < 0 ? error_call(error, "fstat", e->path, errno) : 0;
}

static int fail_open(const char *path, int err, struct fcopy_error *error)
{
	struct stat st;
	if (err == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return error_refuse(error, path, ENOENT, "is a dangling symlink",
				    FCOPY_ADVICE_NONE);
	return error_call(error, "open", path, err);
}

int source_open(struct endpoint *e, const char *path, struct fcopy_error *error)
{
	if (stream_names(path))
		return stream_open(e, path, STDIN_FILENO, error);
	*e = (struct endpoint){.ops = &source_ops, .path = path};
	e->fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (e->fd < 0)
		return fail_open(path, errno, error);
	if (fstat(e->fd, &e->st) < 0)
		error_call(error, "fstat", path, errno);
	else if (S_ISDIR(e->st.st_mode))
		error_refuse(error, path, EISDIR, "is a directory", FCOPY_ADVICE_RECURSIVE);
	else if (S_ISBLK(e->st.st_mode) && device_size(e->fd, &e->st.st_size) < 0)
		error_call(error, "ioctl(BLKGETSIZE64)", path, errno);
	else {
		e->positional = S_ISREG(e->st.st_mode) || S_ISBLK(e->st.st_mode);
		return 0;
	}
	close_source(e);
	return -error->err;
}

/* The same inode, or two device nodes of one disk. */
static bool same_file(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
		return a->st_rdev == b->st_rdev;
	return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

#define CLOCK_TRIES 50 /* of a millisecond: longer than the tick of a file's timestamps */

/* fstat without the attributes that FUSE and NFS clients cache; a seccomp filter may deny statx. */
static int stat_now(int fd, struct stat *st)
{
	struct statx sx;
	int r = fstat(fd, st);
	if (r == 0 && statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE | STATX_CTIME,
			    &sx) == 0) {
		st->st_size = (off_t)sx.stx_size;
		st->st_ctim = (struct timespec){sx.stx_ctime.tv_sec, sx.stx_ctime.tv_nsec};
	}
	return r;
}

static bool same_ctime(const struct stat *a, const struct stat *b)
{
	return a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Does a write to dst change what src reads, although their inode numbers differ? It does if one is
 * a file of an overlay mount and the other its lower or upper file, or if one is a FUSE mirror.
 * Inode numbers do not help: overlayfs has its own st_dev, and st_ino of a copied-up file is that
 * of the lower file. But both always show the same ctime and size.
 *
 * Equal ctimes alone prove nothing: a snapshot has them too. So change the ctime of dst, by an
 * fchown(2) to -1, which changes nothing else that a write would not change. The ctime of src
 * follows only if the two are one inode. If the ctime of dst does not change, assume that dst is
 * src.
 *
 * This check misses a metacopy file of overlayfs: it has its own ctime and the data of the lower
 * file.
 *
 * Returns 1, 0, or -errno. */
static int aliases(const struct endpoint *src, const struct endpoint *dst)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	struct stat a, b, now;
	if (!S_ISREG(src->st.st_mode) || !S_ISREG(dst->st.st_mode))
		return 0;
	if (stat_now(src->fd, &a) < 0 || stat_now(dst->fd, &b) < 0)
		return -errno;
	if (a.st_size != b.st_size || !same_ctime(&a, &b))
		return 0;
	for (int i = 0; i < CLOCK_TRIES; i++) {
		if (fchown(dst->fd, (uid_t)-1, (gid_t)-1) < 0)
			return 1;
		if (stat_now(dst->fd, &now) < 0 || stat_now(src->fd, &a) < 0)
			return -errno;
		if (!same_ctime(&b, &now))
			return same_ctime(&a, &now);
		nanosleep(&tick, NULL);
	}
	return 1;
}

static int refuse_same(const struct endpoint *src, const char *path, struct fcopy_error *error)
{
	error_refuse(error, src->path, EINVAL, "are the same file", FCOPY_ADVICE_NONE);
	error->path2 = path;
	return -EINVAL;
}

/* The destination is open: closes it again if it may be the source. */
static int check_alias(struct endpoint *e, const struct endpoint *src, struct fcopy_error *error)
{
	int r = same_file(&src->st, &e->st) ? 1 : aliases(src, e);
	if (r == 0)
		return 0;
	e->ops->abort(e);
	return r < 0 ? error_call(error, "fstat", e->path, -r) : refuse_same(src, e->path, error);
}

static int open_place(struct endpoint *e, const struct endpoint *src,
		      const struct fcopy_options *options, struct fcopy_error *error)
{
	bool exists = file_of(e)->place.exists;
	bool in_place = exists && (!S_ISREG(file_of(e)->place.st.st_mode) || options->in_place);
	if (exists && options->no_clobber)
		return ENDPOINT_KEPT;
	if (exists && same_file(&src->st, &file_of(e)->place.st) && !options->scratch)
		return refuse_same(src, e->path, error);
	if (!in_place || options->scratch)
		return replace_open(e, src, options, error);
	int r = in_place_open(e, src, options, error);
	return r == 0 ? check_alias(e, src, error) : r;
}

/* place_find failed. As with cp -n, a directory is kept, and so is a symlink that leads nowhere. */
static int keep_unusable(int r, const struct fcopy_options *options, struct fcopy_error *error)
{
	bool directory = r == -EISDIR && error->advice == FCOPY_ADVICE_NONE;
	if (!options->no_clobber || (!directory && error->advice != FCOPY_ADVICE_REMOVE_LINK))
		return r;
	*error = (struct fcopy_error){0};
	return ENDPOINT_KEPT;
}

static int open_named(struct endpoint *e, const char *path, const struct endpoint *src,
		      const struct fcopy_options *options, char resolved[PATH_MAX],
		      struct fcopy_error *error)
{
	const char *name = stream_names(src->path) ? NULL : src->path;
	*e = (struct endpoint){.fd = -1, .path = resolved};
	*file_of(e) = file_state();
	int r = place_find(&file_of(e)->place, path, name, !options->no_directory, resolved, error);
	if (r < 0)
		return keep_unusable(r, options, error);
	r = open_place(e, src, options, error);
	if (r != 0)
		place_close(&file_of(e)->place);
	return r;
}

int destination_open_in(struct endpoint *e, int dir, const char *name, const char *path,
			const struct endpoint *src, const struct fcopy_options *options,
			bool replace_links, struct fcopy_error *error)
{
	*e = (struct endpoint){.fd = -1, .path = path};
	*file_of(e) = file_state();
	file_of(e)->replace_links = replace_links;
	int r = place_find_in(&file_of(e)->place, dir, name, path, error);
	if (r < 0)
		return keep_unusable(r, options, error);
	/* Opening a FIFO could block, and writing would overwrite a device. */
	if (file_of(e)->place.exists && !S_ISREG(file_of(e)->place.st.st_mode) &&
	    !options->no_clobber)
		r = error_refuse(error, path, EEXIST,
				 "is not a regular file and is not replaced by one",
				 FCOPY_ADVICE_NONE);
	else
		r = open_place(e, src, options, error);
	if (r != 0)
		place_close(&file_of(e)->place);
	return r;
}

int destination_open(struct endpoint *e, const char *path, const struct endpoint *src,
		     const struct fcopy_options *options, char resolved[PATH_MAX],
		     struct fcopy_error *error)
{
	if (!stream_names(path))
		return open_named(e, path, src, options, resolved, error);
	strncpy(resolved, path, PATH_MAX - 1);
	int r = stream_open(e, resolved, STDOUT_FILENO, error);
	return r == 0 ? check_alias(e, src, error) : r;
}

const char *destination_name(const struct endpoint *e, int *dir)
{
	*dir = file_of(e)->place.dir;
	return file_of(e)->place.name;
}
