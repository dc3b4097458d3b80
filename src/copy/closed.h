/* SPDX-License-Identifier: MIT
 *
 * Storage that sets the modification time when a file is closed.
 */
#ifndef COPY_CLOSED_H
#define COPY_CLOSED_H

#include "copy.h"

/* Some storage sets the modification time when a file is closed. copy_hold returns an
 * O_PATH descriptor of DST before the commit, or -1 if that is not to be expected. After the commit
 * copy_look_again takes it, and the result of the commit; if that is 0, it sets the time again if
 * it has changed. Returns the result, or -errno with the failure recorded. */
int copy_hold(const struct copy *);
int copy_look_again(struct copy *, int held, int committed);

#endif
