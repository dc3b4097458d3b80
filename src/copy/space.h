/* SPDX-License-Identifier: MIT
 *
 * Is there enough space?
 */
#ifndef COPY_SPACE_H
#define COPY_SPACE_H

#include "copy.h"

/* Compares the space that the copy needs with what is free, and warns. */
void space_check(struct copy *);
/* The same, but fails: returns 0, or -ENOSPC with the refusal recorded. */
int space_require(struct copy *);
/* A write of the copy failed with EFBIG: says in the error how much a file may have there, if that
 * is less than the copy needs. */
void space_explain_limit(struct copy *);

#endif
