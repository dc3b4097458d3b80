/* SPDX-License-Identifier: MIT
 *
 * The extents of a file, one after the other. What is data, SEEK_DATA alone decides: it sees dirty
 * pages that FIEMAP does not. FIEMAP only tells which of its holes have blocks (are unwritten).
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
	off_t at, end;  /* what is left */
	off_t hole_end; /* > at: we are in a hole that ends here */
	bool no_map;    /* the file system has no FIEMAP */
	union {
		struct fiemap head;
		char room[sizeof(struct fiemap) + EXTENTS_BATCH * sizeof(struct fiemap_extent)];
	} map; /* what FIEMAP said last */
};

void extents_start(struct extents *, int fd, off_t start, off_t end);

/* The next extent, never empty. False at the end. A file system that cannot tell is all data. */
bool extents_next(struct extents *, struct extent *);

#endif
