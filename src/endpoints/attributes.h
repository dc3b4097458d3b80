/* SPDX-License-Identifier: MIT
 *
 * The attributes of a copy: those of SRC. Files, directories, symlinks and special files get them
 * here.
 */
#ifndef ENDPOINTS_ATTRIBUTES_H
#define ENDPOINTS_ATTRIBUTES_H

#include "endpoint.h"
#include "storage.h"
#include "xattr.h"

#define PRESERVE_IMPOSSIBLE "attributes are preserved between files only"

/* Two open files of one type. */
struct attributes_pair {
	struct xattr_file src, dst;
	const struct stat *st; /* of the source */
	const char *src_path, *dst_path;
	struct storage *storage; /* what is known about file systems; NULL: nothing */
	unsigned required;       /* options.preserve_required */
	bool reused; /* dst is of an earlier attempt: it may have attributes that src lacks */
	bool bare;   /* dst is new, in a directory that gives no ACL to what is created in it */
	/* The results: of dst, after its times were set; and whether its storage may change the
	 * time that was set when dst is closed. */
	struct stat now;
	bool at_close;
};

/* An attribute is lost. Returns 0 to go on with the others, or -errno. */
typedef int attributes_loss(void *arg, enum fcopy_attribute, const struct fcopy_error *);

/* Gives dst the attributes `preserve` of src: times, owner and group, extended attributes, and the
 * mode with the ACLs; then reads back what of them could be set without an error, and is not what
 * was set: the modification time, to the second, or if it is not required, to the step of the file
 * system; and, unless that is known to keep modes, the mode. A symlink has no mode. Where
 * fstat(2) shows what is stored, no call is made that would change nothing. Returns 0, or what
 * on_loss returned. */
int attributes_apply(struct attributes_pair *, unsigned preserve, attributes_loss *on_loss,
		     void *arg);
/* May the file that is open as dst have attributes of an old one, or of an earlier attempt? */
bool attributes_may_be_old(const struct endpoint *dst);
/* The error for an attribute that was read back as another one. Returns -errno. */
int attributes_fail_stored(enum fcopy_attribute, const char *path, struct fcopy_error *);

/* Without privilege the owner cannot be set, but a group that the user belongs to can. Returns 0,
 * or -errno if the owner or the group was not set. */
int attributes_set_owner(int fd, bool by_path, uid_t, gid_t);

/* What the copy keeps of the file that it replaces. */

/* Gives the open copy the owner and group of the old file. *mode: the mode that it has now; 0 after
 * a chown(2), which may change it. */
int keep_owner(const struct endpoint *e, const struct place *, bool force, mode_t *mode,
	       struct fcopy_error *);
/* Gives it the ACL and security label of the old file. listed: the storage lists all attributes.
 * Also returns RESULT_NONE: neither file has any. */
int keep_acl(const struct endpoint *e, const struct place *, bool force, bool listed,
	     struct fcopy_error *);

#endif
