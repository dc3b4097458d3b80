/* SPDX-License-Identifier: MIT
 *
 * A file that replaces DST when it is complete.
 */
#ifndef ENDPOINTS_REPLACE_H
#define ENDPOINTS_REPLACE_H

#include "endpoint.h"

/* A part of destination_open(). Leaves e's place open after a failure. */
int replace_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		 struct fcopy_error *);
/* The permissions that a new copy of this source gets, before the umask. */
mode_t replace_new_mode(const struct endpoint *src);

#endif
