/* SPDX-License-Identifier: MIT
 *
 * A copy with --resume that has nothing left to copy.
 */
#ifndef COPY_COMPLETE_H
#define COPY_COMPLETE_H

#include "copy.h"

/* Has DST all bytes of the open SRC already, so that a copy with options.resume only
 * has to set attributes? Returns 1, 0, or -errno with the failure recorded. */
int copy_complete(struct copy *, const struct operand *dst);

#endif
