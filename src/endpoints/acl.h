/* SPDX-License-Identifier: MIT
 *
 * ACLs as permissions.
 */
#ifndef ENDPOINTS_ACL_H
#define ENDPOINTS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The permissions that the default ACL of a directory allows a new file at most. Returns false if
 * the directory has none: then the umask applies. */
bool acl_default_mode(int dir, mode_t *mode);

/* With an access ACL the group bits of a mode are the ACL's mask. Returns the mode of a copy
 * without the ACL, in which the group has no more than the entry group:: allows. value: the
 * attribute. */
mode_t acl_group_mode(const void *value, size_t size, mode_t mode);

#endif
