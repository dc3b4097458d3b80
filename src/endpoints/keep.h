/* SPDX-License-Identifier: MIT
 *
 * What the copy keeps of the file that it replaces.
 */
#ifndef ENDPOINTS_KEEP_H
#define ENDPOINTS_KEEP_H

#include "endpoint.h"

/* Give the open copy the owner and group, or the ACL and security label, of the old file. */
int keep_owner(const struct endpoint *e, const struct place *, bool force, struct fcopy_error *);
int keep_acl(const struct endpoint *e, const struct place *, bool force, struct fcopy_error *);

#endif
