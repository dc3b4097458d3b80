/* SPDX-License-Identifier: MIT
 * lseek(SEEK_DATA) and ioctl(FIEMAP) as one iterator.
 */
#define _GNU_SOURCE
#include "extents.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/param.h>
#include <unistd.h>

#define BLOCK ((off_t)512) /* of st_blocks */

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

bool extents_miss_data(int fd, const struct stat *st)
{
	const off_t blocks = st->st_blocks * BLOCK;
	/* Besides the data, st_blocks counts the file's metadata: less than 1 %, and a few blocks.
	 */
	off_t explained = (off_t)16 << 10;
	if (blocks <= explained || has_map(fd))
		return false;
	for (off_t at = 0; at < st->st_size && explained < blocks;) {
		off_t data = lseek(fd, at, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO;
		off_t hole = lseek(fd, data, SEEK_HOLE);
		at = hole > data ? hole : st->st_size;
		explained += at - data + (at - data) / 64;
	}
	return explained < blocks;
}
