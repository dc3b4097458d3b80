/* SPDX-License-Identifier: MIT
 *
 * The attributes of a copy.
 */
#ifndef ENDPOINTS_METADATA_H
#define ENDPOINTS_METADATA_H

#include "endpoint.h"

/* The permissions that the default ACL of a directory allows a new file at most. Returns false if
 * the directory has none: then the umask applies. */
bool metadata_default_mode(int dir, mode_t *mode);

/* With an access ACL the group bits of a mode are the ACL's mask. Returns the mode of a copy
 * without the ACL, in which the group has no more than the entry group:: allows. value: the
 * attribute. */
mode_t metadata_group_mode(const void *value, size_t size, mode_t mode);

/* All attributes, in the order in which a copy must get them. */
#define METADATA_ATTRIBUTES 4
extern const enum fcopy_attribute metadata_order[METADATA_ATTRIBUTES];
#define PRESERVE_IMPOSSIBLE "attributes are preserved between files only"
/* The copy has another descriptor than when an earlier attempt began: metadata_pair.reused. */
bool metadata_is_reused(const struct endpoint *dst);
/* Two open files, or two open directories. */
struct metadata_pair {
	int src, dst;
	const struct stat *st; /* of the source */
	const char *src_path, *dst_path;
	bool reused;     /* dst is of an earlier attempt: it may have attributes that src has not */
	struct stat now; /* of dst after its times were set; st_nlink 0: not asked yet */
};
/* Gives pair->dst one attribute of pair->src. */
int metadata_copy_attribute(enum fcopy_attribute, struct metadata_pair *, struct fcopy_error *);
/* Reads back what of the attributes in `set` could be set without an error, and is not what was
 * set: the modification time, to the second; and, unless the file system is known to keep modes,
 * the mode. The result is in *lost. Returns whether that file system is known. */
bool metadata_read_back(unsigned set, struct metadata_pair *, struct storage *, unsigned *lost);
/* The error for an attribute that was read back as another one. Returns -errno. */
int metadata_fail_stored(enum fcopy_attribute, const char *path, struct fcopy_error *);

/* Give the open copy the owner and group, or the ACL and security label, of the old file. */
int metadata_keep_owner(const struct endpoint *e, const struct place *, bool force,
			struct fcopy_error *);
int metadata_keep_acl(const struct endpoint *e, const struct place *, bool force,
		      struct fcopy_error *);

#endif
