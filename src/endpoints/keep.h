/* SPDX-License-Identifier: MIT
 *
 * What the copy keeps of the file that it replaces.
 */
#ifndef ENDPOINTS_KEEP_H
#define ENDPOINTS_KEEP_H

#include "endpoint.h"

/* Gives the open copy the owner and group of the old file. *mode: the mode that it has now; 0 after
 * a chown(2), which may change it. */
int keep_owner(const struct endpoint *e, const struct place *, bool force, mode_t *mode,
	       struct fcopy_error *);
/* Gives it the ACL and security label of the old file. listed: the storage lists all attributes.
 * Also returns KEEP_NONE: neither file has any. */
#define KEEP_NONE 1
int keep_acl(const struct endpoint *e, const struct place *, bool force, bool listed,
	     struct fcopy_error *);

#endif
