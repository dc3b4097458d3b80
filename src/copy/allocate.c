/* SPDX-License-Identifier: MIT
 * The destination's blocks: allocated before the first byte, or released where nothing was written.
 */
#include "allocate.h"
#include "conflicts.h"
#include "copy.h"
#include "endpoints/error.h"
#include "endpoints/storage.h"
#include "io/amount.h"
#include "io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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
static bool allocate_is_wanted(const struct copy *c, off_t start, off_t end)
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

static int allocate_range(struct copy *c, off_t start, off_t end, bool required)
{
	c->needs_truncate = true;
	if (end > c->allocated)
		c->allocated = end;
	while (fallocate(c->dst.fd, FALLOC_FL_KEEP_SIZE, start, end - start) < 0) {
		if (errno == EINTR && !io_cancelled(&c->all.io))
			continue;
		/* A full disk fails the copy anyway: better now. Anything else, such as EPERM from
		 * a container's filter, only costs time. */
		bool full = io_is_full(errno) || errno == EFBIG || errno == EIO;
		if (!full && !required && errno != EINTR)
			return 0;
		return error_call(&c->report->error, "fallocate", c->dst.path, errno);
	}
	return 0;
}

int allocate_blocks(struct copy *c, off_t start, off_t end)
{
	if (!allocate_is_wanted(c, start, end))
		return 0;
	return allocate_range(c, start, end, c->options->preallocate == FCOPY_WHEN_ALWAYS);
}

void allocate_ahead(struct copy *c, off_t start, off_t end)
{
	if (!allocate_is_wanted(c, start, end))
		return;
	c->needs_truncate = true;
	c->allocated = end;
	/* Best effort: ENOSPC here does not mean that the data will not fit. */
	(void)!fallocate(c->dst.fd, FALLOC_FL_KEEP_SIZE, start, end - start);
}

int allocate_unwritten(struct copy *c, off_t start, off_t end)
{
	return c->options->preallocate == FCOPY_WHEN_NEVER ? 0
							   : allocate_range(c, start, end, false);
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
	if (r < 0) {
		c->failed = STEP_TRUNCATE;
		return error_call(&c->report->error, "ftruncate", c->dst.path, -r);
	}
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

/* Is there enough disk space for the copy? Compression and quotas can prove the answer wrong, so it
 * is a warning only. */

/* Bytes. A smaller copy ends before a user could react to a warning. */
#define SPACE_MIN         ((uint64_t)64 << 10)
#define SPACE_MIN_OF_MANY ((uint64_t)1 << 20) /* one file of a tree */

/* The bytes of data that are left to write; 0: unknown. */
static uint64_t data_left(const struct copy *c)
{
	const struct fcopy_options *o = c->options;
	uint64_t left = c->report->expected;
	left -= MIN(left, (uint64_t)(c->all.offset - c->first));
	bool keeps_holes = !c->mode->engine && o->sparse != FCOPY_WHEN_NEVER &&
			   o->preallocate != FCOPY_WHEN_ALWAYS;
	if (keeps_holes && S_ISREG(c->src.st.st_mode) && c->src.positional)
		left = MIN(left, (uint64_t)c->src.st.st_blocks * 512);
	return left;
}

/* Within one file system copy_file_range may make a clone, which takes no space. */
static bool may_clone(const struct copy *c)
{
	struct stat dst;
	return mode_uses(c->mode, engine_copy_file_range.name) && fstat(c->dst.fd, &dst) == 0 &&
	       dst.st_dev == c->src.st.st_dev;
}

/* The bytes that the caller may still allocate on the file system of fd; false: unknown. */
static bool free_bytes(int fd, uint64_t *bytes)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0 || fs.f_blocks == 0)
		return false;
	bool reserved = geteuid() == 0 && !system_type_has((unsigned)fs.f_type, SYSTEM_OVERSTATES);
	*bytes = (uint64_t)(reserved ? fs.f_bfree : fs.f_bavail) * (uint64_t)fs.f_frsize;
	return true;
}

/* Records how much space the copy needs and how much is free. Returns whether it is too little;
 * *in_place: it would be enough to overwrite DST. */
static bool lacks_space(struct copy *c, bool *in_place)
{
	struct fcopy_report *r = c->report;
	const struct stat *old = c->dst.old_stat;
	bool overwrites = copy_old(c) == OLD_OVERWRITTEN;
	uint64_t data = data_left(c), spare;
	if (data < (c->shared ? SPACE_MIN_OF_MANY : SPACE_MIN) || !S_ISREG(c->dst.st.st_mode) ||
	    !c->dst.positional || may_clone(c) || !free_bytes(c->dst.fd, &spare))
		return false;
	uint64_t reusable = old ? (uint64_t)old->st_blocks * 512 : 0;
	uint64_t in_old = data - MIN(data, reusable);
	uint64_t needed = overwrites ? in_old : data;
	if (needed == 0)
		return false;
	r->space_needed = needed;
	r->space_free = spare;
	*in_place = old && !overwrites && in_old <= spare && !c->options->resume;
	return needed > spare;
}

void space_check(struct copy *c)
{
	bool in_place;
	if (lacks_space(c, &in_place))
		copy_warn(c, c->dst.path, ENOSPC, "needs more space than is free",
			  in_place ? FCOPY_ADVICE_IN_PLACE : FCOPY_ADVICE_NONE);
}

int space_require(struct copy *c)
{
	bool in_place;
	if (!lacks_space(c, &in_place))
		return 0;
	return error_refuse(&c->report->error, c->dst.path, ENOSPC, "needs more space than is free",
			    FCOPY_ADVICE_FORCE);
}

/* The largest size of this file: the file system refuses every offset above it. ext4 has other
 * limits for a file with extents than for one without. */
static uint64_t largest_size(int fd)
{
	const off_t at = lseek(fd, 0, SEEK_CUR);
	uint64_t fits = 0, fails = (uint64_t)INT64_MAX + 1;
	while (fails - fits > 1) {
		const uint64_t middle = fits + (fails - fits) / 2;
		if (lseek(fd, (off_t)middle, SEEK_SET) >= 0)
			fits = middle;
		else
			fails = middle;
	}
	if (at >= 0)
		lseek(fd, at, SEEK_SET); /* the descriptor may be the caller's */
	return fits;
}

void space_explain_limit(struct copy *c)
{
	struct fcopy_report *r = c->report;
	struct rlimit process = {.rlim_cur = RLIM_INFINITY};
	const uint64_t wanted = (uint64_t)c->first + r->expected;
	char amount[AMOUNT_MAX];
	if (!r->error.call || r->error.path != c->dst.path || !S_ISREG(c->dst.st.st_mode))
		return;
	const uint64_t file = largest_size(c->dst.fd);
	getrlimit(RLIMIT_FSIZE, &process);
	const bool own = process.rlim_cur < file;
	const uint64_t limit = own ? process.rlim_cur : file;
	if (limit >= wanted)
		return;
	amount_write(amount, limit);
	snprintf(r->detail, sizeof(r->detail), "%s: %s %s", strerror(EFBIG), amount,
		 own ? "is the limit of this process (ulimit -f)"
		     : "is the limit of the file system for one file");
	r->error.reason = r->detail;
}

/* lseek(SEEK_DATA) and ioctl(FIEMAP) as one iterator. */

#define BLOCK ((off_t)512) /* of st_blocks */
#define PROBE 4096         /* bytes of a hole that are read */

static off_t map_end(const struct fiemap_extent *m)
{
	return (off_t)(m->fe_logical + m->fe_length);
}

/* Returns the first mapped extent that ends after `at`, or NULL. Calls FIEMAP when the last batch
 * is used up. */
static const struct fiemap_extent *mapped_after(struct extents *x, off_t at)
{
	for (int fresh = 0; fresh < 2; fresh++) {
		unsigned n = x->map.head.fm_mapped_extents;
		for (unsigned i = 0; i < n; i++)
			if (map_end(&x->map.head.fm_extents[i]) > at)
				return &x->map.head.fm_extents[i];
		if (n > 0 && x->map.head.fm_extents[n - 1].fe_flags & FIEMAP_EXTENT_LAST)
			return NULL;
		x->map.head = (struct fiemap){.fm_start = (uint64_t)at,
					      .fm_length = (uint64_t)(x->end - at),
					      .fm_extent_count = EXTENTS_BATCH};
		if (x->no_map || ioctl(x->fd, FS_IOC_FIEMAP, &x->map.head) < 0) {
			x->no_map = true;
			x->map.head.fm_mapped_extents = 0;
			return NULL;
		}
	}
	return NULL;
}

/* Are all blocks of the range mapped and written? */
static bool is_written(struct extents *x)
{
	off_t at = x->at;
	while (at < x->end) {
		const struct fiemap_extent *m = mapped_after(x, at);
		if (!m || (off_t)m->fe_logical > at || m->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
			return x->no_map;
		at = map_end(m);
	}
	return true;
}

void extents_start(struct extents *x, int fd, off_t start, off_t end, const struct stat *st)
{
	*x = (struct extents){.fd = fd,
			      .at = start,
			      .end = end,
			      .hole_end = start,
			      .dense = st->st_blocks * BLOCK >= st->st_size};
	x->whole = x->dense && is_written(x);
	x->map.head.fm_mapped_extents = 0;
}

/* Splits the current hole into holes and unwritten extents, by FIEMAP. */
static void next_in_hole(struct extents *x, struct extent *out)
{
	const struct fiemap_extent *m = mapped_after(x, x->at);
	*out = (struct extent){EXTENT_HOLE, x->at, x->hole_end};
	if (m && (off_t)m->fe_logical > x->at)
		out->end = MIN((off_t)m->fe_logical, x->hole_end);
	else if (m) {
		out->end = MIN(map_end(m), x->hole_end);
		out->kind = m->fe_flags & FIEMAP_EXTENT_UNWRITTEN ? EXTENT_UNWRITTEN : EXTENT_DATA;
	}
}

/* After the last data, the rest is a hole. It ends at the end of the file, which may have been
 * truncated during the copy. */
static bool find_end(struct extents *x)
{
	off_t end = lseek(x->fd, 0, SEEK_END);
	if (end >= 0)
		x->end = MIN(x->end, end);
	return x->at < x->end;
}

bool extents_next(struct extents *x, struct extent *out)
{
	if (x->at >= x->end)
		return false;
	if (x->whole) {
		*out = (struct extent){EXTENT_DATA, x->at, x->end};
		x->at = x->end;
		return true;
	}
	if (x->at >= x->hole_end) {
		off_t data = lseek(x->fd, x->at, SEEK_DATA);
		/* ENXIO is the only errno that means "no more data". */
		bool none = data < 0 && errno == ENXIO;
		if (none && !find_end(x))
			return false;
		x->hole_end = none ? x->end : data < 0 ? x->at : MIN(data, x->end);
	}
	if (x->at < x->hole_end) {
		next_in_hole(x, out);
	} else {
		off_t hole = lseek(x->fd, x->at, SEEK_HOLE);
		/* A hole at `at` means that the file changed between the two calls: read it. */
		*out = (struct extent){EXTENT_DATA, x->at,
				       hole > x->at ? MIN(hole, x->end) : x->end};
	}
	x->at = out->end;
	return true;
}

static bool has_map(int fd)
{
	struct fiemap first = {.fm_length = 1};
	return ioctl(fd, FS_IOC_FIEMAP, &first) == 0;
}

/* Is there a byte other than zero at the start of the first hole? The block is aligned because the
 * file may be open for direct I/O. */
static bool hole_has_data(int fd, off_t size)
{
	static const char zeros[PROBE];
	_Alignas(PROBE) char block[PROBE];
	const off_t data = lseek(fd, 0, SEEK_DATA);
	if (data < 0 && errno != ENXIO)
		return false;
	const off_t hole = data == 0 ? lseek(fd, 0, SEEK_HOLE) : 0;
	if (hole < 0 || hole >= size)
		return false;
	const ssize_t skipped = hole % PROBE, n = pread(fd, block, PROBE, hole - skipped);
	return n > skipped && memcmp(block + skipped, zeros, (size_t)(n - skipped)) != 0;
}

bool extents_miss_data(int fd, const struct stat *st)
{
	const off_t blocks = st->st_blocks * BLOCK;
	/* Besides the data, st_blocks counts the file's metadata: less than 1 %, and a few blocks.
	 */
	off_t explained = (off_t)16 << 10;
	if (has_map(fd))
		return false;
	if (blocks <= explained)
		return hole_has_data(fd, st->st_size);
	for (off_t at = 0; at < st->st_size && explained < blocks;) {
		off_t data = lseek(fd, at, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO;
		off_t hole = lseek(fd, data, SEEK_HOLE);
		at = hole > data ? hole : st->st_size;
		explained += at - data + (at - data) / 64;
	}
	return explained < blocks || hole_has_data(fd, st->st_size);
}
