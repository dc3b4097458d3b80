/* SPDX-License-Identifier: MIT
 *
 * Extended attributes. The only place that decides which of them a copy has of its source, which
 * are compared, and which a new file keeps of the one that it replaces.
 */
#ifndef ENDPOINTS_XATTR_H
#define ENDPOINTS_XATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define XATTR_LIST  65536 /* XATTR_LIST_MAX, which linux/limits.h has */
#define XATTR_VALUE 65536 /* XATTR_SIZE_MAX */

#define XATTR_ACL     "system.posix_acl_access"
#define XATTR_DEFAULT "system.posix_acl_default"

enum xattr_kind {
	XATTR_LEFT,  /* neither copied nor compared: a view of something else, or the directory
		      * and the security module determine it */
	XATTR_OWN,   /* a copy has those of its source and no others */
	XATTR_GIVEN, /* a copy has those of its source; those that its file system or a security
		      * module gave it besides stay */
	XATTR_MODE,  /* an ACL: a part of the mode, and like XATTR_OWN */
};
enum xattr_kind xattr_kind(const char *name);
/* The names of those that a new file keeps of the one that it replaces; NULL after the last one. */
const char *xattr_kept(size_t i);

/* An open file. The calls for descriptors refuse O_PATH: then by_path, and a name below /proc leads
 * to the file itself, also to a symlink. Without /proc, Linux 6.13 can still list the attributes of
 * what has `name` in `dir`: if it has none, nothing else is needed. name NULL: unknown. */
struct xattr_file {
	int fd;
	bool by_path;
	int dir;
	const char *name;
	bool follow;
};

/* The call that failed, and whether it was one on the source. */
struct xattr_blame {
	const char *call;
	bool src;
};

/* Does this errno mean that the file has no such attribute, or its file system has none? */
bool xattr_is_absent(int err);

/* The names of a file, each with its '\0'. Returns their length, or -errno; 0 also where the file
 * system has no attributes. list has XATTR_LIST bytes. */
ssize_t xattr_list(const struct xattr_file *, char *list);
bool xattr_lists(const char *list, ssize_t n, const char *name);
/* The value, or only its length. Return the length or -errno. value has XATTR_VALUE bytes. */
ssize_t xattr_get(const struct xattr_file *, const char *name, void *value);
ssize_t xattr_ask(const struct xattr_file *, const char *name);
/* Removes an attribute. Returns 0; 1 if it was there; or -errno. */
int xattr_remove(const struct xattr_file *, const char *name, struct xattr_blame *);
/* Returns 0; -ENODATA if the source has no such attribute; or -errno. */
int xattr_copy(const struct xattr_file *src, const struct xattr_file *dst, const char *name,
	       struct xattr_blame *);
/* Copies all that are listed, but ACLs. reused: removes what the source, whose list this is, lacks.
 * Returns 0, or -errno of the first failure, which does not end the loop. */
int xattr_copy_all(const struct xattr_file *src, const char *list, ssize_t n,
		   const struct xattr_file *dst, bool reused, struct xattr_blame *);

/* Is it certain that the file has no attribute that is compared? false: it has one, or the kernel
 * lacks listxattrat(2), Linux 6.13. */
bool xattr_lacks(int dir, const char *name, bool follow);
/* A checksum of those that are compared: has a repair changed one? */
uint64_t xattr_sum(int fd);

/* ACLs as permissions. */

/* The permissions that the default ACL of a directory allows a new file at most. Returns false if
 * the directory has none: then the umask applies. */
bool acl_default_mode(int dir, mode_t *mode);

/* With an access ACL the group bits of a mode are the ACL's mask. Returns the mode of a copy
 * without the ACL, in which the group has no more than the entry group:: allows. value: the
 * attribute. */
mode_t acl_group_mode(const void *value, size_t size, mode_t mode);

#endif
