/* SPDX-License-Identifier: MIT
 * Are the attributes that a copy would get from its source equal to those that it has?
 */
#include "attributes.h"
#include "fcopy.h"
#include "io/system.h"

#include <limits.h>
#include <stdlib.h>

/* May an ordinary user give a file to this group? */
static bool equal_is_member(gid_t gid)
{
	gid_t group[NGROUPS_MAX];
	int n = getgroups(NGROUPS_MAX, group);
	if (gid == getegid())
		return true;
	while (n > 0 && group[n - 1] != gid)
		n--;
	return n > 0;
}

static bool equal_stores(struct equal *q, int dir, enum storage_ability ability,
			 enum fcopy_attribute which)
{
	if (q->dry_run || q->required & which || storage_stores(q->storage, dir, ability))
		return true;
	__atomic_or_fetch(&q->left_out, which, __ATOMIC_RELAXED);
	return false;
}

/* A user cannot give files to other users, and need not try each time. */
static bool equal_may_give(struct equal *q, const struct stat *s, const struct stat *d)
{
	if (s->st_gid != d->st_gid && equal_is_member(s->st_gid))
		return true;
	__atomic_or_fetch(&q->left_out, FCOPY_ATTR_OWNERSHIP, __ATOMIC_RELAXED);
	return false;
}

/* On sshfs a copy sets neither owner nor times of a symlink, because its target would get them:
 * attributes.c. What differs, and is not required, is not compared. */
static unsigned equal_of_target(struct equal *q, int dir, const struct stat *s,
				const struct stat *d, unsigned preserve)
{
	unsigned differ = 0;
	for (unsigned i = 0; i < 2 && S_ISLNK(s->st_mode); i++) {
		const unsigned one = i ? FCOPY_ATTR_TIMESTAMPS : FCOPY_ATTR_OWNERSHIP;
		if (preserve & one & ~q->required && !equal_stats(q, s, dir, d, one))
			differ |= one;
	}
	if (!differ || !system_is_sshfs(dir))
		return 0;
	__atomic_or_fetch(&q->left_out, differ, __ATOMIC_RELAXED);
	return differ;
}

unsigned equal_preserves(struct equal *q, int dir, const struct stat *s, const struct stat *d,
			 unsigned preserve)
{
	const unsigned owner = FCOPY_ATTR_OWNERSHIP, mode = FCOPY_ATTR_MODE;
	const bool owned = s->st_uid == d->st_uid && s->st_gid == d->st_gid;
	preserve &= ~equal_of_target(q, dir, s, d, preserve);
	if (preserve & owner && !owned &&
	    (q->root ? !equal_stores(q, dir, STORAGE_CHANGES_OWNERS, FCOPY_ATTR_OWNERSHIP)
		     : !equal_may_give(q, s, d)))
		preserve &= ~owner;
	if (preserve & mode && !S_ISLNK(s->st_mode) && (s->st_mode ^ d->st_mode) & 0777 &&
	    !equal_stores(q, dir, STORAGE_CHANGES_MODES, FCOPY_ATTR_MODE))
		preserve &= ~mode;
	return preserve;
}

/* May this process set attributes of security modules? Only in the first user namespace, whose
 * inode number is a constant of the kernel: PROC_USER_INIT_INO. */
static bool equal_sets_labels(struct equal *q)
{
	struct stat st;
	enum equal_answer known = __atomic_load_n(&q->labels, __ATOMIC_RELAXED);
	if (known == EQUAL_UNKNOWN) {
		known = q->root && stat("/proc/self/ns/user", &st) == 0 && st.st_ino == 0xeffffffd
			    ? EQUAL_YES
			    : EQUAL_NO;
		__atomic_store_n(&q->labels, known, __ATOMIC_RELAXED);
	}
	return known == EQUAL_YES;
}

/* Is an attribute compared that the source has, or only the copy? Of what a copy gets, what this
 * user can set; all of it, if a copy fails without it. */
static bool equal_compares(struct equal *q, const char *name, bool of_src)
{
	const bool required = q->required & FCOPY_ATTR_XATTR;
	switch (xattr_kind(name)) {
	case XATTR_OWN: return required || q->root || strncmp(name, "user.", 5) == 0;
	case XATTR_GIVEN:
		return of_src &&
		       (required || strncmp(name, "security.", 9) != 0 || equal_sets_labels(q));
	case XATTR_LEFT:
	case XATTR_MODE: break;
	}
	return false;
}

/* What cannot be asked is not equal. Without /proc, nothing can: that is left out. */
static bool equal_unknown(struct equal *q, const struct xattr_file *f, ssize_t r)
{
	if (r != -ENOENT || !f->by_path || q->required & FCOPY_ATTR_XATTR)
		return false;
	__atomic_or_fetch(&q->left_out, FCOPY_ATTR_XATTR, __ATOMIC_RELAXED);
	return true;
}

/* An attribute of a kind that DST does not store is as equal as it can be. */
static bool equal_attribute(struct equal *q, const struct xattr_file *src,
			    const struct xattr_file *dst, const char *name)
{
	ssize_t n = xattr_ask(src, name), m = xattr_ask(dst, name);
	if (n < 0 && !xattr_is_absent((int)-n))
		return equal_unknown(q, src, n);
	if (m < 0 && !xattr_is_absent((int)-m))
		return equal_unknown(q, dst, m);
	if (n >= 0 && m == -EOPNOTSUPP && !(q->required & FCOPY_ATTR_XATTR)) {
		__atomic_or_fetch(&q->left_out, FCOPY_ATTR_XATTR, __ATOMIC_RELAXED);
		return true;
	}
	if (n < 0 || m < 0)
		return n < 0 && m < 0;
	char *value = n == m ? malloc((size_t)2 * XATTR_VALUE) : NULL;
	bool equal = value && (n = xattr_get(src, name, value)) >= 0 &&
		     xattr_get(dst, name, value + XATTR_VALUE) == n &&
		     memcmp(value, value + XATTR_VALUE, (size_t)n) == 0;
	free(value);
	return equal;
}

/* One of the two files that are compared. */
struct equal_side {
	struct xattr_file file;
	ssize_t n;
	char list[XATTR_LIST];
};

/* Is an ACL compared? Not if both lists would have it. */
static bool equal_acl(struct equal *q, const struct equal_side *a, const struct equal_side *b,
		      bool listed, const char *name)
{
	return (listed && !xattr_lists(a->list, a->n, name) && !xattr_lists(b->list, b->n, name)) ||
	       equal_attribute(q, &a->file, &b->file, name);
}

static bool equal_listed(struct equal *q, const struct equal_side *a, const struct equal_side *b)
{
	for (const char *name = a->list; name < a->list + a->n; name += strlen(name) + 1)
		if (equal_compares(q, name, true) && !equal_attribute(q, &a->file, &b->file, name))
			return false;
	for (const char *name = b->list; name < b->list + b->n; name += strlen(name) + 1)
		if (equal_compares(q, name, false) && !xattr_lists(a->list, a->n, name))
			return false;
	return true;
}

/* Lists the attributes. Returns false if that fails. */
static bool equal_list(struct equal *q, struct equal_side *side, const struct stat *st, int fd)
{
	const bool by_path = !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode);
	side->file = (struct xattr_file){.fd = fd, .by_path = by_path};
	side->n = xattr_list(&side->file, side->list);
	if (side->n == -EBADF) { /* O_PATH */
		side->file.by_path = true;
		side->n = xattr_list(&side->file, side->list);
	}
	return side->n >= 0 || equal_unknown(q, &side->file, side->n);
}

/* Most times are equal: then nothing is asked. */
bool equal_times(const struct equal *q, int dst, const struct stat *s, const struct stat *d)
{
	const int64_t ns = time_distance(s->st_mtim, d->st_mtim);
	if (ns == 0 || q->window_ns != 0)
		return ns == 0 || ns <= q->window_ns;
	const struct storage_times times = storage_times(q->storage, dst, d->st_dev);
	return storage_time_is_equal(&times, &s->st_mtim, d);
}

bool equal_stats(const struct equal *q, const struct stat *s, int dst, const struct stat *d,
		 unsigned preserve)
{
	const bool owned = s->st_uid == d->st_uid && s->st_gid == d->st_gid;
	/* Without the owner, setuid and setgid are not copied. */
	const mode_t bits = owned ? 07777 : 01777;
	if (preserve & FCOPY_ATTR_OWNERSHIP && !owned)
		return false;
	if (preserve & FCOPY_ATTR_TIMESTAMPS && !equal_times(q, dst, s, d))
		return false;
	return !(preserve & FCOPY_ATTR_MODE) || S_ISLNK(s->st_mode) ||
	       !((s->st_mode ^ d->st_mode) & bits);
}

bool equal_attributes(struct equal *q, int src, const struct stat *s, int dst, const struct stat *d,
		      unsigned preserve)
{
	struct equal_side a, b;
	struct stat wanted = *s;
	const bool link = S_ISLNK(s->st_mode), mode = preserve & FCOPY_ATTR_MODE && !link;
	/* Only root can give a symlink attributes. */
	if (link && !q->root && !(q->required & FCOPY_ATTR_XATTR))
		preserve &= ~(unsigned)FCOPY_ATTR_XATTR;
	if (!mode && !(preserve & FCOPY_ATTR_XATTR))
		return equal_stats(q, s, dst, d, preserve);
	if (!equal_list(q, &a, s, src) || !equal_list(q, &b, d, dst))
		return false;
	const bool listed = a.n >= 0 && b.n >= 0 &&
			    storage_lists_attributes(q->storage, src, s->st_dev) &&
			    storage_lists_attributes(q->storage, dst, d->st_dev);
	if (mode && (s->st_mode ^ d->st_mode) & 0777 && !listed &&
	    xattr_ask(&b.file, XATTR_ACL) == -EOPNOTSUPP)
		wanted.st_mode = acl_mode_without(&a.file, s->st_mode);
	if (!equal_stats(q, &wanted, dst, d, preserve))
		return false;
	if (mode && !equal_acl(q, &a, &b, listed, XATTR_ACL))
		return false;
	if (mode && S_ISDIR(s->st_mode) && !equal_acl(q, &a, &b, listed, XATTR_DEFAULT))
		return false;
	return !(preserve & FCOPY_ATTR_XATTR) || equal_listed(q, &a, &b);
}
