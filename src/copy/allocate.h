/* SPDX-License-Identifier: MIT
 *
 * Blocks and holes of the destination.
 */
#ifndef COPY_ALLOCATE_H
#define COPY_ALLOCATE_H

#include "copy.h"

#include <linux/fiemap.h>
#include <stdbool.h>
#include <sys/stat.h>

#define AHEAD_MAX ((off_t)8 << 30) /* XFS_MAX_BMBT_EXTLEN, in blocks of 4 KiB */

/* Allocates the destination's blocks of [start, end) if options and mode ask for it,
 * without changing its size. Returns 0, or -errno with the failure recorded. */
int allocate_blocks(struct copy *, off_t start, off_t end);

/* Allocates blocks for a stream, which may end before `end`: a failure is ignored. */
void allocate_ahead(struct copy *, off_t start, off_t end);

/* Makes [start, end) of the destination read as zeros without writing, where that is possible. */
int allocate_hole(struct copy *, off_t start, off_t end);

/* Storage that is written in order, such as an object store, refuses a write past the end: writes
 * zeros from there to `end`. Only for a single writer. Returns -ESPIPE if that is not the reason,
 * or -errno. */
int allocate_fill(struct copy *c, off_t end);

/* Allocates [start, end) without writing, as in the source. */
int allocate_unwritten(struct copy *, off_t start, off_t end);

/* Is there enough space? */

/* Compares the space that the copy needs with what is free, and warns. */
void space_check(struct copy *);
/* Compares it, and fails in place of a warning: returns 0, or -ENOSPC with the refusal recorded. */
int space_require(struct copy *);
/* A write of the copy failed with EFBIG: says in the error how much a file may have there, if that
 * is less than the copy needs. */
void space_explain_limit(struct copy *);

/* Iterates over the extents of a file. Only SEEK_DATA decides what is data, because it sees dirty
 * pages that FIEMAP does not. FIEMAP only shows which holes have blocks: the unwritten extents.
 *
 * SEEK_DATA has reported holes where there was data (ZFS, some FUSE file systems). So a hole is
 * believed only if nothing contradicts it: FIEMAP must not have written blocks there, and a file
 * whose st_blocks covers its size has holes only where FIEMAP confirms them. If all extents of such
 * a file are written, or the file system has no FIEMAP, SEEK_DATA is not called. */

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
	bool dense;     /* st_blocks covers the size */
	bool whole;     /* it has no holes: all is data */
	union {
		struct fiemap head;
		char room[sizeof(struct fiemap) + EXTENTS_BATCH * sizeof(struct fiemap_extent)];
	} map; /* the last result of FIEMAP */
};

/* st: the file's. */
void extents_start(struct extents *, int fd, off_t start, off_t end, const struct stat *st);

/* Stores the next extent, which is never empty. Returns false at the end. If the file system does
 * not support SEEK_DATA, the whole range is data. */
bool extents_next(struct extents *, struct extent *);

/* Without FIEMAP: has the file more blocks than the data that SEEK_DATA finds, or does its first
 * hole start with other bytes than zeros (gocryptfs -reverse)? Then the holes may be data, and the
 * caller reads them. The blocks of compressed data prove nothing. */
bool extents_miss_data(int fd, const struct stat *st);

#endif
