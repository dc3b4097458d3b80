/* SPDX-License-Identifier: MIT
 * The order of the questions is that of their authority: what can never be made; what --update and
 * a mirror leave alone; what would destroy SRC, or what this run writes; what --no-clobber keeps;
 * at last what is asked, and what is backed up.
 */
#include "decide.h"
#include "endpoints/endpoint.h"
#include "io/io.h"

#include <errno.h>

/* What is asked, what follows from it at once, and the answer so far. */
struct question {
	const struct ground *g;
	const struct facts *f;
	const struct fcopy_tree_options *o;
	bool links;                 /* -l, -s: no bytes are copied */
	bool replaces;              /* decide_replaces() */
	bool removes;               /* decide_removes() */
	const struct stat *changed; /* decide_changed(), if DST has the name */
	struct decision d;
};

static bool decide_links(const struct fcopy_tree_options *o)
{
	return o->link || o->symbolic_link;
}

bool decide_follows(const struct ground *g, mode_t src, const struct fcopy_tree_options *o)
{
	return S_ISREG(src) && !decide_removes(g, o) && !decide_replaces(o) && !decide_links(o);
}

/* May the copy replace the inode that is its source? It may if the source has another name, or if
 * the backup gives it one, as cp -bf FILE FILE does. A symlink in the source would lead to the
 * copy. */
static bool decide_replaces_source(const struct question *q)
{
	return q->replaces && !q->links && !q->f->src_is_symlink &&
	       ((q->o->backup && q->o->copy.force) || !q->f->same_name);
}

static bool decide_as(struct question *q, enum act act)
{
	q->d.act = act;
	return true;
}

static bool decide_refuse(struct question *q, int err, const char *reason)
{
	q->d.err = err;
	q->d.reason = reason;
	return decide_as(q, ACT_REFUSE);
}

static bool decide_refuse_call(struct question *q, const char *call, int err)
{
	q->d.call = call;
	return decide_refuse(q, err, NULL);
}

static bool decide_refuse_unsuitable(struct question *q, int err, const char *reason)
{
	q->d.unsuitable = true;
	return decide_refuse(q, err, reason);
}

static bool decide_refuse_same(struct question *q)
{
	q->d.source = q->d.pair = true;
	return decide_refuse_unsuitable(q, EINVAL, "are the same file");
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
	const bool whole = o->update != FCOPY_UPDATE_CHANGED &&
			   (decide_replaces(o) || decide_links(o));
	return decide_found(f, S_ISREG(f->src.st_mode) && !decide_removes(g, o) && !whole);
}

/* DST could not be looked at. What is absent, or leads nowhere, is left to the copy; so is what an
 * option need not see. Otherwise it might be lost. */
static bool decide_unseen(struct question *q, int err)
{
	const struct fcopy_tree_options *o = q->o;
	const bool absent = err == 0 || err == ENOENT;
	const bool reported = err == ELOOP || err == ENOTDIR || err == EACCES;
	if (absent)
		return false;
	if ((o->confirm || o->backup) && !o->copy.no_clobber)
		return decide_refuse_call(q, "stat", err);
	return (o->update || o->delete_extra) && !reported && decide_refuse_call(q, "open", err);
}

/* Links that cannot be made, whatever DST has. */
static bool decide_source(struct question *q)
{
	const struct facts *f = q->f;
	if (q->o->link && f->src_output) {
		q->d.source = true;
		return decide_refuse(q, EINVAL, f->src_output->taken);
	}
	if (q->o->link)
		return false;
	if (f->unlinked)
		return decide_refuse_unsuitable(q, f->unlinked_err, f->unlinked);
	if (f->unlinked_err)
		return decide_refuse_call(q, "symlink", f->unlinked_err);
	return (f->same_name || (f->exists && same_inode(&f->src, &f->old))) &&
	       decide_refuse_unsuitable(q, EINVAL, "is SRC itself");
}

/* What this run has made is the copy of another entry, not an older file. */
static bool decide_skip(struct question *q)
{
	if (q->f->made)
		return decide_as(q, ACT_RIVAL);
	return q->o->update == FCOPY_UPDATE_NONE_FAIL ? decide_refuse(q, EEXIST, DECIDE_STAYS)
						      : decide_as(q, ACT_SKIP);
}

static bool is_kept(const struct fcopy_tree_options *o)
{
	return o->update == FCOPY_UPDATE_NONE || o->update == FCOPY_UPDATE_NONE_FAIL;
}

static bool is_skipped(const struct facts *f, const struct fcopy_tree_options *o)
{
	return is_kept(o) || (o->update == FCOPY_UPDATE_OLDER && f->keeps);
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
static bool decide_update(struct question *q)
{
	const struct facts *f = q->f;
	const bool changed = q->o->update == FCOPY_UPDATE_CHANGED;
	const struct stat *old = decide_compared(q->g, f, q->o);
	/* What exists stays, as with -n, also a symlink that leads nowhere. */
	if (!old && is_kept(q->o) && !f->old_output)
		return decide_skip(q);
	if (!old)
		return decide_unseen(q, f->target_err);
	if ((S_ISDIR(old->st_mode) && !q->removes && changed) ||
	    (old == &f->old ? f->old_output : f->target_output))
		return false; /* the copy refuses it */
	if (q->removes && (f->src.st_mode ^ old->st_mode) & S_IFMT) {
		q->d.clears = !is_skipped(f, q->o);
		return !q->d.clears && decide_skip(q);
	}
	if (changed && may_be_equal(f, old, q->o))
		return decide_as(q, f->content == CONTENT_EQUAL ? ACT_LEAVE : ACT_COMPARE);
	return is_skipped(f, q->o) && decide_skip(q);
}

static bool decide_output(struct question *q)
{
	const struct fcopy_output *output = q->changed == &q->f->target ? q->f->target_output
									: q->f->old_output;
	return output && decide_refuse(q, EEXIST, output->taken);
}

/* May a link, or what --attributes-only makes, replace what has the name? */
static bool decide_may_replace(const struct question *q)
{
	return q->o->copy.force || q->replaces;
}

static bool decide_link(struct question *q)
{
	const struct facts *f = q->f;
	if (q->o->link && same_inode(&f->src, &f->old))
		return decide_as(q, ACT_SAME);
	if (q->o->link && f->leads_here)
		return decide_refuse_unsuitable(q, EINVAL, "is the target of SRC");
	if (q->o->copy.no_clobber)
		return decide_as(q, ACT_SKIP);
	if (!decide_may_replace(q))
		return decide_refuse(q, EEXIST, DECIDE_NEEDS_FORCE);
	q->d.replaces = true;
	return S_ISDIR(f->old.st_mode) && decide_refuse_call(q, "rename", EISDIR);
}

static bool decide_attributes(struct question *q)
{
	const struct facts *f = q->f;
	if (S_ISLNK(f->old.st_mode))
		return decide_refuse_unsuitable(
		    q, ELOOP, "is a symlink, which --attributes-only does not follow");
	if (!S_ISREG(f->old.st_mode))
		return decide_refuse_unsuitable(q, S_ISDIR(f->old.st_mode) ? EISDIR : EINVAL,
						"is not a regular file");
	if (same_inode(&f->src, &f->old))
		return decide_refuse_unsuitable(q, EINVAL, "is SRC itself");
	return q->o->copy.no_clobber && decide_as(q, ACT_SKIP);
}

/* A symlink, FIFO, socket or device. A symlink of which DST is another name is complete, as with
 * cp -d. One that replaced what it leads to would lead to itself. With --attributes-only, an entry
 * of the same type, which has no bytes either, is replaced. */
static bool decide_special(struct question *q)
{
	const struct facts *f = q->f;
	const bool same = same_inode(&f->src, &f->old);
	if (q->o->copy.no_clobber)
		return decide_as(q, f->made ? ACT_RIVAL : ACT_SKIP);
	if (S_ISLNK(f->src.st_mode) && f->src.st_nlink > 1 && same && !f->same_name)
		return decide_as(q, ACT_SAME);
	if (same || f->leads_here)
		return decide_refuse_same(q);
	q->d.replaces = true;
	if (S_ISDIR(f->old.st_mode))
		return f->made ? decide_as(q, ACT_RIVAL) : decide_refuse_call(q, "rename", EISDIR);
	const bool other = (f->src.st_mode ^ f->old.st_mode) & S_IFMT;
	return q->o->attributes_only && other && !decide_may_replace(q) &&
	       decide_refuse(q, EEXIST, DECIDE_NEEDS_FORCE);
}

static bool decide_file(struct question *q)
{
	const struct facts *f = q->f;
	const struct stat *old = q->changed;
	if (q->o->copy.no_clobber)
		return decide_as(q, f->made ? ACT_RIVAL : ACT_SKIP);
	if (old && same_inode(&f->src, old) && !(old == &f->old && decide_replaces_source(q)))
		return decide_refuse_same(q);
	q->d.place = f->unusable;
	return q->d.place && decide_as(q, f->made ? ACT_RIVAL : ACT_REFUSE);
}

/* Would it change what another SRC names? A file that is replaced keeps its other names; a backup,
 * or a link that this run made, is none that SRC had. */
static bool decide_operand(struct question *q)
{
	const struct stat *old = q->changed;
	const bool kept = old->st_nlink > 1 && !q->o->backup && !q->o->link &&
			  !q->o->attributes_only && !in_place_possible(&q->o->copy);
	if (kept || same_inode(&q->f->src, old))
		return false;
	q->d.clears = false;
	return decide_refuse(q, EINVAL, DECIDE_SOURCE);
}

static bool decide_kind(struct question *q)
{
	if (q->links)
		return decide_link(q);
	if (!S_ISREG(q->f->src.st_mode))
		return decide_special(q);
	return q->o->attributes_only ? decide_attributes(q) : decide_file(q);
}

/* Is it what --link-dest would make? */
static bool decide_earlier(struct question *q)
{
	const struct facts *f = q->f;
	const enum fcopy_when reflink = q->o->copy.reflink;
	if (q->g->exclusive || reflink == FCOPY_WHEN_AUTO || reflink == FCOPY_WHEN_ALWAYS ||
	    !S_ISREG(f->src.st_mode) || !S_ISREG(f->old.st_mode) || f->old.st_nlink < 2)
		return false;
	if (f->earlier == EARLIER_UNKNOWN)
		return decide_as(q, ACT_EARLIER);
	return f->earlier == EARLIER_SAME && decide_as(q, ACT_SAME);
}

/* What an option has looked at is replaced, and nothing else. */
static void decide_exact(struct question *q)
{
	const struct fcopy_tree_options *o = q->o;
	const bool asked = ((o->confirm || o->backup) && !o->copy.no_clobber) ||
			   (o->update && o->update != FCOPY_UPDATE_CHANGED);
	q->d.exact = asked && !q->d.clears;
	if (!q->d.exact || !q->f->exists)
		return;
	q->d.seen = q->changed;
	if (!q->d.seen && (o->confirm || o->backup))
		q->d.seen = &q->f->old;
}

/* DST has the name. Returns whether nothing is made. */
static bool decide_existing(struct question *q)
{
	const struct facts *f = q->f;
	const struct fcopy_tree_options *o = q->o;
	q->replaces = decide_replaces(o);
	q->removes = decide_removes(q->g, o);
	if ((o->update || q->removes) && decide_update(q))
		return true;
	q->changed = decide_changed(q->g, f, o);
	if (decide_output(q))
		return true;
	if (!q->d.clears && (S_ISDIR(f->src.st_mode) || decide_kind(q)))
		return true;
	if ((f->is_operand && q->changed && decide_operand(q)) ||
	    (o->link_dest && decide_earlier(q)))
		return true;
	q->d.replaces |= q->d.clears;
	q->d.asks = o->confirm && (q->d.clears || !S_ISDIR(f->old.st_mode));
	q->d.backup = o->backup && !q->d.clears && !S_ISDIR(f->old.st_mode) && !o->copy.no_clobber;
	return false;
}

struct decision decide(const struct ground *g, const struct facts *f,
		       const struct fcopy_tree_options *o)
{
	struct question q = {.g = g, .f = f, .o = o, .links = decide_links(o)};
	q.d.act = ACT_MAKE;
	if ((q.links && !S_ISDIR(f->src.st_mode) && decide_source(&q)) || !f->looked)
		return q.d;
	if (f->exists ? !decide_existing(&q) : !decide_unseen(&q, f->err))
		decide_exact(&q);
	return q.d;
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

bool decide_keeps_bytes(const struct facts *f, const struct fcopy_tree_options *o)
{
	return o->attributes_only && f->exists && S_ISREG(f->old.st_mode);
}

bool decide_link_replaces(const struct ground *g, const struct facts *f,
			  const struct fcopy_tree_options *o)
{
	if (o->copy.no_clobber || g->exclusive)
		return false;
	if (f->exists && (f->leads_here || same_inode(&f->src, &f->old)))
		return false;
	if (decide_keeps_bytes(f, o))
		return false;
	return S_ISREG(f->src.st_mode) || !f->exists || !S_ISDIR(f->old.st_mode);
}

bool decide_link_meets_symlink(const struct facts *f, const struct decision *d)
{
	return f->exists && S_ISLNK(f->old.st_mode) && !d->clears;
}
