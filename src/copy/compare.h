/* SPDX-License-Identifier: MIT
 *
 * Compares the bytes of source and destination.
 */
#ifndef COPY_COMPARE_H
#define COPY_COMPARE_H

#include "copy.h"

/* Compares [start, end) of source and destination. Returns the offset of the first
 * difference, or `end`, or -errno with the failure recorded. past_cache: read both from the
 * storage, with O_DIRECT; *cached is set if a file does not support that and was read through the
 * page cache. reads_holes: or what is a hole in both files is equal. */
off_t compare_files(struct copy *, off_t start, off_t end, bool past_cache, bool reads_holes,
		    bool *cached);

/* Reads the destination's first `end` bytes from the storage. Returns 1 if c->sum is their sum, 0
 * if it is not, or -errno with the failure recorded. *cached as above. */
int compare_sum(struct copy *c, off_t end, bool *cached);

/* --verify, and what an earlier run has copied. */

/* Each returns 0, or -errno with the failure recorded. */
int verify_copy(struct copy *); /* the whole copy, or its share, before the commit */
/* DST.fcopy-part: sets c->all.offset to the end of the prefix that equals the source, rounded down
 * to a multiple of 4 KiB, or to 0 if only a clone is allowed, and truncates the part to it. */
int verify_prefix(struct copy *);

#endif
