/* SPDX-License-Identifier: MIT
 * Writes into an existing inode: regular files with --inplace, devices and FIFOs always.
 */
#include "io/system.h"
#include "replace.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

enum fcopy_advice in_place_advice(const struct endpoint *e)
{
	const struct place *p = &file_of(e)->place;
	return p->exists && !system_has(p->dir, SYSTEM_NO_WRITE) &&
		       place_access(p, p->name, W_OK) == 0
		   ? FCOPY_ADVICE_IN_PLACE_AUTO
		   : FCOPY_ADVICE_NONE;
}

int device_size(int fd, off_t *size)
{
	uint64_t bytes;
	if (ioctl(fd, BLKGETSIZE64, &bytes) < 0)
		return -errno;
	*size = (off_t)bytes;
	return 0;
}

void in_place_release_blocks(const struct endpoint *e, off_t allocated)
{
	struct stat st;
	if (file_of(e)->slot.how == HOW_WRITE && S_ISREG(e->st.st_mode) && fstat(e->fd, &st) == 0 &&
	    allocated > st.st_size)
		(void)io_truncate(e->fd, st.st_size);
}

/* Object stores accept only whole files that are written in order; some small file systems have no
 * ftruncate(2). open(2) with O_TRUNC works there: cp(1) uses it. A full disk is another failure. */
bool in_place_start_over(struct endpoint *e, const struct fcopy_error *error)
{
	bool full = io_is_full(error->err) || error->err == EFBIG;
	if (file_of(e)->slot.how != HOW_WRITE || full || error->err == EINTR ||
	    !S_ISREG(e->st.st_mode) || storage_is_known(e->fd))
		return false;
	int access = fcntl(e->fd, F_GETFL) & O_ACCMODE;
	int fd = open(io_proc_path(e->fd).text, access | O_TRUNC | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	close(e->fd);
	e->fd = fd;
	return true;
}

/* Checks that the descriptor is the file that the place is of, and that the data fits. */
static int in_place_check(struct endpoint *e, const struct endpoint *src, uint64_t count,
			  struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	if (fstat(e->fd, &e->st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (!same_inode(&e->st, &p->st))
		return error_refuse(error, e->path, ESTALE, "was replaced while it was opened",
				    FCOPY_ADVICE_NONE);
	if (!S_ISBLK(e->st.st_mode))
		return 0;
	if (device_size(e->fd, &e->st.st_size) < 0)
		return error_call(error, "ioctl(BLKGETSIZE64)", e->path, errno);
	off_t end = e->st.st_size;
	if (src->positional && src->st.st_size > end && (count == 0 || count > (uint64_t)end))
		return error_refuse(error, e->path, ENOSPC, "the device is smaller than the source",
				    FCOPY_ADVICE_NONE);
	return 0;
}

/* Opens the file with these flags, which may truncate it or wait for a lease, only if the name is
 * still that of the inode. Returns -1 otherwise: ESTALE. */
static int open_checked(const struct place *p, int flags)
{
	struct stat st;
	int path = p->target >= 0 ? fcntl(p->target, F_DUPFD_CLOEXEC, 0)
				  : openat(p->dir, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path < 0)
		return -1;
	int fd = -1, err = ESTALE;
	if (fstat(path, &st) == 0 && same_inode(&st, &p->st) &&
	    S_ISREG(st.st_mode) == S_ISREG(p->st.st_mode)) {
		fd = open(io_proc_path(path).text, flags);
		err = errno;
	}
	close(path);
	errno = err;
	return fd;
}

/* Opens a regular file with O_NONBLOCK: a FIFO that was put in its place would wait for a reader.
 * EAGAIN then means that the file has a lease (fcntl(2)). */
static int open_existing(const struct place *p, int flags)
{
	const int quick = S_ISREG(p->st.st_mode) ? O_NONBLOCK : 0;
	const int fd = p->target >= 0 ? open(io_proc_path(p->target).text, flags | quick)
				      : openat(p->dir, p->name, flags | quick | O_NOFOLLOW);
	return fd < 0 && errno == EAGAIN && quick ? open_checked(p, flags) : fd;
}

static int in_place_busy(const char *path, struct fcopy_error *error)
{
	return error_refuse(error, path, EBUSY, "the device is mounted or in use",
			    FCOPY_ADVICE_NONE);
}

/* Opens it only to read: a close after writing is an event for udev(7). */
int in_place_rehearse(struct endpoint *e, const struct stat *src, struct fcopy_error *error)
{
	const struct endpoint from = {.positional = true, .st = *src};
	const struct place *p = &file_of(e)->place;
	if (!S_ISBLK(p->st.st_mode))
		return 0;
	e->fd = open_existing(p, O_RDONLY | O_NOCTTY | O_CLOEXEC | O_EXCL);
	if (e->fd < 0) /* it may be writable only */
		return errno == EBUSY ? in_place_busy(e->path, error) : 0;
	const int r = in_place_check(e, &from, 0, error);
	endpoint_close(e);
	return r;
}

int in_place_open(struct endpoint *e, const struct endpoint *src, struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	bool positional = S_ISREG(p->st.st_mode) || S_ISBLK(p->st.st_mode);
	/* --verify reads it later: refuse before the first byte a file that may not be read. */
	int access = e->options->verify && positional ? O_RDWR : O_WRONLY;
	/* O_EXCL on a block device: not while it is mounted or otherwise in use (open(2)). */
	int flags = access | O_NOCTTY | O_CLOEXEC | (S_ISBLK(p->st.st_mode) ? O_EXCL : 0);
	e->fd = open_existing(p, flags);
	/* Some object stores open an existing file for writing only if it is truncated. */
	if (e->fd < 0 && (errno == EPERM || errno == EINVAL || errno == EOPNOTSUPP) &&
	    S_ISREG(p->st.st_mode) && !storage_is_known(p->dir))
		e->fd = open_checked(p, flags | O_TRUNC);
	if (e->fd < 0 && errno == EBUSY)
		return in_place_busy(e->path, error);
	if (e->fd < 0)
		return error_proc(error, "open", e->path, errno);
	e->visible = S_ISREG(p->st.st_mode) ? IN_PLACE_REASON : NULL;
	e->positional = positional;
	return in_place_check(e, src, e->options->count, error);
}
