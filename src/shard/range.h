/* SPDX-License-Identifier: MIT
 *
 * Ranges of one file.
 */
#ifndef SHARD_RANGE_H
#define SHARD_RANGE_H

#include "copy/copy.h"

#define RANGE_UNIT  ((off_t)1 << 20)   /* the bounds of ranges are multiples of this */
#define RANGE_SIZE  ((off_t)128 << 20) /* of a range, at most; a large file has about ... */
#define RANGES_MOST 1024               /* ... so many: each has two files in the part */

/* Into how many ranges a file is divided, for n shards: a multiple of n. Only n and the size decide
 * that, so that it is the same for all shards. */
unsigned range_count(unsigned n, off_t size);
/* Range i of n: bytes [*start, *end). */
void range_of(unsigned n, unsigned i, off_t size, off_t *start, off_t *end);
/* Copies the range [first, last) of *c, which may be empty, into a file that has `size` bytes
 * before and afterwards. again: an interrupted attempt may have copied other bytes, where the
 * source has a hole now. Returns 0, also if the source ended early: then c->all.offset < c->last;
 * or -errno with the failure recorded. */
int range_fill(struct copy *c, off_t size, bool again);

/* A file whose ends are open. Returns 0 or -errno, recorded. */
int shard_copy_file(struct copy *);

#endif
