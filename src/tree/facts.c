/* SPDX-License-Identifier: MIT
 * Implements facts.h.
 */
#define _GNU_SOURCE
#include "facts.h"
#include "endpoints/error.h"
#include "endpoints/exchange.h"
#include "endpoints/same.h"
#include "report.h"
#include "rivals.h"
#include "update.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Are SRC and DST one name? */
static bool is_same_name(const struct entry *e)
{
	struct stat src, dst;
	return strcmp(e->name, e->as) == 0 && fstat(e->dir->src, &src) == 0 &&
	       fstat(e->dir->dst, &dst) == 0 && same_inode(&src, &dst);
}

/* Can a symlink in DST lead to SRC? A relative path does so from the current directory only. */
static void find_path(const struct entry *e, struct facts *f)
{
	char target[PATH_MAX];
	struct stat here, there;
	entry_path(e, true, target, sizeof(target));
	f->same_name = is_same_name(e);
	if (strlen(target) >= sizeof(target) - 1)
		f->unlinked_err = ENAMETOOLONG;
	else if (target[0] != '/' && !(stat(".", &here) == 0 && fstat(e->dir->dst, &there) == 0 &&
				       same_inode(&here, &there))) {
		f->unlinked_err = EINVAL;
		f->unlinked = "would not lead to SRC: with -s, use an absolute SRC, or copy into "
			      "the current directory";
	}
}

/* Looks at the name in DST, unless that was done before SRC was opened. */
static void find_old(const struct worker *w, const struct entry *e, struct facts *f)
{
	f->looked = true;
	if (w->looked)
		f->old = w->old;
	f->exists = w->looked || fstatat(e->dir->dst, e->as, &f->old, AT_SYMLINK_NOFOLLOW) == 0;
	f->err = f->exists ? 0 : errno;
}

/* What the symlink in DST leads to. A complete new tree has none in place of a file. */
static void find_target(const struct worker *w, const struct entry *e, struct facts *f)
{
	if (w->tree->root.compares)
		f->target = f->old;
	if (w->tree->root.compares || fstatat(e->dir->dst, e->as, &f->target, 0) == 0)
		f->leads = LEADS;
	else
		f->target_err = errno;
}

/* Is what has the name SRC itself, or what SRC leads to? */
static void find_same(const struct entry *e, struct facts *f)
{
	struct stat st;
	const bool same = same_inode(&f->old, &f->src);
	if (same && !f->same_name)
		f->same_name = is_same_name(e);
	if (same && f->follow)
		f->src_is_symlink = fstatat(e->dir->src, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				    S_ISLNK(st.st_mode);
	if (!same && S_ISLNK(f->src.st_mode))
		f->leads_here = fstatat(e->dir->src, e->name, &st, 0) == 0 &&
				same_inode(&st, &f->old);
}

/* Has this run made it? Only a file that is kept, and a directory, can be that and no failure. The
 * lock: a symlink or a special file has its name before it is claimed. */
static bool facts_are_made(struct tree *t, const struct facts *f)
{
	const bool skips = t->options->update && t->options->update != FCOPY_UPDATE_CHANGED;
	if (!t->options->copy.no_clobber && !skips && !S_ISDIR(f->old.st_mode))
		return false;
	rivals_lock(t);
	const bool made = rivals_made(t, &f->old) ||
			  (f->leads == LEADS && rivals_made(t, &f->target));
	rivals_unlock(t);
	return made;
}

void facts_find(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct tree *t = w->tree;
	const struct fcopy_tree_options *o = t->options;
	struct facts *f = &w->facts;
	*f = (struct facts){.src = *st, .follow = e->follow};
	w->decision = (struct decision){.act = ACT_MAKE};
	if (o->symbolic_link && !o->link && !S_ISDIR(st->st_mode))
		find_path(e, f);
	if (o->link)
		f->src_output = same_output(&o->copy, st);
	if (e->dir->state != DIRECTORY_OLD || e->dir->dst < 0 || t->shared ||
	    !decide_looks(o, st->st_mode))
		return;
	find_old(w, e, f);
	w->looked = false;
	if (!f->exists)
		return;
	if (S_ISLNK(f->old.st_mode) && S_ISREG(st->st_mode))
		find_target(w, e, f);
	find_same(e, f);
	f->old_output = same_output(&o->copy, &f->old);
	f->target_output = f->leads == LEADS ? same_output(&o->copy, &f->target) : NULL;
	f->is_operand = rivals_are_source(t, &f->old);
	f->made = facts_are_made(t, f);
	const struct stat *old = o->update == FCOPY_UPDATE_OLDER
				     ? decide_compared(&t->root.ground, f, o)
				     : NULL;
	f->keeps = old && update_keeps(t, e, st, old);
}

static void facts_refuse(struct worker *w, const struct entry *e)
{
	const struct decision *d = &w->decision;
	const char *path = d->source ? entry_src : entry_dst;
	struct fcopy_error error;
	if (d->call) {
		report_call(w, e, d->call, path, d->err);
	} else if (d->pair) {
		error_refuse_operand(&error, path, d->err, d->reason, FCOPY_ADVICE_NONE);
		error.path2 = entry_dst;
		report_failure(w, e, &error);
	} else if (d->unsuitable) {
		report_unsuitable(w, e, path, d->err, d->reason);
	} else {
		report_refusal(w, e, path, d->err, d->reason);
	}
}

bool facts_decide(struct worker *w, const struct entry *e, int fd)
{
	struct tree *t = w->tree;
	for (int dst = -1, r;;) {
		w->decision = decide(&t->root.ground, &w->facts, t->options);
		switch (w->decision.act) {
		case ACT_MAKE: return false;
		case ACT_COMPARE:
			r = update_is_equal(w, e, fd, &dst);
			if (r == 0 && tree_stopped(t)) /* it was cut short */
				w->outcome->stage = OUTCOME_NONE;
			if (r < 0 || w->outcome->stage == OUTCOME_NONE)
				return true;
			w->facts.content = r > 0 ? CONTENT_EQUAL : CONTENT_DIFFERS;
			break;
		case ACT_LEAVE:
			if (update_leave(w, e, fd, dst) != 0)
				return true;
			w->facts.content = CONTENT_DIFFERS;
			break;
		case ACT_SAME: w->outcome->action = FCOPY_ACTION_UNCHANGED; return true;
		case ACT_SKIP: w->outcome->action = FCOPY_ACTION_SKIPPED; return true;
		case ACT_RIVAL: rivals_report(w, e); return true;
		case ACT_REFUSE: facts_refuse(w, e); return true;
		}
	}
}

bool facts_allow(const struct worker *w, const struct entry *e, const struct stat *now)
{
	const struct decision *d = &w->decision;
	if (!d->exact)
		return true;
	if (!now || !d->seen)
		return !now; /* what is gone is not lost by this copy */
	return exchange_is_same(e->dir->dst, now, d->seen);
}

bool facts_still_allow(const struct worker *w, const struct entry *e)
{
	struct stat now;
	if (!w->decision.exact)
		return true;
	return facts_allow(
	    w, e, fstatat(e->dir->dst, e->as, &now, AT_SYMLINK_NOFOLLOW) == 0 ? &now : NULL);
}
