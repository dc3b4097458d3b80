/* SPDX-License-Identifier: MIT
 *
 * HOW_LINK, HOW_RENAME and HOW_PART: a file that replaces DST when it is complete.
 */
#ifndef ENDPOINTS_REPLACE_H
#define ENDPOINTS_REPLACE_H

#include "endpoint.h"

#define REPLACE_UNFIT 1 /* the storage lacks this way */

/* Opens the file of e's slot. Returns 0, REPLACE_UNFIT, or -errno with the failure recorded. */
int replace_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		 struct fcopy_error *);
/* Gives a named temporary file owner and mode, now that it is complete. Earlier, other users could
 * have opened it. Returns 1, or -errno with the failure recorded. */
int replace_finish(struct endpoint *e, const struct fcopy_options *, struct fcopy_error *);
/* Gives the file its name. Returns as endpoint_ops.commit. */
int replace_commit(struct endpoint *e, const struct fcopy_options *, struct fcopy_error *);
/* The permissions that a new copy of this source gets, before the umask. */
mode_t replace_new_mode(const struct endpoint *src);

#endif
