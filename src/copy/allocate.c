/* SPDX-License-Identifier: MIT
 * The destination's blocks: allocated before the first byte, or released where nothing was written.
 */
#define _GNU_SOURCE
#include "allocate.h"
#include "endpoints/error.h"
#include "endpoints/storage.h"
#include "io/system.h"

#include <fcntl.h>
#include <sys/param.h>
#include <unistd.h>

#define ZEROS ((off_t)64 << 10) /* bytes of zeros between two checks of the rate */

/* Below, the call costs what it saves. */
#define WORTH_SIZE         ((off_t)64 << 10)
#define WORTH_SIZE_OF_MANY ((off_t)128 << 10) /* one file of a tree */

/*
 * A file that replaces another must not be preallocated unless it is flushed: ext4 writes out
 * delayed blocks before a rename (auto_da_alloc), not unwritten ones, and a power cut would leave
 * zeros under the old name.
 */
static bool wanted(const struct copy *c, off_t start, off_t end)
{
	enum endpoint_old old = copy_old(c);
	bool safe = old == OLD_NONE || (c->options->fsync && old == OLD_REPLACED);
	if (end <= start || !c->dst.positional || c->options->preallocate == FCOPY_WHEN_NEVER)
		return false;
	if (c->options->preallocate == FCOPY_WHEN_ALWAYS || !safe || !c->mode->preallocates)
		return c->options->preallocate == FCOPY_WHEN_ALWAYS;
	return c->mode->engine || (end - start >= (c->shared ? WORTH_SIZE_OF_MANY : WORTH_SIZE) &&
				   system_has(c->dst.fd, SYSTEM_ALLOCATES));
}

static int allocate(struct copy *c, off_t start, off_t end, bool required)
{
	c->needs_truncate = true;
	if (end > c->allocated)
		c->allocated = end;
	while (fallocate(c->dst.fd, FALLOC_FL_KEEP_SIZE, start, end - start) < 0) {
		if (errno == EINTR && !io_cancelled(&c->all.io))
			continue;
		/* A full disk fails the copy anyway: better now. Anything else, such as EPERM from
		 * a container's filter, only costs time. */
		bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO;
		if (!full && !required && errno != EINTR)
			return 0;
		return error_call(&c->report->error, "fallocate", c->dst.path, errno);
	}
	return 0;
}

int allocate_blocks(struct copy *c, off_t start, off_t end)
{
	if (!wanted(c, start, end))
		return 0;
	return allocate(c, start, end, c->options->preallocate == FCOPY_WHEN_ALWAYS);
}

void allocate_ahead(struct copy *c, off_t start, off_t end)
{
	if (!wanted(c, start, end))
		return;
	c->needs_truncate = true;
	c->allocated = end;
	/* Best effort: ENOSPC here does not mean that the data will not fit. */
	(void)!fallocate(c->dst.fd, FALLOC_FL_KEEP_SIZE, start, end - start);
}

int allocate_unwritten(struct copy *c, off_t start, off_t end)
{
	return c->options->preallocate == FCOPY_WHEN_NEVER ? 0 : allocate(c, start, end, false);
}

/* For a device, or an old file in which the hole cannot be punched. */
static int write_zeros(struct copy *c, off_t start, off_t end)
{
	struct transfer *t = &c->all;
	int r = 0;
	for (off_t n; r == 0 && start < end; start += n) {
		n = MIN(end - start, ZEROS);
		if (t->monitor && t->monitor->limit_rate > 0)
			n = MIN(n, (off_t)MAX(t->monitor->limit_rate / 10, 1));
		r = io_zero(&t->io, c->dst.fd, start, start + n);
		if (r == 0)
			r = transfer_pace(t, (size_t)n);
	}
	return r;
}

int allocate_hole(struct copy *c, off_t start, off_t end)
{
	c->needs_truncate = true;
	if (copy_old(c) != OLD_OVERWRITTEN) {
		/* Nothing was written there, but XFS allocates ahead of the last write. Past the
		 * end, a direct read would find that reserved but never written, and fail with EIO
		 * (iomap_dio_iter() in fs/iomap/direct-io.c). */
		const bool last = end == c->size && !c->share; /* after a share, others write */
		const off_t ahead = last && end < INT64_MAX - AHEAD_MAX ? AHEAD_MAX : 0;
		if (!io_punch(c->dst.fd, start, end + ahead) && ahead)
			io_punch(c->dst.fd, start, end);
		return 0;
	}
	/* btrfs keeps the block of the old end when the hole goes beyond it. */
	int r = S_ISREG(c->dst.st.st_mode) && end > c->dst.st.st_size ? io_truncate(c->dst.fd, end)
								      : 0;
	if (r < 0)
		return error_call(&c->report->error, "ftruncate", c->dst.path, -r);
	r = io_punch(c->dst.fd, start, end) ? 0 : write_zeros(c, start, end);
	return r < 0 ? error_call(&c->report->error, "pwrite", c->dst.path, -r) : 0;
}

int allocate_fill(struct copy *c, off_t end)
{
	static const char zeros[65536];
	struct transfer *t = &c->all;
	struct stat st;
	size_t put;
	if (storage_is_known(c->dst.fd) || fstat(c->dst.fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size >= end)
		return -ESPIPE;
	int r = 0;
	for (off_t at = st.st_size; r == 0 && at < end; at += (off_t)put) {
		r = io_write_all(&t->io, c->dst.fd, zeros,
				 (size_t)MIN(end - at, (off_t)sizeof(zeros)), at, &put);
		if (r == 0)
			r = transfer_pace(t, put);
	}
	if (r == 0)
		c->fills = true;
	return r;
}
