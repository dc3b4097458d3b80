/* SPDX-License-Identifier: MIT
 * Owner, group, mode, times, ACLs and extended attributes of a file: those of SRC.
 */
#include "attributes.h"
#include "io/hash.h"
#include "io/system.h"
#include "replace.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

struct applying {
	struct attributes_pair *p;
	struct xattr_blame blame;
	const char *reason; /* fcopy itself refused */
	bool looked;        /* p->now is that of dst */
	bool chmods;        /* its mode may be another one by now */
	bool exposed;       /* a regular file that was there */
	bool given;         /* its owner or group was changed */
	bool listed;        /* `acls` are the ACLs that the source has */
	bool acl[2];        /* XATTR_ACL, XATTR_DEFAULT */
};

static int attributes_blame(struct applying *a, const char *call)
{
	a->blame = (struct xattr_blame){.call = call};
	return -errno;
}

static bool attributes_look(struct applying *a)
{
	if (!a->looked && fstat(a->p->dst.fd, &a->p->now) == 0)
		a->looked = true;
	return a->looked;
}

static int attributes_chown(int fd, bool by_path, uid_t uid, gid_t gid)
{
	return by_path ? fchownat(fd, "", uid, gid, AT_EMPTY_PATH) : fchown(fd, uid, gid);
}

int attributes_set_owner(int fd, bool by_path, uid_t uid, gid_t gid)
{
	struct stat st;
	if (attributes_chown(fd, by_path, uid, gid) == 0)
		return 0;
	int err = errno;
	/* A file system without owners may refuse even the owner that the file has. */
	if (fstat(fd, &st) == 0 && st.st_uid == uid && st.st_gid == gid)
		return 0;
	if (err == EPERM)
		(void)!attributes_chown(fd, by_path, (uid_t)-1, gid);
	return -err;
}

/* Would the server give the target of this symlink what the symlink is to get? */
static bool attributes_are_of_target(struct applying *a, const char *reason)
{
	if (!S_ISLNK(a->p->st->st_mode) || !system_is_sshfs(a->p->dst.fd))
		return false;
	a->reason = reason;
	return true;
}

/* By its descriptor, also a symlink: Linux 5.8. */
static int attributes_set_times(struct applying *a)
{
	const struct attributes_pair *p = a->p;
	const struct timespec times[2] = {p->st->st_atim, p->st->st_mtim};
	if (attributes_are_of_target(a, "sshfs would change the times of what it leads to"))
		return -EOPNOTSUPP;
	if (!p->dst.by_path)
		return futimens(p->dst.fd, times) < 0 ? attributes_blame(a, "futimens") : 0;
	int r = utimensat(p->dst.fd, "", times, AT_EMPTY_PATH);
	if (r < 0 && errno == EINVAL)
		r = io_set_times(p->dst.fd, times);
	return r < 0 ? attributes_blame(a, "utimensat") : 0;
}

static bool attributes_same_owner(const struct stat *a, const struct stat *b)
{
	return a->st_uid == b->st_uid && a->st_gid == b->st_gid;
}

static bool attributes_owned(const struct applying *a)
{
	return a->looked && attributes_same_owner(&a->p->now, a->p->st);
}

/* Is what fstat(2) shows what is stored? Other storage is asked to store it, and may refuse. */
static bool attributes_trusts(const struct attributes_pair *p)
{
	return p->storage && storage_keeps_attributes(p->storage, p->dst.fd, &p->now);
}

static int attributes_give(struct applying *a)
{
	struct attributes_pair *p = a->p;
	if (attributes_look(a) && attributes_owned(a) && attributes_trusts(p))
		return 0;
	if (attributes_are_of_target(a, "sshfs would change the owner of what it leads to"))
		return -EOPNOTSUPP;
	a->blame = (struct xattr_blame){.call = p->dst.by_path ? "fchownat" : "fchown"};
	a->chmods = true;
	a->given = !attributes_owned(a);
	int r = attributes_set_owner(p->dst.fd, p->dst.by_path, p->st->st_uid, p->st->st_gid);
	if (r == 0) {
		p->now.st_uid = p->st->st_uid;
		p->now.st_gid = p->st->st_gid;
	}
	/* Where chown(2) has no effect, its owner must not get setuid. It clears setuid and setgid
	 * bits, but no setgid bit without g+x. */
	if (r == 0 && (a->exposed || !attributes_trusts(p)))
		a->looked = fstat(p->dst.fd, &p->now) == 0;
	return r;
}

/* Takes the name out of the list. Returns whether it was there. */
static bool attributes_take(char *list, ssize_t *n, const char *name)
{
	const size_t length = strlen(name) + 1;
	for (char *at = list; at < list + *n; at += strlen(at) + 1)
		if (strcmp(at, name) == 0) {
			memmove(at, at + length, (size_t)(list + *n - at) - length);
			*n -= (ssize_t)length;
			return true;
		}
	return false;
}

#define CAPABILITIES      "security.capability"
#define CAPABILITIES_SIZE 64 /* XATTR_CAPS_SZ: 24 */

static bool attributes_may_set_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	return syscall(SYS_capget, &header, data) == 0 &&
	       data[CAP_TO_INDEX(CAP_SETFCAP)].effective & CAP_TO_MASK(CAP_SETFCAP);
}

struct attributes_held attributes_hold(int src, const struct stat *st, int dst,
				       const struct stat *was)
{
	char a[CAPABILITIES_SIZE], b[CAPABILITIES_SIZE];
	const ssize_t n = fgetxattr(src, CAPABILITIES, a, sizeof(a));
	const ssize_t m = n > 0 ? getxattr(io_proc_path(dst).text, CAPABILITIES, b, sizeof(b)) : 0;
	const bool stores = m >= 0 || errno != EOPNOTSUPP;
	const bool has = n > 0 && m == n && memcmp(a, b, (size_t)n) == 0;
	/* Another user can give the file away before these bits are set. */
	const bool safe = attributes_same_owner(st, was) && !io_is_foreign(was);
	return (struct attributes_held){.known = true,
					.bits = safe ? was->st_mode & 06000 : 0,
					.capabilities = has,
					.lacks = n > 0 && !has && stores &&
						 attributes_may_set_capabilities()};
}

/* A new file that another user owns gets none, if its owner or group is not the source's. */
static bool attributes_refuse_capabilities(struct applying *a)
{
	struct attributes_pair *p = a->p;
	if (a->exposed)
		return !p->held.capabilities;
	return S_ISREG(p->st->st_mode) && attributes_look(a) && io_is_foreign(&p->now) &&
	       !attributes_owned(a);
}

/* The mode is set last, but an ACL can give the right to execute before. So a file that was there
 * first loses the setuid and setgid bits that it may not keep, and the permissions that SRC lacks:
 * they would show the attributes of SRC. The group bits of a file with an ACL are its mask. */
static void attributes_narrow(struct applying *a, unsigned preserve)
{
	const struct attributes_pair *p = a->p;
	const bool modes = preserve & FCOPY_ATTR_MODE;
	if (!a->exposed || !(modes || a->given) || !attributes_look(a))
		return;
	const mode_t keeps = modes ? (p->st->st_mode & (01777 | p->held.bits)) | 0700 : 01777;
	const mode_t both = p->now.st_mode & keeps;
	if (both != (p->now.st_mode & 07777)) {
		a->chmods = true;
		(void)!fchmod(p->dst.fd, both);
	}
}

static int attributes_copy_xattrs(struct applying *a)
{
	char list[XATTR_LIST];
	struct attributes_pair *p = a->p;
	a->blame = (struct xattr_blame){.call = p->src.by_path ? "listxattr" : "flistxattr",
					.src = true};
	ssize_t n = xattr_list(&p->src, list);
	if (n < 0)
		return (int)n;
	const bool refused = xattr_lists(list, n, CAPABILITIES) &&
			     attributes_refuse_capabilities(a) &&
			     attributes_take(list, &n, CAPABILITIES);
	a->acl[0] = xattr_lists(list, n, XATTR_ACL);
	a->acl[1] = xattr_lists(list, n, XATTR_DEFAULT);
	a->listed = storage_lists_attributes(p->storage, p->src.fd, p->st->st_dev);
	const int r = xattr_copy_all(&p->src, list, n, &p->dst, p->reused, &a->blame);
	if (r < 0 || !refused)
		return r;
	a->blame.src = false;
	a->reason = a->exposed ? "its capabilities are not copied, because DST existed: others "
				 "may have it open"
			       : "its capabilities are not copied, because its owner or group "
				 "differs";
	return -EPERM;
}

/* Removes an ACL that the source lacks: one of the directory, or DST's old one, could admit users
 * whom the source refuses. */
static int attributes_copy_acl(struct applying *a, int which)
{
	static const char *const names[] = {XATTR_ACL, XATTR_DEFAULT};
	struct attributes_pair *p = a->p;
	int r = -ENODATA;
	if (!a->listed || a->acl[which])
		r = xattr_copy(&p->src, &p->dst, names[which], &a->blame);
	a->chmods |= r != -ENODATA;
	if (r != -ENODATA || p->bare)
		return r == -ENODATA ? 0 : r;
	r = xattr_remove(&p->dst, names[which], &a->blame);
	a->chmods |= r != 0;
	return r < 0 ? r : 0;
}

static int attributes_chmod(struct applying *a, mode_t mode)
{
	const struct attributes_pair *p = a->p;
	const int r = p->dst.by_path ? io_chmod(p->dst.fd, mode) : fchmod(p->dst.fd, mode);
	return r < 0 ? attributes_blame(a, p->dst.by_path ? "chmod" : "fchmod") : 0;
}

/* Does the file still have the owner and group of SRC? */
static bool attributes_still_owned(struct applying *a)
{
	a->looked = false;
	return attributes_look(a) && attributes_owned(a);
}

/* *given: the setuid and setgid bits of SRC that the file may get. It gets none if its owner is no
 * longer SRC's: another user may have moved it to the name of another copy, which has another
 * owner.
 */
static int attributes_set_mode(struct applying *a, mode_t mode, mode_t *given)
{
	const struct attributes_pair *p = a->p;
	const mode_t rest = mode & 01777;
	mode &= 01777 | *given;
	if (!a->chmods && (p->now.st_mode & 07777) == mode && attributes_trusts(p))
		return 0;
	const bool special = mode != rest && S_ISREG(p->st->st_mode);
	if (special && !attributes_still_owned(a))
		mode = rest;
	int r = attributes_chmod(a, mode);
	if (r == 0 && special && !attributes_still_owned(a)) {
		*given = 0;
		r = attributes_chmod(a, rest);
	}
	return r;
}

static int attributes_copy_mode(struct applying *a)
{
	struct attributes_pair *p = a->p;
	if (S_ISLNK(p->st->st_mode))
		return 0;
	if (!attributes_look(a))
		return attributes_blame(a, "fstat");
	mode_t given = !attributes_owned(a) ? 0 : a->exposed ? p->held.bits : 06000;
	int r = attributes_copy_acl(a, 0);
	/* Without the ACL, its group must not get what the mask allows others. */
	const mode_t mode = r < 0 && !a->blame.src ? acl_mode_without(&p->src, p->st->st_mode)
						   : p->st->st_mode;
	if (r == 0 && S_ISDIR(p->st->st_mode))
		r = attributes_copy_acl(a, 1);
	const int set = attributes_set_mode(a, mode, &given);
	if (set < 0)
		return set;
	if (r < 0 || !(p->st->st_mode & 06000 & ~given))
		return r;
	a->reason = attributes_owned(a) ? "its setuid and setgid bits are not copied, because DST "
					  "existed: others may have it open"
					: "its setuid and setgid bits are not copied, because its "
					  "owner or group differs";
	return -EPERM;
}

static int attributes_set(struct applying *a, enum fcopy_attribute which)
{
	switch (which) {
	case FCOPY_ATTR_TIMESTAMPS: return attributes_set_times(a);
	case FCOPY_ATTR_OWNERSHIP: return attributes_give(a);
	case FCOPY_ATTR_XATTR: return attributes_copy_xattrs(a);
	case FCOPY_ATTR_MODE: return attributes_copy_mode(a);
	}
	return 0;
}

static int attributes_fail(const struct applying *a, int r, struct fcopy_error *e)
{
	const struct attributes_pair *p = a->p;
	const struct xattr_file *f = a->blame.src ? &p->src : &p->dst;
	const char *path = a->blame.src ? p->src_path : p->dst_path;
	if (a->reason)
		return error_refuse(e, path, -r, a->reason, FCOPY_ADVICE_NONE);
	return f->by_path ? error_proc(e, a->blame.call, path, -r)
			  : error_call(e, a->blame.call, path, -r);
}

/* Returns those of `set` that were lost. */
static unsigned attributes_read_back(struct applying *a, unsigned set)
{
	struct attributes_pair *p = a->p;
	struct stat now;
	unsigned lost = 0;
	if (S_ISLNK(p->st->st_mode))
		set &= ~(unsigned)FCOPY_ATTR_MODE;
	const unsigned read = FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP;
	if (!(set & read) || !attributes_look(a))
		return 0;
	/* Many file systems store no fractions of seconds, or only even ones. */
	if (set & FCOPY_ATTR_TIMESTAMPS && p->now.st_mtim.tv_sec != p->st->st_mtim.tv_sec) {
		const struct storage_times t = storage_times(p->storage, p->dst.fd, p->now.st_dev);
		if (p->required & FCOPY_ATTR_TIMESTAMPS ||
		    !storage_time_is_equal(&t, &p->st->st_mtim, &p->now))
			lost |= FCOPY_ATTR_TIMESTAMPS;
	}
	if (storage_keeps_attributes(p->storage, p->dst.fd, &p->now))
		return lost;
	if (set & (FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP) && fstat(p->dst.fd, &now) == 0) {
		if ((now.st_mode ^ p->st->st_mode) & 0777)
			lost |= set & FCOPY_ATTR_MODE;
		if (now.st_uid != p->st->st_uid || now.st_gid != p->st->st_gid)
			lost |= set & FCOPY_ATTR_OWNERSHIP;
	}
	p->at_close = set & ~lost & FCOPY_ATTR_TIMESTAMPS;
	return lost;
}

bool attributes_may_be_old(const struct endpoint *dst)
{
	return file_of(dst)->keep_part || dst->old == OLD_OVERWRITTEN;
}

uint64_t attributes_sum(int fd, const struct stat *st)
{
	const int64_t stat[] = {st->st_mode, st->st_uid, st->st_gid, st->st_mtim.tv_sec,
				st->st_mtim.tv_nsec};
	return sum_add(xattr_sum(fd), stat, sizeof(stat));
}

int attributes_fail_stored(enum fcopy_attribute which, const char *path, struct fcopy_error *e)
{
	const bool time = which == FCOPY_ATTR_TIMESTAMPS, owner = which == FCOPY_ATTR_OWNERSHIP;
	error_call(e, time ? "futimens" : owner ? "fchown" : "fchmod", path, EOPNOTSUPP);
	e->reason = time    ? "a different modification time was stored"
		    : owner ? "a different owner or group was stored"
			    : "a different mode was stored";
	return -EOPNOTSUPP;
}

/* The order matters: chown clears setuid and capabilities, and setting an ACL changes the mode. */
static const enum fcopy_attribute attributes_order[] = {FCOPY_ATTR_TIMESTAMPS, FCOPY_ATTR_OWNERSHIP,
							FCOPY_ATTR_XATTR, FCOPY_ATTR_MODE};

#define ATTRIBUTES (sizeof(attributes_order) / sizeof(*attributes_order))

int attributes_apply(struct attributes_pair *p, unsigned preserve, attributes_loss *on_loss,
		     void *arg)
{
	struct applying a = {.p = p};
	struct fcopy_error e;
	unsigned set = 0;
	int r = 0;
	a.exposed = p->held.known && S_ISREG(p->st->st_mode);
	for (size_t i = 0; r == 0 && i < ATTRIBUTES; i++) {
		const enum fcopy_attribute which = attributes_order[i];
		if (which == FCOPY_ATTR_XATTR)
			attributes_narrow(&a, preserve);
		if (!(preserve & which))
			continue;
		const int failed = attributes_set(&a, which);
		if (failed == 0)
			set |= which;
		else if (attributes_fail(&a, failed, &e) < 0)
			r = on_loss(arg, which, &e);
		a.reason = NULL;
	}
	if (r < 0)
		return r;
	const unsigned lost = attributes_read_back(&a, set);
	for (size_t i = 0; r == 0 && i < ATTRIBUTES; i++)
		if (lost & attributes_order[i]) {
			attributes_fail_stored(attributes_order[i], p->dst_path, &e);
			r = on_loss(arg, attributes_order[i], &e);
		}
	return r;
}
