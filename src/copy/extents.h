/* SPDX-License-Identifier: MIT
 *
 * Iterates over the extents of a file. Only SEEK_DATA decides what is data, because it sees dirty
 * pages that FIEMAP does not. FIEMAP only shows which holes have blocks: the unwritten extents.
 */
#ifndef COPY_EXTENTS_H
#define COPY_EXTENTS_H

#include <linux/fiemap.h>
#include <stdbool.h>
#include <sys/types.h>

#define EXTENTS_BATCH 32

enum extent_kind { EXTENT_DATA, EXTENT_HOLE, EXTENT_UNWRITTEN };

struct extent {
	enum extent_kind kind;
	off_t start, end;
};

struct extents {
	int fd;
	off_t at, end;  /* the rest of the range */
	off_t hole_end; /* > at: the current hole ends here */
	bool no_map;    /* the file system has no FIEMAP */
	union {
		struct fiemap head;
		char room[sizeof(struct fiemap) + EXTENTS_BATCH * sizeof(struct fiemap_extent)];
	} map; /* the last result of FIEMAP */
};

void extents_start(struct extents *, int fd, off_t start, off_t end);

/* Stores the next extent, which is never empty. Returns false at the end. If the file system does
 * not support SEEK_DATA, the whole range is data. */
bool extents_next(struct extents *, struct extent *);

#endif
