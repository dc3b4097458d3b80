/* SPDX-License-Identifier: MIT
 *
 * The attributes of a copy: those of SRC.
 */
#ifndef ENDPOINTS_METADATA_H
#define ENDPOINTS_METADATA_H

#include "endpoint.h"

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
	unsigned required; /* options.preserve_required */
	bool reused;     /* dst is of an earlier attempt: it may have attributes that src has not */
	struct stat now; /* of dst after its times were set; st_nlink 0: not asked yet */
};
/* Gives pair->dst one attribute of pair->src. */
int metadata_copy_attribute(enum fcopy_attribute, struct metadata_pair *, struct fcopy_error *);
/* Reads back what of the attributes in `set` could be set without an error, and is not what was
 * set: the modification time, to the second, or if it is not required, to the step of the file
 * system; and, unless that is known to keep modes, the mode. The result is in *lost. Returns
 * whether that file system is known. */
bool metadata_read_back(unsigned set, struct metadata_pair *, struct storage *, unsigned *lost);
/* The error for an attribute that was read back as another one. Returns -errno. */
int metadata_fail_stored(enum fcopy_attribute, const char *path, struct fcopy_error *);

/* Does this errno mean that the file has no such attribute, or its file system has none? */
bool metadata_is_absent(int err);
/* Is this an extended attribute that a copy has only if its source has it? Not an ACL, which
 * belongs to the mode; nor what file systems and indexers make themselves. */
bool metadata_is_removable(const char *name);
/* Removes an extended attribute, if there is one. Returns 0 or -errno. */
int metadata_remove(int fd, const char *name);
/* Without privilege the owner cannot be set, but a group that the user belongs to can. Returns 0,
 * or -errno if the owner or the group was not set. */
int metadata_set_owner(int fd, uid_t uid, gid_t gid);

#endif
