/* SPDX-License-Identifier: MIT
 *
 * The checks and changes between the last byte and the commit.
 */
#ifndef COPY_SETTLE_H
#define COPY_SETTLE_H

#include "copy.h"
#include "endpoints/attributes.h"

/* The checks and changes between the last byte and the commit. Returns 0, or -errno with
 * the failure recorded. */
int copy_settle(struct copy *);
/* Fails with EINTR if the copy is cancelled. */
int copy_check_cancelled(struct copy *);
/* The copy lacks attributes that are to be preserved: fails if one of them is required, otherwise
 * warns. */
int copy_lose_attribute(struct copy *, unsigned attributes, const struct fcopy_error *);
/* Gives the copy, a regular file, those of the source. reused: see struct attributes_pair. Returns
 * 0, or what lose, whose argument is the copy, returned. */
int copy_attributes(struct copy *, bool reused, attributes_loss *lose);
/* Flushes the data; with metadata, or options.preserve, also owner, mode and attributes. */
int copy_flush(struct copy *, bool metadata);

#endif
