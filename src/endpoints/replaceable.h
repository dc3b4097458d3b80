/* SPDX-License-Identifier: MIT
 *
 * Can an existing file be replaced?
 */
#ifndef ENDPOINTS_REPLACEABLE_H
#define ENDPOINTS_REPLACEABLE_H

#include "endpoint.h"

/* Refuses an existing file that cannot be replaced. replace_open calls it, unless options.shard is
 * set: then the caller opens the part, too. */
int replace_check(struct endpoint *e, const struct fcopy_options *, struct fcopy_error *);

/* FCOPY_ADVICE_IN_PLACE_AUTO if that could succeed. */
enum fcopy_advice replace_in_place_advice(const struct endpoint *e);
/* Shards cannot write in place: removes that advice. Returns r. */
int replace_advise(const struct fcopy_options *, int r, struct fcopy_error *);
/* A named temporary file gets its owner last. Checks now, with a probe, that this will work. e->fd
 * is open or -1. Returns 0, or -errno with the failure recorded. */
int replace_check_owner(const struct endpoint *e, const struct fcopy_options *,
			struct fcopy_error *);

#endif
