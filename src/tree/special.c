/* SPDX-License-Identifier: MIT
 * Symlinks, FIFOs, sockets and devices: created like the source's, never opened.
 */
#define _GNU_SOURCE
#include "special.h"
#include "aside.h"
#include "endpoints/acl.h"
#include "endpoints/error.h"
#include "endpoints/metadata.h"
#include "facts.h"
#include "io/system.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SYS_listxattrat
#define SYS_listxattrat 465 /* the same on every machine but Alpha */
#endif

static int special_create(const struct entry *e, const struct making *m, const struct stat *st,
			  const char **call)
{
	if (!S_ISLNK(st->st_mode)) {
		*call = "mknod";
		return mknodat(m->dir, m->name, st->st_mode & (S_IFMT | 07777), st->st_rdev) < 0
			   ? -errno
			   : 0;
	}
	char target[PATH_MAX];
	*call = "readlink";
	ssize_t n = readlinkat(e->dir->src, e->name, target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n == sizeof(target))
		return -ENAMETOOLONG;
	target[n] = '\0';
	*call = "symlink";
	return symlinkat(target, m->dir, m->name) < 0 ? -errno : 0;
}

/* Returns 0; -ENODATA if the source has no such attribute; or -errno with the call. */
static int special_copy_xattr(const char *from, const char *to, const char *name, const char **call)
{
	char value[65536]; /* XATTR_SIZE_MAX */
	*call = "getxattr";
	ssize_t n = getxattr(from, name, value, sizeof(value));
	if (n < 0)
		return errno == EOPNOTSUPP ? -ENODATA : -errno;
	*call = "setxattr";
	return setxattr(to, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

/* The first failure does not end the loop. */
static int special_copy_xattrs(const char *from, const char *to, const char **call)
{
	char list[65536]; /* XATTR_LIST_MAX */
	int failure = 0;
	*call = "listxattr";
	ssize_t n = listxattr(from, list, sizeof(list));
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (char *name = list; name < list + n; name += strlen(name) + 1) {
		const char *failed;
		if (strncmp(name, "system.", 7) == 0 || strcmp(name, "security.selinux") == 0)
			continue;
		int r = special_copy_xattr(from, to, name, &failed);
		if (r == 0 || r == -ENODATA || failure < 0)
			continue;
		failure = r;
		*call = failed;
	}
	return failure;
}

/* The name leads to no attributes: listxattrat(2), Linux 6.13, which refuses O_PATH. Asked only
 * where /proc is missing, so that nothing could copy them. */
static bool special_is_bare(int dir, const char *name, bool follow)
{
	return syscall(SYS_listxattrat, dir, name, follow ? 0 : AT_SYMLINK_NOFOLLOW, NULL, 0) == 0;
}

/* mknod(2) gave it the default ACL of its directory, which could admit users whom the source
 * refuses. */
static int special_copy_mode(const char *from, const char *to, mode_t mode, const char **call)
{
	static const char acl[] = "system.posix_acl_access";
	int r = special_copy_xattr(from, to, acl, call);
	if (r == -ENODATA) {
		*call = "removexattr";
		bool none = removexattr(to, acl) == 0 || errno == ENODATA || errno == EOPNOTSUPP;
		r = none ? 0 : -errno;
	}
	_Alignas(8) char value[65536]; /* XATTR_SIZE_MAX */
	ssize_t n = r < 0 ? getxattr(from, acl, value, sizeof(value)) : 0;
	if (n > 0) /* the copy has no ACL */
		mode = acl_group_mode(value, (size_t)n, mode);
	if (chmod(to, mode & 07777) == 0)
		return r;
	*call = "chmod";
	return -errno;
}

/* An ordinary user cannot give the file away, but can give it to a group that the user belongs to.
 */
static int special_set_owner(int dst, const struct stat *st, const char **call)
{
	*call = "fchownat";
	if (fchownat(dst, "", st->st_uid, st->st_gid, AT_EMPTY_PATH) == 0)
		return 0;
	int err = errno;
	if (err == EPERM)
		(void)!fchownat(dst, "", (uid_t)-1, st->st_gid, AT_EMPTY_PATH);
	return -err;
}

static int special_set_attribute(enum fcopy_attribute which, const struct entry *e,
				 const struct making *m, int src, int dst, const struct stat *st,
				 const char **call)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	int r;
	/* The calls for descriptors refuse O_PATH. The link in /proc leads to the file itself, also
	 * to a symlink. */
	const struct io_path from = io_proc_path(src), to = io_proc_path(dst);
	switch (which) {
	case FCOPY_ATTR_TIMESTAMPS:
		*call = "utimensat";
		return utimensat(m->dir, m->name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	case FCOPY_ATTR_OWNERSHIP: return special_set_owner(dst, st, call);
	case FCOPY_ATTR_XATTR:
		r = special_copy_xattrs(from.text, to.text, call);
		return r == -ENOENT && special_is_bare(e->dir->src, e->name, e->follow) ? 0 : r;
	case FCOPY_ATTR_MODE:
		if (S_ISLNK(st->st_mode)) /* has no mode */
			return 0;
		r = special_copy_mode(from.text, to.text, st->st_mode, call);
		if (r != -ENOENT || !special_is_bare(e->dir->src, e->name, e->follow) ||
		    !special_is_bare(m->dir, m->name, false))
			return r;
		*call = "chmod";
		return io_chmod(dst, st->st_mode & 07777) < 0 ? -errno : 0;
	}
	return 0;
}

/* Opens the source to read its attributes. Returns a descriptor; -ESTALE if another type of file
 * has its name now; or -errno. */
static int special_open_source(const struct entry *e, const struct stat *st)
{
	struct stat now;
	int fd = openat(e->dir->src, e->name, O_PATH | O_CLOEXEC | (e->follow ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	int r = fstat(fd, &now) < 0 ? -errno : (now.st_mode ^ st->st_mode) & S_IFMT ? -ESTALE : fd;
	if (r < 0)
		close(fd);
	return r;
}

/* Returns 0, or -errno if an attribute was lost that is required; reported. */
static int special_set_attributes(struct worker *w, const struct entry *e, const struct making *m,
				  const struct stat *st)
{
	const struct fcopy_options *o = &w->options;
	struct fcopy_error error;
	int failure = 0;
	int src = special_open_source(e, st);
	int dst = src < 0 ? -1 : openat(m->dir, m->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const int unopened = src < 0 ? src : dst < 0 ? -errno : 0;
	for (size_t i = 0; i < METADATA_ATTRIBUTES && failure == 0; i++) {
		const char *call = "open";
		if (!(o->preserve & metadata_order[i]))
			continue;
		int r = unopened
			    ? unopened
			    : special_set_attribute(metadata_order[i], e, m, src, dst, st, &call);
		if (r == 0)
			continue;
		bool reads = src < 0 || strcmp(call, "getxattr") == 0 ||
			     strcmp(call, "listxattr") == 0;
		error_proc(&error, call, reads ? entry_src : entry_dst, -r);
		if (src == -ESTALE)
			error.reason = "was replaced during the copy";
		if (o->preserve_required & metadata_order[i] ||
		    (!reads && error_is_of_storage(&error) && system_has(m->dir, SYSTEM_FAITHFUL)))
			failure = r;
		else
			report_warning(w, e, &error);
	}
	if (src >= 0)
		close(src);
	if (dst >= 0)
		close(dst);
	if (failure < 0)
		report_failure(w, e, &error);
	return failure;
}

static bool special_exists(const struct entry *e)
{
	struct stat st;
	return fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Returns 0, or -errno with the failed call; NULL: reported. */
static int special_make(struct worker *w, const struct entry *e, const struct making *m,
			const struct stat *st, bool replace, const char **call)
{
	if (m->aside && !replace && special_exists(e))
		return -EEXIST;
	int r = special_create(e, m, st, call);
	if (r < 0)
		return r;
	if (w->tracks) {
		int fd = openat(m->dir, m->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		w->made = identity_of(fd); /* of -1: unknown */
		if (fd >= 0)
			close(fd);
	}
	if (w->options.preserve && (r = special_set_attributes(w, e, m, st)) < 0)
		*call = NULL;
	else
		r = aside_finish(w, m, e, replace, call);
	if (r != 0)
		aside_abort(m, r);
	return r;
}

/* A file is replaced, a directory is not: rename(2) refuses it with EISDIR. */
static int special_replace(struct worker *w, const struct entry *e, const struct making *m,
			   const struct stat *st, bool in_place, const char **call)
{
	char name[TEMPORARY_SIZE];
	const struct making drawn = {.dir = m->dir, .name = name, .aside = true};
	*call = "getrandom";
	int r = m->aside ? 0 : temporary_draw(name);
	if (r == 0)
		r = special_make(w, e, m->aside ? m : &drawn, st, true, call);
	if (r == 0 || r == SEEN_ANOTHER || !*call || strcmp(*call, "rename") != 0)
		return r;
	/* It could be created: what it replaces is removed first. */
	if (!in_place || r == -EISDIR)
		return r;
	if (!facts_still_allow(w, e))
		return SEEN_ANOTHER;
	if (unlinkat(e->dir->dst, e->as, 0) < 0)
		return r;
	return special_make(w, e, m, st, false, call);
}

/* A new tree has something of this name: what NFS has made, although it says that the name existed?
 * Returns 0; or -EEXIST if the outcome is known. */
static int special_take(struct worker *w, const struct entry *e, const struct stat *st)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat made;
	if (rivals_report_new(w, e) < 0)
		return -EEXIST;
	bool same = fstatat(e->dir->dst, e->as, &made, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !((made.st_mode ^ st->st_mode) & S_IFMT) && made.st_rdev == st->st_rdev;
	if (same && S_ISLNK(st->st_mode)) {
		const ssize_t n = readlinkat(e->dir->src, e->name, from, sizeof(from));
		same = n >= 0 && n == readlinkat(e->dir->dst, e->as, to, sizeof(to)) &&
		       memcmp(from, to, (size_t)n) == 0;
	}
	const struct making m = {.dir = e->dir->dst, .name = e->as};
	if (!same)
		return rivals_report_other(w, e);
	const bool lost = w->options.preserve && special_set_attributes(w, e, &m, st) < 0;
	return lost ? -EEXIST : 0;
}

static bool special_in_place(const struct worker *w)
{
	return w->options.in_place == FCOPY_WHEN_ALWAYS || w->options.in_place == FCOPY_WHEN_AUTO;
}

/* Creates the name, or replaces what has it. Returns 0; -EEXIST if the outcome is known;
 * SEEN_ANOTHER; ENDPOINT_RIVAL if another entry of the source has it; or -errno with the
 * call; NULL: reported. */
static int special_place(struct worker *w, const struct entry *e, const struct making *m,
			 const struct stat *st, const char **call)
{
	struct tree *t = w->tree;
	int r = w->decision.replaces ? -EEXIST : special_make(w, e, m, st, false, call);
	if (r == -EEXIST && t->root.ground.exclusive) {
		*call = NULL;
		return special_take(w, e, st);
	}
	if (r == -EEXIST && t->root.ground.journal && remove_entry(e->dir->dst, e->as) == 0)
		r = special_make(w, e, m, st, false, call);
	if (r == -EEXIST && (w->decision.exact || facts_are_old(w)) &&
	    rivals_have(t, e->dir, e->as))
		return ENDPOINT_RIVAL;
	if (r == -EEXIST && (facts_are_old(w) || !facts_still_allow(w, e)))
		return SEEN_ANOTHER;
	if (r == -EEXIST && !rivals_claim(t, e))
		return ENDPOINT_RIVAL;
	if (r == -EEXIST)
		r = special_replace(w, e, m, st, special_in_place(w), call);
	/* A directory of an interrupted attempt. */
	if (r == -EISDIR && t->shared && remove_entry(e->dir->dst, e->as) == 0)
		r = special_make(w, e, m, st, false, call);
	if (r == 0)
		(void)rivals_claim(t, e); /* it is new */
	return r;
}

/* May every user make such a file? */
static bool special_is_free(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode);
}

static void special_fail(struct worker *w, const struct entry *e, const struct stat *st, int r,
			 const char *call)
{
	const bool src = strcmp(call, "readlink") == 0;
	struct fcopy_error error;
	error_call(&error, call, src ? entry_src : entry_dst, -r);
	/* exFAT, FAT and others: symlink(2), mknod(2). Only root may make devices. */
	if (r == -EPERM && strcmp(call, "symlink") == 0)
		error.reason = "symbolic links are unsupported there; -L copies what they lead to";
	if (r == -EPERM && strcmp(call, "mknod") == 0 && special_is_free(st))
		error.reason = "such special files are unsupported there";
	if (strcmp(call, "rename") == 0 && r != -EISDIR && !special_in_place(w))
		error.advice = FCOPY_ADVICE_IN_PLACE_AUTO;
	report_failure(w, e, &error);
}

/* Returns false if something else than was looked at has the name. */
static bool special_copy_once(struct worker *w, const struct entry *e, const struct stat *st)
{
	const char *call;
	struct making m;
	int r = aside_begin(w, e, &m, &call);
	rivals_lock(w->tree);
	if (r == 0)
		r = special_place(w, e, &m, st, &call);
	rivals_unlock(w->tree);
	if (aside_is_refused(&m, e, r))
		return special_copy_once(w, e, st);
	if (r < 0 && !call)
		return true;
	if (r == ENDPOINT_RIVAL)
		rivals_report(w, e);
	else if (r < 0)
		special_fail(w, e, st, r, call);
	return r != SEEN_ANOTHER;
}

void special_copy(struct worker *w, const struct entry *e, const struct stat *st)
{
	int tries = 0;
	while (!special_copy_once(w, e, st) && facts_again(w, e, -1, st, tries++))
		;
}
