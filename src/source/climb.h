/* SPDX-License-Identifier: MIT
 *
 * The directories above a directory.
 */
#ifndef SOURCE_CLIMB_H
#define SOURCE_CLIMB_H

#include "io/result.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Goes up by ".." from the open directory `dir` to the root, and visits both and all between. Ends
 * early if visit() returns true. Returns 1 then; 0: the root was visited; or -errno with the call.
 */
int climb(int dir, bool (*visit)(const struct stat *, void *arg), void *arg, struct failure *);

#endif
