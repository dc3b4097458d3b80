/* SPDX-License-Identifier: MIT
 * ioctl(FICLONE), ioctl_ficlone(2): the destination shares the source's extents; no byte is moved.
 */
#include "engine.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/stat.h>

/* Returns 0, RESULT_NEXT or -errno. */
static int clone_file(struct transfer *t)
{
	while (ioctl(t->dst, FICLONE, t->src) < 0) {
		/* As in coreutils, only these are failures; any other errno means "unsupported". */
		bool real = io_is_full(errno) || errno == EIO || errno == ENOMEM;
		if (errno == EINTR && !io_cancelled(&t->io))
			continue;
		if (real || errno == EINTR)
			return transfer_fail(t, "ioctl(FICLONE)", SIDE_BOTH, -errno);
		return transfer_refuse(t, "ioctl(FICLONE)", SIDE_BOTH, errno);
	}
	return 0;
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
	t->io.calls++;
	int r = clone_file(t);
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
