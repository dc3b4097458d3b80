/* SPDX-License-Identifier: MIT
 *
 * The attributes of a copy: those of SRC. Files, directories, symlinks and special files get them
 * here.
 */
#ifndef ENDPOINTS_ATTRIBUTES_H
#define ENDPOINTS_ATTRIBUTES_H

#include "endpoint.h"
#include "storage.h"

/* xattr.c: extended attributes. The only place that decides which of them a copy has of its source,
 * which are compared, and which a new file keeps of the one that it replaces. */

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
/* A checksum of those that are compared. */
uint64_t xattr_sum(int fd);

/* ACLs as permissions. */

/* The permissions that the default ACL of a directory allows a new file at most. Returns false if
 * the directory has none: then the umask applies. */
bool acl_default_mode(int dir, mode_t *mode);

/* With an access ACL the group bits of a mode are the ACL's mask. Returns the mode of a copy that
 * lacks the ACL of this file, in which the group has no more than the entry group:: allows. */
mode_t acl_mode_without(const struct xattr_file *, mode_t mode);

/* attributes.c: what a copy gets of its source. */

#define PRESERVE_IMPOSSIBLE "attributes are preserved between files only"

/* A former owner may still have an old file open or mapped for writing: it keeps the privileges
 * that it shares with its source, and gets no others. */
struct attributes_held {
	bool known;
	mode_t bits;       /* setuid and setgid, if the owner is the source's */
	bool capabilities; /* the source's */
	bool lacks;        /* it lacks the source's, which a new inode could get */
};
/* Returns what the regular file dst has; to be called before a write clears that. was: of dst,
 * which may be O_PATH. */
struct attributes_held attributes_hold(int src, const struct stat *, int dst,
				       const struct stat *was);

/* Two open files of one type. attributes_apply() changes only the results, which are the last two
 * members. */
struct attributes_pair {
	struct xattr_file src, dst;
	const struct stat *st; /* of the source */
	const char *src_path, *dst_path;
	struct storage *storage; /* what is known about file systems; NULL: nothing */
	unsigned required;       /* options.preserve_required */
	bool reused; /* dst is of an earlier attempt: it may have attributes that src lacks */
	struct attributes_held held; /* not known: dst is new */
	bool bare; /* dst is new, in a directory that gives no ACL to what is created in it */
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
/* A checksum of all that a copy can get of its source, except for the time of access: has a repair
 * changed one? st: of the open file. */
uint64_t attributes_sum(int fd, const struct stat *st);
/* The error for an attribute that was read back as another one. Returns -errno. */
int attributes_fail_stored(enum fcopy_attribute, const char *path, struct fcopy_error *);

/* Without privilege the owner cannot be set, but a group that the user belongs to can. Returns 0,
 * or -errno if the owner or the group was not set. */
int attributes_set_owner(int fd, bool by_path, uid_t, gid_t);

/* kept.c: what the copy keeps of the file that it replaces. */

/* Gives the open copy the owner and group of the old file. *mode: the mode that it has now; 0 after
 * a chown(2), which may change it. */
int keep_owner(const struct endpoint *e, const struct place *, bool force, mode_t *mode,
	       struct fcopy_error *);
/* Gives it the ACL and security label of the old file. listed: the storage lists all attributes.
 * Also returns RESULT_NONE: neither file has any. */
int keep_acl(const struct endpoint *e, const struct place *, bool force, bool listed,
	     struct fcopy_error *);

/* equal.c: are the attributes of a copy those of its source, as far as DST stores them and this
 * user can set them? The only place that decides it: for mirrors, --update, --link-dest and
 * comparisons. */

enum equal_answer { EQUAL_UNKNOWN, EQUAL_YES, EQUAL_NO };

/* Of one run. */
struct equal {
	struct storage *storage;
	int64_t window_ns; /* --modify-window: times that differ by this much are equal; 0: those
			    * that DST stores for the source's; < 0: only equal ones */
	bool root;         /* this process may set any owner, and capabilities */
	unsigned required; /* attributes without which a copy fails: always compared */
	bool dry_run;      /* DST is not to be asked */
	enum equal_answer labels; /* may this process set security.*? atomic */
	unsigned left_out; /* attributes that DST does not store, and were not compared; atomic */
};

/* Of `preserve`, what is to be compared: not what this user cannot set, nor what DST cannot store.
 * dir: an open directory of DST, which is asked if an attribute differs. */
unsigned equal_preserves(struct equal *, int dir, const struct stat *src, const struct stat *old,
			 unsigned preserve);

/* Is DST's modification time the source's, as DST stores that? dst: any open file of the same file
 * system. */
bool equal_times(const struct equal *, int dst, const struct stat *src, const struct stat *old);
/* Has dst the attributes of `preserve` that a copy of src would get? Both are descriptors, perhaps
 * O_PATH, with their stats. Access times are not compared, nor what DST or this user cannot set.
 * What cannot be read is never equal. */
bool equal_attributes(struct equal *, int src, const struct stat *, int dst, const struct stat *,
		      unsigned preserve);
/* Of that, what the two stats show. */
bool equal_stats(const struct equal *, const struct stat *src, int dst, const struct stat *old,
		 unsigned preserve);

#endif
