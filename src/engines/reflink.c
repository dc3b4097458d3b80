/* SPDX-License-Identifier: MIT
 * ioctl(FICLONE), ioctl_ficlone(2): the destination shares the source's extents; no byte is moved.
 */
#include "engine.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* Returns 0, ENGINE_NEXT or -errno. */
static int clone_all(struct transfer *t)
{
	while (ioctl(t->dst, FICLONE, t->src) < 0) {
		/* Only these are failures; every other errno means "not here" (coreutils knows). */
		bool real = errno == EIO || errno == ENOMEM || errno == ENOSPC || errno == EDQUOT;
		if (errno == EINTR && !io_cancelled(&t->io))
			continue;
		if (real || errno == EINTR)
			return transfer_fail(t, "ioctl(FICLONE)", SIDE_BOTH, -errno);
		return transfer_refuse(t, "ioctl(FICLONE)", SIDE_BOTH, errno);
	}
	return 0;
}

static off_t least(off_t a, off_t b)
{
	return a < b ? a : b;
}

static int copy(struct transfer *t)
{
	struct stat src, dst;
	if (t->offset != 0 || !t->src_positional || !t->dst_positional)
		return transfer_refuse(t, "ioctl(FICLONE)", SIDE_BOTH, EINVAL);
	if (fstat(t->src, &src) < 0)
		return transfer_fail(t, "fstat", SIDE_SRC, -errno);
	if (t->end < src.st_size) /* FICLONE knows only whole files */
		return transfer_refuse(t, "ioctl(FICLONE)", SIDE_BOTH, EINVAL);
	t->io.calls++;
	int r = clone_all(t);
	if (r)
		return r;
	if (fstat(t->dst, &dst) < 0)
		return transfer_fail(t, "fstat", SIDE_DST, -errno);
	off_t before = src.st_size;
	if (fstat(t->src, &src) < 0)
		return transfer_fail(t, "fstat", SIDE_SRC, -errno);
	/* The source may grow or shrink meanwhile, and what is in place be longer: that much is
	 * certain. */
	transfer_skip(t, least(before, least(src.st_size, dst.st_size)));
	return 0;
}

const struct engine engine_reflink = {.name = "reflink", .falls_back = true, .copy = copy};
