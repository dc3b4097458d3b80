/* SPDX-License-Identifier: MIT
 *
 * --verify, and what an earlier run has copied.
 */
#ifndef COPY_VERIFY_H
#define COPY_VERIFY_H

#include "copy.h"

/* Each returns 0, or -errno with the failure recorded. */
int verify_copy(struct copy *); /* the whole copy, or its share, before the commit */
/* DST.fcopy-part: sets c->all.offset to the end of the prefix that equals the source, rounded down
 * to a multiple of 4 KiB, or to 0 if only a clone is allowed, and truncates the part to it. */
int verify_prefix(struct copy *);

#endif
