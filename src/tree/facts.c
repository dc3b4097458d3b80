/* SPDX-License-Identifier: MIT
 * What is known of an entry: see entry.h.
 */
#include "displace.h"
#include "endpoints/case.h"
#include "endpoints/error.h"
#include "endpoints/slot.h"
#include "entry.h"
#include "io/io.h"
#include "report.h"
#include "rivals.h"
#include "spelling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define TRIES 100 /* of one entry, which other processes replace */

/* Are SRC and DST one name? DST may ignore case. */
static bool facts_are_one_name(const struct entry *e)
{
	struct stat src, dst;
	return case_is_equal(e->name, e->as) && fstat(e->dir->src, &src) == 0 &&
	       fstat(e->dir->dst, &dst) == 0 && same_inode(&src, &dst) &&
	       (strcmp(e->name, e->as) == 0 || case_is_one(e->dir->dst, e->as));
}

/* Can a symlink in DST lead to SRC? A relative path does so from the current directory only. */
static void facts_find_path(const struct entry *e, struct facts *f)
{
	char target[PATH_MAX];
	struct stat here, there;
	entry_path(e, true, target, sizeof(target));
	f->same_name = facts_are_one_name(e);
	if (strlen(target) >= sizeof(target) - 1)
		f->unlinked_err = ENAMETOOLONG;
	else if (target[0] != '/' && !(stat(".", &here) == 0 && fstat(e->dir->dst, &there) == 0 &&
				       same_inode(&here, &there))) {
		f->unlinked_err = EINVAL;
		f->unlinked = "would not lead to SRC: with -s, use an absolute SRC, or copy into "
			      "the current directory";
	}
}

static int facts_look(struct worker *w, const struct entry *e, struct fcopy_error *error)
{
	const int r = place_borrow(&w->work.place, e->dir->dst, e->as, entry_dst, error);
	w->work.place.dev = e->dir->dst_inode.dev;
	return r;
}

/* Looks at the name in DST, unless that was done before SRC was opened. */
static void facts_find_old(struct worker *w, const struct entry *e, struct facts *f)
{
	int r = 0;
	if (w->work.place.dir < 0)
		r = facts_look(w, e, &w->work.unusable);
	if (r < 0)
		place_close(&w->work.place);
	f->looked = true;
	f->exists = r == 0 && w->work.place.exists;
	f->err = r < 0 ? -r : f->exists ? 0 : ENOENT;
	f->old = w->work.place.st;
}

bool facts_write_device(const struct tree *t)
{
	const struct fcopy_tree_options *o = t->options;
	return o->dry_run && t->root.ground.single && t->operands->count == 1 && !o->update &&
	       t->operands->dst.kind == OPERAND_DEVICE && !o->recursive && !o->confirm &&
	       !decide_replaces(o);
}

/* Can the copy of a file be written to what has the name? A symlink may be followed for that. */
static void facts_find_place(struct worker *w, struct facts *f)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const bool file = S_ISREG(f->src.st_mode) && !o->link && !o->symbolic_link &&
			  !o->attributes_only && !w->tree->root.compares &&
			  !facts_write_device(w->tree);
	const bool follow = decide_follows(&w->tree->root.ground, f->src.st_mode, o);
	f->unusable = file &&
		      place_accept(&w->work.place, follow, entry_dst, &w->work.unusable) < 0;
}

/* What the symlink in DST leads to. A complete new tree has none in place of a file. */
static void facts_find_target(const struct worker *w, const struct entry *e, struct facts *f)
{
	const bool known = w->tree->root.compares || (w->work.place.target >= 0 && !f->unusable);
	if (known)
		f->target = w->work.place.st;
	if (known || fstatat(e->dir->dst, e->as, &f->target, 0) == 0)
		f->leads = LEADS;
	else
		f->target_err = errno;
}

/* Is what has the name SRC itself, or what SRC leads to? Another spelling may have given SRC
 * another inode number. */
static void facts_find_same(struct worker *w, const struct entry *e, struct facts *f)
{
	struct stat st;
	if (!same_inode(&f->old, &f->src) &&
	    spelling_is_source(w->tree, e, f->src.st_dev, f->old.st_dev)) {
		f->old.st_ino = w->work.place.st.st_ino = f->src.st_ino;
		f->same_name = true;
	}
	const bool same = same_inode(&f->old, &f->src);
	if (same && !f->same_name)
		f->same_name = facts_are_one_name(e);
	if (same && f->follow)
		f->src_is_symlink = fstatat(e->dir->src, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				    S_ISLNK(st.st_mode);
	if (!same && S_ISLNK(f->src.st_mode))
		f->leads_here = fstatat(e->dir->src, e->name, &st, 0) == 0 &&
				same_inode(&st, &f->old);
}

/* Has this run made it? Only a file that is kept, and a directory, can be that and no failure. The
 * lock: a symlink or a special file has its name before it is claimed. */
static bool facts_are_made(struct tree *t, const struct entry *e, const struct facts *f)
{
	/* One file of DST is right for all names of one file of SRC. */
	const bool linked = ground_links(&t->root.ground, t->options) && f->src.st_nlink > 1;
	const bool skips = !linked && t->options->update &&
			   t->options->update != FCOPY_UPDATE_CHANGED;
	if (!t->options->copy.no_clobber && !skips && !S_ISDIR(f->old.st_mode) && !f->unusable)
		return false;
	/* -n leaves a symlink, whatever it leads to by now. */
	const bool led = f->leads == LEADS && !t->options->copy.no_clobber;
	rivals_lock(t);
	const bool made = rivals_made(t, e, &f->old) || (led && rivals_made(t, e, &f->target));
	rivals_unlock(t);
	return made;
}

void facts_find(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct tree *t = w->tree;
	const struct fcopy_tree_options *o = t->options;
	struct facts *f = &w->work.facts;
	*f = (struct facts){.src = *st, .follow = e->follow};
	w->work.decision = (struct decision){.act = ACT_MAKE};
	if (o->symbolic_link && !o->link && !S_ISDIR(st->st_mode))
		facts_find_path(e, f);
	if (o->link)
		f->src_output = same_output(&o->copy, st);
	if (e->dir->state != DIRECTORY_OLD || e->dir->dst < 0 || t->share.by)
		return;
	facts_find_old(w, e, f);
	if (!f->exists)
		return;
	facts_find_place(w, f);
	if (S_ISLNK(f->old.st_mode) && S_ISREG(st->st_mode))
		facts_find_target(w, e, f);
	facts_find_same(w, e, f);
	f->old_output = same_output(&o->copy, &f->old);
	f->target_output = f->leads == LEADS ? same_output(&o->copy, &f->target) : NULL;
	const struct stat *old = decide_changed(&t->root.ground, f, o);
	f->is_operand = old && rivals_are_source(t, old);
	f->made = facts_are_made(t, e, f);
	old = o->update == FCOPY_UPDATE_OLDER ? decide_compared(&t->root.ground, f, o) : NULL;
	f->keeps = old && update_keeps(t, e, st, old);
}

static void facts_refuse(struct worker *w, const struct entry *e)
{
	const struct decision *d = &w->work.decision;
	const char *path = d->source ? entry_src : entry_dst;
	struct fcopy_error error;
	if (d->place) {
		report_failure(w, e, &w->work.unusable);
	} else if (d->call) {
		report_call(w, e, d->call, path, d->err);
	} else if (d->pair || d->unsuitable) {
		error_refuse_operand(&error, path, d->err, d->reason, FCOPY_ADVICE_NONE);
		error.path2 = d->pair ? entry_dst : NULL;
		report_failure(w, e, &error);
	} else {
		report_refusal(w, e, path, d->err, d->reason);
	}
}

bool facts_decide(struct worker *w, const struct entry *e, int fd)
{
	struct tree *t = w->tree;
	for (int dst = -1, r;;) {
		w->work.decision = decide(&t->root.ground, &w->work.facts, t->options);
		switch (w->work.decision.act) {
		case ACT_MAKE: return false;
		case ACT_COMPARE:
			r = update_is_equal(w, e, fd, &dst);
			if (r == 0 && tree_stopped(t)) /* it was cut short */
				w->work.outcome.stage = OUTCOME_NONE;
			if (r < 0 || w->work.outcome.stage == OUTCOME_NONE)
				return true;
			w->work.facts.content = r > 0 ? CONTENT_EQUAL : CONTENT_DIFFERS;
			break;
		case ACT_EARLIER:
			w->work.facts.earlier = link_dest_is_made(w, e, fd) ? EARLIER_SAME
									    : EARLIER_OTHER;
			break;
		case ACT_LEAVE:
			if (update_leave(w, e, fd, dst) != 0)
				return true;
			w->work.facts.content = CONTENT_DIFFERS;
			break;
		case ACT_SAME: w->work.outcome.action = FCOPY_ACTION_UNCHANGED; return true;
		case ACT_SKIP: w->work.outcome.action = FCOPY_ACTION_SKIPPED; return true;
		case ACT_RIVAL: rivals_report(w, e); return true;
		case ACT_REFUSE: facts_refuse(w, e); return true;
		}
	}
}

int facts_place(struct worker *w, const struct entry *e, struct fcopy_error *error)
{
	const bool all = decide_replaces(w->tree->options) || w->work.decision.clears;
	if (w->work.place.dir >= 0)
		return 0;
	int r = facts_look(w, e, error);
	if (r == 0)
		r = place_accept(&w->work.place, !all, entry_dst, error);
	if (r < 0)
		place_close(&w->work.place);
	return r;
}

bool facts_allow(const struct decision *d, const struct entry *e, const struct stat *now)
{
	if (!d->exact)
		return true;
	if (!now || !d->seen)
		return !now; /* what is gone is not lost by this copy */
	return exchange_is_same(e->dir->dst, now, d->seen);
}

bool facts_still_allow(const struct decision *d, const struct entry *e)
{
	struct stat now;
	if (!d->exact)
		return true;
	return facts_allow(
	    d, e, fstatat(e->dir->dst, e->as, &now, AT_SYMLINK_NOFOLLOW) == 0 ? &now : NULL);
}

bool facts_again(struct worker *w, const struct entry *e, int fd, const struct stat *st,
		 const struct stat *claimed, int tries)
{
	if (tries >= TRIES) {
		report_refusal(w, e, entry_dst, EEXIST,
			       "is replaced by other processes again and again");
		return false;
	}
	displace_end(w, e, w->work.displaced, false);
	place_close(&w->work.place);
	facts_find(w, e, st);
	struct facts *f = &w->work.facts;
	if (f->exists && claimed &&
	    (same_inode(claimed, &f->old) ||
	     (f->leads == LEADS && same_inode(claimed, &f->target))))
		f->made = false;
	f->content = CONTENT_DIFFERS; /* it was compared */
	return !facts_decide(w, e, fd) && displace_begin(w, e, w->work.displaced);
}
