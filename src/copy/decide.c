/* SPDX-License-Identifier: MIT
 * The order of the questions is that of their authority: what can never be made; what --update and
 * a mirror leave alone; what would destroy SRC, or what this run writes; what --no-clobber keeps;
 * at last what is asked, and what is backed up.
 */
#include "decide.h"
#include "endpoints/endpoint.h"
#include "io/io.h"

#include <errno.h>

static bool is_link(const struct fcopy_tree_options *o)
{
	return o->link || o->symbolic_link;
}

bool decide_follows(const struct ground *g, mode_t src, const struct fcopy_tree_options *o)
{
	return S_ISREG(src) && !decide_removes(g, o) && !decide_replaces(o) && !is_link(o);
}

/* May the copy replace the inode that is its source? It may if the source has another name, or if
 * the backup gives it one, as cp -bf FILE FILE does. A symlink in the source would lead to the
 * copy. */
static bool decide_replaces_source(const struct facts *f, const struct fcopy_tree_options *o)
{
	return decide_replaces(o) && !is_link(o) && !f->src_is_symlink &&
	       ((o->backup && o->copy.force) || !f->same_name);
}

static bool decide_as(struct decision *d, enum act act)
{
	d->act = act;
	return true;
}

static bool decide_refuse(struct decision *d, int err, const char *reason)
{
	d->err = err;
	d->reason = reason;
	return decide_as(d, ACT_REFUSE);
}

static bool decide_refuse_call(struct decision *d, const char *call, int err)
{
	d->call = call;
	return decide_refuse(d, err, NULL);
}

static bool decide_refuse_unsuitable(struct decision *d, int err, const char *reason)
{
	d->unsuitable = true;
	return decide_refuse(d, err, reason);
}

static bool decide_refuse_same(struct decision *d)
{
	d->source = d->pair = true;
	return decide_refuse_unsuitable(d, EINVAL, "are the same file");
}

/* What has the name, or its target if that is followed; NULL: it leads nowhere. */
static const struct stat *decide_found(const struct facts *f, bool follow)
{
	if (!follow || !S_ISLNK(f->old.st_mode))
		return &f->old;
	return f->leads == LEADS ? &f->target : NULL;
}

const struct stat *decide_changed(const struct ground *g, const struct facts *f,
				  const struct fcopy_tree_options *o)
{
	return decide_found(f, decide_follows(g, f->src.st_mode, o));
}

const struct stat *decide_compared(const struct ground *g, const struct facts *f,
				   const struct fcopy_tree_options *o)
{
	const bool whole = o->update != FCOPY_UPDATE_CHANGED && (decide_replaces(o) || is_link(o));
	return decide_found(f, S_ISREG(f->src.st_mode) && !decide_removes(g, o) && !whole);
}

/* DST could not be looked at. What is absent, or leads nowhere, is left to the copy; so is what an
 * option need not see. Otherwise it might be lost. */
static bool decide_unseen(const struct fcopy_tree_options *o, int err, struct decision *d)
{
	const bool absent = err == 0 || err == ENOENT;
	const bool reported = err == ELOOP || err == ENOTDIR || err == EACCES;
	if (absent)
		return false;
	if ((o->confirm || o->backup) && !o->copy.no_clobber)
		return decide_refuse_call(d, "stat", err);
	return (o->update || o->delete_extra) && !reported && decide_refuse_call(d, "open", err);
}

/* Links that cannot be made, whatever DST has. */
static bool decide_source(const struct facts *f, const struct fcopy_tree_options *o,
			  struct decision *d)
{
	if (o->link && f->src_output) {
		d->source = true;
		return decide_refuse(d, EINVAL, f->src_output->taken);
	}
	if (o->link)
		return false;
	if (f->unlinked)
		return decide_refuse_unsuitable(d, f->unlinked_err, f->unlinked);
	if (f->unlinked_err)
		return decide_refuse_call(d, "symlink", f->unlinked_err);
	return (f->same_name || (f->exists && same_inode(&f->src, &f->old))) &&
	       decide_refuse_unsuitable(d, EINVAL, "is SRC itself");
}

/* What this run has made is the copy of another entry, not an older file. */
static bool decide_skip(const struct facts *f, const struct fcopy_tree_options *o,
			struct decision *d)
{
	if (f->made)
		return decide_as(d, ACT_RIVAL);
	return o->update == FCOPY_UPDATE_NONE_FAIL
		   ? decide_refuse(d, EEXIST, "exists, and is not replaced")
		   : decide_as(d, ACT_SKIP);
}

static bool is_skipped(const struct facts *f, const struct fcopy_tree_options *o)
{
	return o->update == FCOPY_UPDATE_NONE || o->update == FCOPY_UPDATE_NONE_FAIL ||
	       (o->update == FCOPY_UPDATE_OLDER && f->keeps);
}

/* Can the content be equal? SRC itself is no copy of it: a copy that is resumed refuses it. */
static bool may_be_equal(const struct facts *f, const struct stat *old,
			 const struct fcopy_tree_options *o)
{
	if ((f->src.st_mode ^ old->st_mode) & S_IFMT || f->content == CONTENT_DIFFERS)
		return false;
	if (S_ISREG(old->st_mode))
		return f->src.st_size == old->st_size &&
		       !(o->copy.resume && same_inode(&f->src, old));
	return S_ISLNK(old->st_mode) || f->src.st_rdev == old->st_rdev;
}

/* --update, and the types of a mirror. */
static bool decide_update(const struct ground *g, const struct facts *f,
			  const struct fcopy_tree_options *o, struct decision *d)
{
	const bool removes = decide_removes(g, o), changed = o->update == FCOPY_UPDATE_CHANGED;
	const struct stat *old = decide_compared(g, f, o);
	if (!o->update && !removes)
		return false;
	if (!old)
		return decide_unseen(o, f->target_err, d);
	if ((S_ISDIR(old->st_mode) && !removes && changed) ||
	    (old == &f->old ? f->old_output : f->target_output))
		return false; /* the copy refuses it */
	if (removes && (f->src.st_mode ^ old->st_mode) & S_IFMT) {
		d->clears = !is_skipped(f, o);
		return !d->clears && decide_skip(f, o, d);
	}
	if (changed && may_be_equal(f, old, o))
		return decide_as(d, f->content == CONTENT_EQUAL ? ACT_LEAVE : ACT_COMPARE);
	return is_skipped(f, o) && decide_skip(f, o, d);
}

static bool decide_output(const struct ground *g, const struct facts *f,
			  const struct fcopy_tree_options *o, struct decision *d)
{
	const struct stat *old = decide_changed(g, f, o);
	const struct fcopy_output *output = old == &f->target ? f->target_output : f->old_output;
	return output && decide_refuse(d, EEXIST, output->taken);
}

/* As with cp(1): if the options say so; if the source is no regular file, and a symlink would not
 * be followed; or if DST has other hard links and ground_links(). */
static bool is_replaced_by_link(const struct ground *g, const struct facts *f,
				const struct fcopy_tree_options *o)
{
	return o->copy.force || decide_replaces(o) ||
	       (!S_ISDIR(f->old.st_mode) && ((!f->follow && !S_ISREG(f->src.st_mode)) ||
					     (ground_links(g, o) && f->old.st_nlink > 1)));
}

static bool decide_link(const struct ground *g, const struct facts *f,
			const struct fcopy_tree_options *o, struct decision *d)
{
	if (o->link && same_inode(&f->src, &f->old))
		return decide_as(d, ACT_SAME);
	if (o->link && f->leads_here)
		return decide_refuse_unsuitable(d, EINVAL, "is the target of SRC");
	if (o->copy.no_clobber)
		return decide_as(d, ACT_SKIP);
	if (!is_replaced_by_link(g, f, o))
		return decide_refuse_call(d, o->link ? "linkat" : "symlink", EEXIST);
	d->replaces = true;
	return S_ISDIR(f->old.st_mode) && decide_refuse_call(d, "rename", EISDIR);
}

static bool decide_attributes(const struct facts *f, const struct fcopy_tree_options *o,
			      struct decision *d)
{
	if (S_ISLNK(f->old.st_mode))
		return decide_refuse_unsuitable(
		    d, ELOOP, "is a symlink, which --attributes-only does not follow");
	if (!S_ISREG(f->old.st_mode))
		return decide_refuse_unsuitable(d, S_ISDIR(f->old.st_mode) ? EISDIR : EINVAL,
						"is not a regular file");
	if (same_inode(&f->src, &f->old))
		return decide_refuse_unsuitable(d, EINVAL, "is SRC itself");
	return o->copy.no_clobber && decide_as(d, ACT_SKIP);
}

/* A symlink, FIFO, socket or device. A symlink of which DST is another name is complete, as with
 * cp -d. One that replaced what it leads to would lead to itself. */
static bool decide_special(const struct facts *f, const struct fcopy_tree_options *o,
			   struct decision *d)
{
	const bool same = same_inode(&f->src, &f->old);
	if (o->copy.no_clobber)
		return decide_as(d, f->made ? ACT_RIVAL : ACT_SKIP);
	if (S_ISLNK(f->src.st_mode) && f->src.st_nlink > 1 && same && !f->same_name)
		return decide_as(d, ACT_SAME);
	if (same || f->leads_here)
		return decide_refuse_same(d);
	d->replaces = true;
	if (!S_ISDIR(f->old.st_mode))
		return false;
	return f->made ? decide_as(d, ACT_RIVAL) : decide_refuse_call(d, "rename", EISDIR);
}

static bool decide_file(const struct ground *g, const struct facts *f,
			const struct fcopy_tree_options *o, struct decision *d)
{
	const struct stat *old = decide_changed(g, f, o);
	if (o->copy.no_clobber)
		return decide_as(d, f->made ? ACT_RIVAL : ACT_SKIP);
	if (old && same_inode(&f->src, old) && !(old == &f->old && decide_replaces_source(f, o)))
		return decide_refuse_same(d);
	d->place = f->unusable;
	return d->place && decide_as(d, f->made ? ACT_RIVAL : ACT_REFUSE);
}

/* Would it change what another SRC names? A file that is replaced keeps its other names; a backup,
 * or a link that this run made, is none that SRC had. */
static bool decide_operand(const struct ground *g, const struct facts *f,
			   const struct fcopy_tree_options *o, struct decision *d)
{
	const struct stat *old = decide_changed(g, f, o);
	const bool kept = old && old->st_nlink > 1 && !o->backup && !o->link &&
			  !o->attributes_only && !in_place_possible(&o->copy);
	if (!f->is_operand || !old || kept || same_inode(&f->src, old))
		return false;
	d->clears = false;
	return decide_refuse(d, EINVAL, DECIDE_SOURCE);
}

static bool decide_kind(const struct ground *g, const struct facts *f,
			const struct fcopy_tree_options *o, struct decision *d)
{
	if (is_link(o))
		return decide_link(g, f, o, d);
	if (!S_ISREG(f->src.st_mode))
		return decide_special(f, o, d);
	return o->attributes_only ? decide_attributes(f, o, d) : decide_file(g, f, o, d);
}

/* It is what --link-dest would make. */
static bool decide_earlier(const struct ground *g, const struct facts *f,
			   const struct fcopy_tree_options *o, struct decision *d)
{
	const enum fcopy_when reflink = o->copy.reflink;
	if (!o->link_dest || g->exclusive || reflink == FCOPY_WHEN_AUTO ||
	    reflink == FCOPY_WHEN_ALWAYS || !S_ISREG(f->src.st_mode) || !S_ISREG(f->old.st_mode) ||
	    f->old.st_nlink < 2)
		return false;
	if (f->earlier == EARLIER_UNKNOWN)
		return decide_as(d, ACT_EARLIER);
	return f->earlier == EARLIER_SAME && decide_as(d, ACT_SAME);
}

/* What an option has looked at is replaced, and nothing else. */
static void decide_exact(const struct ground *g, const struct facts *f,
			 const struct fcopy_tree_options *o, struct decision *d)
{
	const bool asked = ((o->confirm || o->backup) && !o->copy.no_clobber) ||
			   (o->update && o->update != FCOPY_UPDATE_CHANGED);
	d->exact = asked && !d->clears;
	if (!d->exact || !f->exists)
		return;
	d->seen = decide_changed(g, f, o);
	if (!d->seen && (o->confirm || o->backup))
		d->seen = &f->old;
}

struct decision decide(const struct ground *g, const struct facts *f,
		       const struct fcopy_tree_options *o)
{
	struct decision d = {.act = ACT_MAKE};
	const bool directory = S_ISDIR(f->src.st_mode);
	if ((is_link(o) && !directory && decide_source(f, o, &d)) || !f->looked)
		return d;
	if (!f->exists) {
		if (!decide_unseen(o, f->err, &d))
			decide_exact(g, f, o, &d);
		return d;
	}
	if (decide_update(g, f, o, &d) || decide_output(g, f, o, &d))
		return d;
	if (!d.clears && (directory || decide_kind(g, f, o, &d)))
		return d;
	if (decide_operand(g, f, o, &d) || decide_earlier(g, f, o, &d))
		return d;
	d.replaces |= d.clears;
	d.asks = o->confirm && (d.clears || !S_ISDIR(f->old.st_mode));
	d.backup = o->backup && !d.clears && !S_ISDIR(f->old.st_mode) && !o->copy.no_clobber;
	decide_exact(g, f, o, &d);
	return d;
}

enum fate decide_fate(const struct end_facts *f)
{
	const bool whole = !f->failed || f->goes_on;
	if (f->result == 0 && (f->committed || (!f->stopped && (whole || !f->fresh))))
		return FATE_COMMIT;
	if (f->committed || !f->fresh)
		return FATE_STAY;
	/* A doubted part must not be continued; what was built elsewhere cannot become one. */
	if (f->doubted || !f->part)
		return FATE_REMOVE;
	/* One beside a DST that exists could not be resumed. */
	const bool unwanted = f->stopped || f->result == -EEXIST;
	return unwanted && !f->published ? FATE_REMOVE : FATE_KEEP;
}

bool decide_link_replaces(const struct ground *g, const struct facts *f,
			  const struct fcopy_tree_options *o)
{
	if (o->copy.no_clobber || g->exclusive)
		return false;
	if (f->exists && (f->leads_here || same_inode(&f->src, &f->old)))
		return false;
	return S_ISREG(f->src.st_mode) || !f->exists || !S_ISDIR(f->old.st_mode);
}

bool decide_link_meets_symlink(const struct facts *f, const struct decision *d)
{
	return f->exists && S_ISLNK(f->old.st_mode) && !d->clears;
}
