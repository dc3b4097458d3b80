/* SPDX-License-Identifier: MIT
 * One more name for a file that was copied.
 */
#include "directory.h"
#include "displace.h"
#include "endpoints/error.h"
#include "entry.h"
#include "io/io.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* May the link replace what has this name in an existing tree? A file only where a copy might:
 * every check of destination_open_place() applies. Returns 1; 0; or -errno with the call. */
static int hard_link_may_replace(struct worker *w, const struct entry *e, const struct stat *st,
				 struct failure *fail)
{
	struct fcopy_error error = {0};
	struct fcopy_options options = w->options;
	options.resume = false; /* only a check: no part is opened, and no file overwritten */
	options.in_place = FCOPY_WHEN_NEVER;
	if (!decide_link_replaces(&w->tree->root.ground, &w->work.facts, w->tree->options))
		return 0;
	if (!S_ISREG(st->st_mode))
		return 1;
	const unsigned flags = DESTINATION_REPLACES_LINKS |
			       (tree_removes(w->tree) ? DESTINATION_REPLACES_READ_ONLY : 0) |
			       (admit_is_due(e->dir) ? DESTINATION_ADMITTED : 0) |
			       (decide_replaces(w->tree->options) || w->work.decision.clears
				    ? DESTINATION_REPLACES_ALL
				    : 0);
	int r = facts_place(w, e, &error);
	if (r == 0)
		r = destination_rehearse(&w->work.place, entry_dst, st, &options, flags, &error);
	if (r == 0)
		return 1;
	if (!error.call || (r == RESULT_REFUSED && !hard_link_is_failure(error.err)))
		return 0;
	/* The call could succeed when the copy makes it again: then the name would become a file of
	 * its own without a word. Only a refused open says something about the file. */
	return fail_if(fail, -error.err, error.call);
}

/* The copy: by its name, or by a descriptor if another user may exchange the name. */
struct origin {
	int dir;
	const char *name;
	int fd; /* -1: none */
};

/* A slot_maker. linkat(AT_EMPTY_PATH) needs no /proc, but CAP_DAC_READ_SEARCH before Linux 6.10. */
static int hard_link_make_name(int dir, const char *name, void *origin)
{
	const struct origin *o = origin;
	if (o->fd < 0)
		return linkat(o->dir, o->name, dir, name, 0) < 0 ? -errno : 0;
	if (linkat(o->fd, "", dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT && errno != EPERM && errno != EINVAL)
		return -errno;
	const struct io_path path = io_proc_path(o->fd);
	return linkat(AT_FDCWD, path.text, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static struct making hard_link_making(struct origin *o)
{
	return (struct making){
	    .call = "linkat", .make = hard_link_make_name, .whole = true, .arg = o};
}

/* Gives the copy the entry's name, too. replace: in place of what has it. Returns as aside_make().
 */
static int hard_link_name(struct worker *w, const struct entry *e, struct origin *o,
			  struct failure *fail)
{
	const struct making m = hard_link_making(o);
	return aside_make(w, e, &m, false, fail);
}

/* Opens the copy, which must be what was made, if it may have been exchanged. */
static int hard_link_open(struct worker *w, const struct entry *e, const struct copied *c,
			  struct origin *o, struct failure *fail)
{
	*o = (struct origin){.fd = -1, .name = c->name};
	o->dir = !c->dir ? c->at : c->dir == e->dir ? e->dir->dst : directory_reopen(c->dir);
	if (o->dir < 0)
		return fail_if(fail, o->dir, "open");
	if (!c->dir || !aside_may_move(w->tree, c->dir))
		return 0;
	o->fd = openat(o->dir, o->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (o->fd < 0)
		return fail_if(fail, errno == ENOENT ? -ESTALE : -errno, "open");
	return 0;
}

/* -ELOOP: one of the names is a symlink, which a copy follows. The copy may be of an earlier
 * operand, which was merged. */
static int hard_link_check(const struct worker *w, const struct stat *st, const struct copied *c,
			   const struct origin *o, struct failure *fail)
{
	struct stat of = {0};
	fail_at(fail, "stat");
	if (S_ISREG(st->st_mode) && !w->tree->options->symbolic_link) {
		if (fstatat(o->dir, c->name, &of, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
			return -errno;
		if (S_ISLNK(of.st_mode) ||
		    decide_link_meets_symlink(&w->work.facts, &w->work.decision))
			return -ELOOP;
	}
	if (o->fd < 0)
		return 0;
	const struct identity now = identity_of(o->fd);
	return identity_is_same(&now, &c->made) ? 0 : -ESTALE;
}

/* Has the name the inode of the copy? 1; 0; or -errno. */
static int hard_link_is_made(const struct origin *o, int to, const char *as)
{
	struct stat a, b;
	const int r = o->fd < 0 ? fstatat(o->dir, o->name, &a, AT_SYMLINK_NOFOLLOW)
				: fstat(o->fd, &a);
	if (r < 0 || fstatat(to, as, &b, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return same_inode(&a, &b);
}

/* Are names of DST left alone that have the right content? */
static bool hard_link_leaves(const struct tree *t)
{
	return t->options->update || t->options->link_dest || t->options->attributes_only;
}

/* Of a dry run: will one of the two names be a symlink, which a copy follows? */
static bool hard_link_meets_symlink(const struct worker *w, const struct entry *e,
				    const struct stat *st, const struct copied *c)
{
	const struct tree *t = w->tree;
	struct stat of;
	if (!S_ISREG(st->st_mode) || t->options->symbolic_link)
		return false;
	if (decide_link_meets_symlink(&w->work.facts, &w->work.decision))
		return true;
	if (!decide_follows(&t->root.ground, st->st_mode, t->options))
		return false; /* the first name is not a symlink any more */
	const int dir = c->dir == e->dir ? e->dir->dst : directory_reopen(c->dir);
	const bool symlink = dir >= 0 && fstatat(dir, c->name, &of, AT_SYMLINK_NOFOLLOW) == 0 &&
			     S_ISLNK(of.st_mode);
	if (dir >= 0 && c->dir != e->dir)
		close(dir);
	return symlink;
}

/* Of a dry run: returns what hard_link_make would, without a failure of it. */
static int hard_link_rehearse(struct worker *w, const struct entry *e, const struct stat *st,
			      const struct copied *c)
{
	const struct stat *old = &w->work.facts.old;
	struct failure fail;
	/* Only of an unchanged copy, made is set: another one would be a new inode. */
	if (w->work.facts.exists && hard_link_leaves(w->tree) && c->made.ino == old->st_ino &&
	    makedev(c->made.dev_major, c->made.dev_minor) == old->st_dev)
		return RESULT_SAME;
	if (hard_link_meets_symlink(w, e, st, c))
		return -ELOOP;
	return !w->work.facts.exists || w->work.decision.clears ||
		       hard_link_may_replace(w, e, st, &fail) > 0
		   ? 0
		   : -EEXIST;
}

/* If the journal says that the bytes of this name were flushed, flushes the copy to which it
 * becomes a link, or the whole file system if the copy cannot be opened. */
static int hard_link_flush(struct worker *w, const struct entry *e, const struct origin *o,
			   struct failure *fail)
{
	if (!resume_is_flushed(w->tree, e))
		return 0;
	const int fd = openat(o->dir, o->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const bool flushed = fd < 0 ? flush_all(w->tree, e->dir->dst) : fsync(fd) == 0;
	const int r = flushed ? 0 : fail_at(fail, fd < 0 ? "syncfs" : "fsync");
	io_close(fd);
	return r;
}

/* An unfinished tree has the name: of an earlier run, or of this one, if the directory lists it
 * twice, perhaps in another thread. The lock is held. */
static int hard_link_continue(struct worker *w, const struct entry *e, struct origin *o,
			      struct failure *fail)
{
	const int to = e->dir->dst;
	int r = fail_if(fail, hard_link_is_made(o, to, e->as), "stat");
	if (r != 0)
		return r > 0 ? RESULT_SAME : r;
	if ((r = hard_link_flush(w, e, o, fail)) < 0)
		return r;
	r = remove_entry(to, e->as) == 0 ? hard_link_name(w, e, o, fail) : -EEXIST;
	return r == -EEXIST && hard_link_is_made(o, to, e->as) > 0 ? RESULT_SAME : r;
}

/* The name may exist. Returns 0, RESULT_SAME, RESULT_NEW, RESULT_RIVAL, RESULT_TAKEN, or
 * -errno with the call. */
static int hard_link_place(struct worker *w, const struct entry *e, const struct stat *st,
			   struct origin *o, struct failure *fail)
{
	const struct making m = hard_link_making(o);
	admit_changes(w->tree, e->dir);
	int r = hard_link_name(w, e, o, fail);
	if (r == 0)
		return RESULT_NEW;
	rivals_lock(w->tree);
	if (r == -EEXIST && (w->tree->root.ground.journal || w->tree->share.by))
		r = hard_link_continue(w, e, o, fail);
	if (r == -EEXIST && rivals_have(w->tree, e))
		r = RESULT_RIVAL;
	if (r == -EEXIST && !facts_still_allow(&w->work.decision, e))
		r = RESULT_TAKEN;
	if (r == -EEXIST) {
		const int may = hard_link_may_replace(w, e, st, fail);
		if (may > 0) /* an earlier comparison may have kept it */
			rivals_unkeep(w->tree, e, &w->work.facts.old);
		if (may != 0)
			r = may < 0 ? may : aside_replace(w, e, &m, fail);
	}
	rivals_unlock(w->tree);
	return r;
}

static int hard_link_make_once(struct worker *w, const struct entry *e, const struct stat *st,
			       const struct copied *c, struct failure *fail)
{
	struct origin o;
	int r = hard_link_open(w, e, c, &o, fail);
	if (r == 0 && hard_link_leaves(w->tree)) {
		r = fail_if(fail, hard_link_is_made(&o, e->dir->dst, e->as), "stat");
		r = r > 0 ? RESULT_SAME : r;
	}
	if (r == 0)
		r = hard_link_check(w, st, c, &o, fail);
	if (r == 0)
		r = hard_link_place(w, e, st, &o, fail);
	if (r == RESULT_NEW)
		r = 0;
	io_close(o.fd);
	if (c->dir && c->dir != e->dir && o.dir >= 0)
		close(o.dir);
	return r;
}

int hard_link_make(struct worker *w, const struct entry *e, const struct stat *st,
		   const struct copied *c, struct failure *fail)
{
	int r;
	if (w->tree->options->dry_run)
		return hard_link_rehearse(w, e, st, c);
	for (int tries = 0; (r = hard_link_make_once(w, e, st, c, fail)) == RESULT_TAKEN; tries++)
		if (!facts_again(w, e, -1, st, NULL, tries))
			return RESULT_KNOWN;
	return r;
}

/* Makes the entry another name of the earlier copy, which is open. Returns 0, RESULT_NEW,
 * RESULT_RIVAL, RESULT_TAKEN, or -errno with the call. */
static int hard_link_earlier(struct worker *w, const struct entry *e, const struct stat *st,
			     int earlier, struct failure *fail)
{
	struct origin o = {.dir = -1, .name = "", .fd = earlier};
	if (decide_link_meets_symlink(&w->work.facts, &w->work.decision))
		return -EEXIST;
	return w->tree->options->dry_run ? 0 : hard_link_place(w, e, st, &o, fail);
}

/* The clone has separate attributes, so that a later change does not change the earlier copy. */
static int hard_link_clone(int found, int *fd, struct stat *st)
{
	struct stat copy;
	int source = open(io_proc_path(found).text, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (source >= 0 && fstat(source, &copy) == 0) {
		close(*fd);
		*fd = source;
		*st = copy;
	} else if (source >= 0) {
		close(source);
	}
	return 0;
}

int hard_link_dest(struct worker *w, const struct entry *e, int *fd, struct stat *st)
{
	const enum fcopy_when reflink = w->tree->options->copy.reflink;
	struct fcopy_error error;
	int found = e->dir->link < 0 || *fd < 0 ? -1 : link_dest_find(w, e, *fd, st);
	if (found < 0)
		return 0;
	if (reflink == FCOPY_WHEN_AUTO || reflink == FCOPY_WHEN_ALWAYS) {
		int r = hard_link_clone(found, fd, st);
		close(found);
		return r;
	}
	struct failure fail = {.call = "linkat"};
	int r;
	rivals_expect_link(w->tree, e);
	for (int tries = 0; (r = hard_link_earlier(w, e, st, found, &fail)) == RESULT_TAKEN;
	     tries++)
		if (!facts_again(w, e, *fd, st, NULL, tries)) {
			close(found);
			return RESULT_KNOWN;
		}
	struct stat linked;
	const bool made = r >= 0 && r != RESULT_RIVAL;
	if (made && !w->tree->options->dry_run && fstat(found, &linked) == 0)
		rivals_note_linked(w, e, &linked, r == RESULT_NEW);
	if (made && w->work.tracks)
		w->work.made = identity_of(found);
	close(found);
	if (made) {
		outcome_link(&w->work.outcome, st);
		return RESULT_KNOWN;
	}
	if (r < 0 && r != -EEXIST && r != -EMLINK) { /* then it is copied */
		error_call(&error, fail.call, entry_dst, -r);
		report_warning(w, e, &error);
	}
	return 0;
}

/* Returns false if something else than was looked at has the name. */
static bool hard_link_source_once(struct worker *w, const struct entry *e, int fd,
				  const struct stat *st)
{
	struct failure fail;
	struct origin o = {.dir = e->dir->src, .name = e->name, .fd = fd};
	if (fd < 0)
		o.fd = openat(o.dir, o.name, O_PATH | O_CLOEXEC | (e->follow ? 0 : O_NOFOLLOW));
	if (o.fd < 0) {
		report_call(w, e, "open", entry_src, errno);
		return true;
	}
	const struct making m = hard_link_making(&o);
	rivals_lock(w->tree);
	const int r = w->work.decision.replaces ? aside_replace(w, e, &m, &fail)
						: aside_make(w, e, &m, false, &fail);
	if (r == 0)
		(void)rivals_keep_linked(w->tree, e, st);
	rivals_unlock(w->tree);
	if (fd < 0)
		close(o.fd);
	if (r == RESULT_TAKEN || (r == -EEXIST && facts_are_old(&w->work)))
		return false;
	if (r == RESULT_RIVAL)
		rivals_report(w, e);
	else if (r < 0)
		report_call(w, e, fail.call, entry_dst, -r);
	else
		outcome_link(&w->work.outcome, st);
	return true;
}

void hard_link_source(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	int tries = 0;
	while (!hard_link_source_once(w, e, fd, st) && facts_again(w, e, fd, st, NULL, tries++))
		;
}

bool hard_link_is_failure(int err)
{
	return io_is_full(err) || err == EIO || err == ENOMEM || err == EROFS || err == EMFILE ||
	       err == ENFILE;
}
