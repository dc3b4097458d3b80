/* SPDX-License-Identifier: MIT
 *
 * Blocks and holes of the destination.
 */
#ifndef COPY_ALLOCATE_H
#define COPY_ALLOCATE_H

#include "copy.h"

#define AHEAD_MAX ((off_t)8 << 30) /* XFS_MAX_BMBT_EXTLEN, in blocks of 4 KiB */

/* Allocates the destination's blocks of [start, end) if options and mode ask for it,
 * without changing its size. Returns 0, or -errno with the failure recorded. */
int allocate_blocks(struct copy *, off_t start, off_t end);

/* The same for a stream, which may end before `end`: a failure is ignored. */
void allocate_ahead(struct copy *, off_t start, off_t end);

/* Makes [start, end) of the destination read as zeros without writing, where that is possible. */
int allocate_hole(struct copy *, off_t start, off_t end);

/* Storage that is written in order, such as an object store, refuses a write past the end: writes
 * zeros from there to `end`. Only for a single writer. Returns -ESPIPE if that is not the reason,
 * or -errno. */
int allocate_fill(struct copy *c, off_t end);

/* Allocates [start, end) without writing, as in the source. */
int allocate_unwritten(struct copy *, off_t start, off_t end);

#endif
