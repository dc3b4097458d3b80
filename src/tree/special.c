/* SPDX-License-Identifier: MIT
 * Symlinks, FIFOs, sockets and devices: created like the source's, never opened.
 */
#include "displace.h"
#include "endpoints/error.h"
#include "entry.h"
#include "io/io.h"
#include "report.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One that is being made. */
struct special {
	struct worker *w;
	const struct entry *e;
	const struct stat *st;
	const char *target; /* of options.symbolic_link; otherwise NULL */
	struct failure *fail;
};

static int special_create(int dir, const char *name, void *arg)
{
	const struct special *s = arg;
	const struct entry *e = s->e;
	char text[PATH_MAX];
	if (s->target)
		return symlinkat(s->target, dir, name) < 0 ? -errno : 0;
	if (!S_ISLNK(s->st->st_mode)) {
		const mode_t mode = s->st->st_mode & (S_IFMT | 07777);
		return mknodat(dir, name, mode, s->st->st_rdev) < 0 ? -errno : 0;
	}
	ssize_t n = readlinkat(e->dir->src, e->name, text, sizeof(text));
	if (n < 0 || n == sizeof(text)) {
		*s->fail = (struct failure){"readlink", STEP_READ};
		return n < 0 ? -errno : -ENAMETOOLONG;
	}
	text[n] = '\0';
	return symlinkat(text, dir, name) < 0 ? -errno : 0;
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
static int special_set_attributes(struct worker *w, const struct entry *e, int dir,
				  const char *name, const struct stat *st)
{
	struct fcopy_error error;
	struct xattr_file src = {
	    .by_path = true, .dir = e->dir->src, .name = e->name, .follow = e->follow};
	struct xattr_file dst = {.by_path = true, .dir = dir, .name = name};
	src.fd = special_open_source(e, st);
	dst.fd = src.fd < 0 ? -1 : openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int r = src.fd < 0 ? src.fd : dst.fd < 0 ? -errno : 0;
	if (r == 0) {
		r = preserve_entry(w, e, &src, &dst, st, ~0U);
	} else {
		error_call(&error, "open", src.fd < 0 ? entry_src : entry_dst, -r);
		if (src.fd == -ESTALE)
			error.reason = "was replaced during the copy";
		r = preserve_lose(w, e, w->options.preserve, &error);
	}
	io_close(src.fd);
	io_close(dst.fd);
	return r;
}

static int special_complete(int dir, const char *name, void *arg, struct failure *fail)
{
	const struct special *s = arg;
	struct worker *w = s->w;
	if (w->work.tracks) {
		int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		w->work.made = identity_of(fd); /* of -1: unknown */
		io_close(fd);
	}
	const int r = w->options.preserve ? special_set_attributes(w, s->e, dir, name, s->st) : 0;
	return r < 0 ? fail_reported(fail, r) : 0;
}

/* Returns as aside_make() or aside_replace(); STEP_REPORTED: of an attribute. */
static int special_make(struct worker *w, const struct entry *e, const struct stat *st,
			bool replace, struct failure *fail)
{
	struct special s = {.w = w, .e = e, .st = st, .fail = fail};
	const struct making m = {.call = S_ISLNK(st->st_mode) ? "symlink" : "mknod",
				 .make = special_create,
				 .complete = special_complete,
				 .arg = &s};
	return replace ? aside_replace(w, e, &m, fail) : aside_make(w, e, &m, false, fail);
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
	if (!same)
		return rivals_report_other(w, e);
	const bool lost = w->options.preserve &&
			  special_set_attributes(w, e, e->dir->dst, e->as, st) < 0;
	return lost ? -EEXIST : 0;
}

/* Creates the name, or replaces what has it. Returns 0; -EEXIST if the outcome is known;
 * RESULT_TAKEN; RESULT_RIVAL if another entry of the source has it; or -errno with the
 * call, or STEP_REPORTED. */
static int special_place(struct worker *w, const struct entry *e, const struct stat *st,
			 struct failure *fail)
{
	struct tree *t = w->tree;
	int r = w->work.decision.replaces ? -EEXIST : special_make(w, e, st, false, fail);
	if (r == -EEXIST && t->root.ground.exclusive) {
		r = special_take(w, e, st);
		return r < 0 ? fail_reported(fail, r) : 0;
	}
	if (r == -EEXIST && t->root.ground.journal && remove_entry(e->dir->dst, e->as) == 0)
		r = special_make(w, e, st, false, fail);
	if (r == -EEXIST && (w->work.decision.exact || facts_are_old(&w->work)) &&
	    rivals_have(t, e))
		return RESULT_RIVAL;
	if (r == -EEXIST && (facts_are_old(&w->work) || !facts_still_allow(&w->work.decision, e)))
		return RESULT_TAKEN;
	if (r == -EEXIST)
		r = special_make(w, e, st, true, fail);
	/* A directory of an interrupted attempt. */
	if (r == -EISDIR && t->share.by && remove_entry(e->dir->dst, e->as) == 0)
		r = special_make(w, e, st, false, fail);
	if (r == 0)
		(void)rivals_claim(t, e, NULL); /* it is new */
	return r;
}

/* May every user make such a file? */
static bool special_is_free(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode);
}

static void special_fail(struct worker *w, const struct entry *e, const struct stat *st, int r,
			 const struct failure *fail)
{
	const bool refused = r == -EPERM && fail->step == STEP_MAKE;
	struct fcopy_error error;
	error_call(&error, fail->call, fail->step == STEP_READ ? entry_src : entry_dst, -r);
	/* exFAT, FAT and others: symlink(2), mknod(2). Only root may make devices. */
	if (refused && S_ISLNK(st->st_mode))
		error.reason = "symbolic links are unsupported there; -L copies what they lead to";
	if (refused && special_is_free(st))
		error.reason = "such special files are unsupported there";
	if (fail->step == STEP_RENAME && r != -EISDIR && !in_place_possible(&w->options))
		error.advice = FCOPY_ADVICE_IN_PLACE_AUTO;
	report_failure(w, e, &error);
}

/* Returns false if something else than was looked at has the name. */
static bool special_copy_once(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct failure fail;
	rivals_lock(w->tree);
	const int r = special_place(w, e, st, &fail);
	rivals_unlock(w->tree);
	if (r < 0 && fail.step == STEP_REPORTED)
		return true;
	if (r == RESULT_RIVAL)
		rivals_report(w, e);
	else if (r < 0)
		special_fail(w, e, st, r, &fail);
	return r != RESULT_TAKEN;
}

void special_copy(struct worker *w, const struct entry *e, const struct stat *st)
{
	int tries = 0;
	while (!special_copy_once(w, e, st) && facts_again(w, e, -1, st, NULL, tries++))
		;
}

/* options.symbolic_link: an entry of DST becomes a symlink to its source. */

/* It gets the times and the owner of the source; its other attributes are those of its target.
 * Returns 0 or -errno; STEP_REPORTED: of an attribute. */
static int symbolic_link_complete(int dir, const char *name, void *arg, struct failure *fail)
{
	const unsigned which = FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_OWNERSHIP;
	const struct special *l = arg;
	struct stat as_link = *l->st;
	if (!(l->w->options.preserve & which))
		return 0;
	const struct xattr_file dst = {.fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC),
				       .by_path = true};
	if (dst.fd < 0)
		return fail_at(fail, "open");
	as_link.st_mode = S_IFLNK | 0777;
	int r = preserve_entry(l->w, l->e, &(struct xattr_file){.fd = -1}, &dst, &as_link, which);
	close(dst.fd);
	return r < 0 ? fail_reported(fail, r) : 0;
}

/* Returns false if something else than was looked at has the name. */
static bool symbolic_link_make_once(struct worker *w, const struct entry *e, const struct stat *st)
{
	const bool replace = w->work.decision.replaces;
	char target[PATH_MAX];
	struct failure fail = {.call = "symlink"};
	struct special l = {.w = w, .e = e, .st = st, .target = target, .fail = &fail};
	const struct making m = {.call = "symlink",
				 .make = special_create,
				 .complete = symbolic_link_complete,
				 .arg = &l};
	entry_path(e, true, target, sizeof(target));
	rivals_lock(w->tree);
	const bool rival = replace && rivals_have(w->tree, e);
	int r = rival ? RESULT_RIVAL : aside_make(w, e, &m, replace, &fail);
	if (r == 0)
		(void)rivals_claim(w->tree, e, NULL); /* it is new */
	rivals_unlock(w->tree);
	if (rival)
		rivals_report(w, e);
	else if (r == RESULT_TAKEN || (r == -EEXIST && facts_are_old(&w->work)))
		return false;
	else if (r < 0 && fail.step != STEP_REPORTED)
		report_call(w, e, fail.call, entry_dst, -r);
	else if (r == 0)
		w->work.outcome.type = S_IFLNK;
	return true;
}

void symbolic_link_make(struct worker *w, const struct entry *e, const struct stat *st)
{
	int tries = 0;
	while (!symbolic_link_make_once(w, e, st) && facts_again(w, e, -1, st, NULL, tries++))
		;
}

/* options.attributes_only: a file of DST keeps its bytes, and gets the attributes of its source. */

/* Opens the file, or creates it empty. The owner of its directory can exchange its name: only the
 * descriptor is used from here on. Returns it, or -errno; *made: it is new. */
static int attributes_open(struct worker *w, const struct entry *e, const struct stat *st,
			   bool *made)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	const mode_t mode = w->options.default_mode ? 0666
			    : w->options.preserve & FCOPY_ATTR_MODE &&
				    storage_stores(w->tree->known.storage, e->dir->dst,
						   STORAGE_CHANGES_MODES)
				? 0600
				: st->st_mode & 0777;
	int fd = openat(e->dir->dst, e->as, O_WRONLY | O_CREAT | O_EXCL | flags, mode);
	*made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = openat(e->dir->dst, e->as, O_RDONLY | flags); /* a read-only file, too */
	/* cppcheck-suppress resourceLeak ; the caller closes it */
	return fd < 0 ? -errno : fd;
}

/* Is the open file what was looked at? In a new directory, another entry may have made it. */
static bool attributes_are_for(const struct worker *w, const struct stat *now)
{
	const struct facts *f = &w->work.facts;
	return S_ISREG(now->st_mode) &&
	       (!f->looked || (f->exists && !w->work.decision.clears && same_inode(&f->old, now)));
}

/* Returns false if something else than was looked at has the name. */
static bool attributes_only_once(struct worker *w, const struct entry *e, int src,
				 const struct stat *st)
{
	struct stat now;
	bool made, known = true;
	int fd = attributes_open(w, e, st, &made);
	if (fd == -ELOOP)
		return false;
	if (fd < 0) {
		report_call(w, e, "open", entry_dst, -fd);
		return true;
	}
	if (!made && fstat(fd, &now) < 0)
		report_call(w, e, "fstat", entry_dst, errno);
	else if (!made &&
		 (!attributes_are_for(w, &now) || !facts_allow(&w->work.decision, e, &now)))
		known = false;
	else
		preserve_open(w, e, src, fd, st, !made);
	close(fd);
	return known;
}

void attributes_only(struct worker *w, const struct entry *e, int src, const struct stat *st)
{
	int tries = 0;
	while (!attributes_only_once(w, e, src, st) && facts_again(w, e, src, st, NULL, tries++))
		;
}
