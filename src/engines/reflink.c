/* SPDX-License-Identifier: MIT
 * ioctl(FICLONE), ioctl_ficlone(2): the destination shares the source's extents; no byte is moved.
 */
#include "engine.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/stat.h>

/* Makes one call. Returns 0, RESULT_NEXT or -errno. arg: a descriptor, or a pointer. */
static int clone_by(struct transfer *t, const char *call, unsigned long request, uintptr_t arg)
{
	t->io.calls++;
	while (ioctl(t->dst, request, arg) < 0) {
		/* As in coreutils, only these are failures; any other errno means "unsupported". */
		bool real = io_is_full(errno) || errno == EIO || errno == ENOMEM;
		if (errno == EINTR && !io_cancelled(&t->io))
			continue;
		if (real || errno == EINTR)
			return transfer_fail(t, call, SIDE_BOTH, -errno);
		return transfer_refuse(t, call, SIDE_BOTH, errno);
	}
	return 0;
}

static int clone_whole(struct transfer *t)
{
	return clone_by(t, "ioctl(FICLONE)", FICLONE, (uintptr_t)t->src);
}

/* First clones SRC's whole blocks. If that succeeds, truncates DST to the size of SRC and clones
 * all. EINVAL for another reason, such as nodatacow on btrfs, leaves DST as it was. If SRC is
 * smaller than a block, the first call clones nothing at the end of SRC; the file system checks it
 * anyway. */
static int clone_over_longer(struct transfer *t, off_t size, const struct stat *dst)
{
	const off_t whole = size - size % dst->st_blksize;
	struct file_clone_range range = {.src_fd = t->src,
					 .src_offset = whole ? 0 : (uint64_t)size,
					 .src_length = (uint64_t)whole};
	int r = clone_by(t, "ioctl(FICLONERANGE)", FICLONERANGE, (uintptr_t)&range);
	if (r)
		return r;
	r = io_truncate(t->dst, size);
	return r < 0 ? transfer_fail(t, "ftruncate", SIDE_DST, r) : clone_whole(t);
}

/* FICLONE fails with EINVAL if SRC's last block is partial and DST, written in place, is longer. */
static int clone_file(struct transfer *t, off_t size)
{
	struct stat dst;
	int r = clone_whole(t);
	if (r != RESULT_NEXT || t->refusal != EINVAL || t->fresh)
		return r;
	if (fstat(t->dst, &dst) < 0)
		return transfer_fail(t, "fstat", SIDE_DST, -errno);
	return dst.st_size > size && dst.st_blksize > 0 ? clone_over_longer(t, size, &dst) : r;
}

static int reflink_copy(struct transfer *t)
{
	struct stat src, dst;
	if (!t->src_positional || !t->dst_positional)
		return transfer_refuse(t, NULL, SIDE_BOTH, ESPIPE);
	if (t->offset != 0)
		return transfer_refuse(t, NULL, SIDE_BOTH, EINVAL);
	src.st_size = t->size;
	if (t->size == 0 && fstat(t->src, &src) < 0)
		return transfer_fail(t, "fstat", SIDE_SRC, -errno);
	if (t->end < src.st_size) /* FICLONE clones whole files only */
		return transfer_refuse(t, NULL, SIDE_BOTH, EINVAL);
	int r = clone_file(t, src.st_size);
	if (r)
		return r;
	if (fstat(t->dst, &dst) < 0)
		return transfer_fail(t, "fstat", SIDE_DST, -errno);
	off_t before = src.st_size;
	src.st_size = dst.st_size; /* what was cloned, if dst was empty */
	if (!t->fresh && fstat(t->src, &src) < 0)
		return transfer_fail(t, "fstat", SIDE_SRC, -errno);
	/* The source may grow or shrink during the clone, and a destination that existed may be
	 * longer: only the smallest of the three sizes is certainly cloned. */
	transfer_skip(t, MIN(before, MIN(src.st_size, dst.st_size)));
	t->ended = before == src.st_size && before == dst.st_size;
	return 0;
}

const struct engine engine_reflink = {.name = "reflink", .copy = reflink_copy};
