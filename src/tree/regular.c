/* SPDX-License-Identifier: MIT
 * A regular file of a tree: opens its destination, which must be what an option has seen, copies
 * it, and decides again if DST has become something else.
 */
#include "directory.h"
#include "displace.h"
#include "entry.h"
#include "io/system.h"
#include "pool.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LARGE_SIZE ((off_t)16 << 20) /* such a file is shown as progress */

/* What an interrupted attempt of a share left is replaced if it can be. Otherwise it is removed:
 * another type of file, above all a symlink, which must not be followed; and a file with another
 * mode, which a replacement would keep. */
static bool regular_removes_old(const struct entry *e, const struct stat *st)
{
	struct stat old;
	return fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (!S_ISREG(old.st_mode) || (old.st_mode ^ st->st_mode) & 0777) &&
	       remove_entry(e->dir->dst, e->as) == 0;
}

static unsigned regular_flags(const struct worker *w, const struct entry *e)
{
	return (ground_links(&w->tree->root.ground, w->tree->options) ? DESTINATION_REPLACES_LINKS
								      : 0) |
	       (decide_replaces(w->tree->options) || w->work.decision.clears
		    ? DESTINATION_REPLACES_ALL
		    : 0) |
	       (w->work.decision.exact ? DESTINATION_EXACT : 0) |
	       (tree_removes(w->tree) ? DESTINATION_REPLACES_READ_ONLY : 0) |
	       (admit_is_due(e->dir) ? DESTINATION_ADMITTED : 0) |
	       (__atomic_load_n(&e->dir->known.fits, __ATOMIC_RELAXED) == ANSWER_YES
		    ? DESTINATION_DIRECTORY_FITS
		    : 0) |
	       (aside_is_shared(w->tree, e->dir) ? 0 : DESTINATION_IS_PRIVATE);
}

static int regular_open_destination(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct copy *c = &w->file.copy;
	struct fcopy_error *error = &w->file.report.error;
	if (w->tree->root.ground.fresh) {
		int r = destination_create(&c->dst, e->dir->dst, e->as, st->st_mode & 0777,
					   entry_dst, error);
		if (r != -EEXIST || w->tree->root.ground.exclusive)
			return r;
		*error = (struct fcopy_error){0};
		if (regular_removes_old(e, st))
			return destination_create(&c->dst, e->dir->dst, e->as, st->st_mode & 0777,
						  entry_dst, error);
	}
	int r = facts_place(w, e, error);
	if (r == 0)
		r = destination_open_place(&c->dst, &w->work.place, entry_dst, &c->src, &w->options,
					   regular_flags(w, e), w->tree->known.storage, error);
	if (r == 0 && destination_directory_fits(&c->dst))
		__atomic_store_n(&e->dir->known.fits, ANSWER_YES, __ATOMIC_RELAXED);
	if (w->work.decision.exact && r == 0 &&
	    !facts_allow(&w->work.decision, e, destination_found(&c->dst))) {
		c->dst.ops->abort(&c->dst);
		return RESULT_TAKEN;
	}
	return rivals_possible(w->tree) ? rivals_claim_file(w, e, r) : r;
}

/* The unfinished copy of the file was kept: the report names the first one. It is next to what a
 * symlink leads to. */
static void regular_note_part(const struct worker *w, const struct entry *e)
{
	char *part = w->tree->report->part, link[2], path[PATH_MAX], real[PATH_MAX];
	pthread_mutex_lock(&w->tree->lock);
	if (part[0] == '\0') {
		entry_path(e, false, path, sizeof(path));
		bool follow = readlink(path, link, sizeof(link)) > 0 && realpath(path, real);
		if (!part_make_path(part, follow ? real : path))
			part[0] = '\0';
	}
	pthread_mutex_unlock(&w->tree->lock);
}

/* Asks once for each file system. */
static bool regular_is_local(struct device_answer *a, int fd, const struct stat *st)
{
	if (a->is == ANSWER_UNKNOWN || a->dev != st->st_dev)
		*a = (struct device_answer){st->st_dev, answer_of(system_has(fd, SYSTEM_LOCAL))};
	return a->is == ANSWER_YES;
}

/* Has O_EXCL, or the type of what is there, met the copy of another entry? special_place() may have
 * made that, and not have claimed it yet. */
static bool regular_met_rival(struct worker *w, const struct entry *e)
{
	const struct fcopy_error *error = &w->file.report.error;
	const struct facts *f = &w->work.facts;
	struct stat now;
	/* What the entry was to replace is still there: no entry has replaced it. */
	if (f->exists && fstatat(e->dir->dst, e->as, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    same_inode(&now, &f->old))
		return false;
	if (error->err == EISDIR) /* a rename met a directory */
		return rivals_share(w->tree, e);
	if (error->err != EEXIST)
		return false;
	if (w->tree->root.ground.exclusive)
		return w->file.copy.dst.met;
	rivals_lock(w->tree);
	bool have = rivals_have(w->tree, e);
	rivals_unlock(w->tree);
	return have;
}

/* Of a new tree: O_EXCL met a file. In a private directory only this process makes files: the name
 * was listed twice, perhaps because it was replaced while the directory was read. */
static void regular_report_rival(struct worker *w, const struct entry *e)
{
	if (!w->tree->root.ground.exclusive)
		rivals_report(w, e);
	else if (rivals_report_new(w, e) == 0 && w->tree->root.ground.named)
		rivals_report_other(w, e);
	else if (w->work.outcome.stage == OUTCOME_FINAL)
		w->work.outcome.stage = OUTCOME_NONE;
}

/* Opens the destination, which must be what an option has seen. Returns 0; RESULT_RIVAL; -errno
 * with the failure recorded; or -EEXIST if the outcome is known: *known is true. */
static int regular_open_seen(struct worker *w, const struct entry *e, const struct stat *st,
			     bool *known)
{
	struct copy *c = &w->file.copy;
	struct fcopy_error *error = &w->file.report.error;
	for (int tries = 0;; tries++) {
		int r = regular_open_destination(w, e, st);
		/* --inplace met a file that was not there. */
		const bool met = r == -EEXIST && w->work.decision.exact && !w->work.decision.seen &&
				 c->dst.met;
		if (r != RESULT_TAKEN && !met)
			return r;
		*error = (struct fcopy_error){0};
		*known = !facts_again(w, e, c->src.fd, st, NULL, tries);
		if (*known)
			return -EEXIST;
	}
}

/* The copy is complete, and DST has become something else: decides again. Returns what copy_run()
 * would; or -EEXIST if the outcome is known: *known is true. */
static int regular_commit_again(struct worker *w, const struct entry *e, const struct stat *st,
				bool *known)
{
	struct copy *c = &w->file.copy;
	const struct stat *old = c->dst.old_stat;
	const struct stat claimed = old ? *old : (struct stat){0};
	int r = RESULT_TAKEN;
	for (int tries = 0; r == RESULT_TAKEN; tries++) {
		*known = !facts_again(w, e, c->src.fd, st, old ? &claimed : NULL, tries);
		r = *known
			? -EEXIST
			: destination_expect(&c->dst, w->work.decision.seen, &w->file.report.error);
		r = copy_end(c, r);
	}
	return r;
}

/* Is the copy of an earlier run complete, or was the tree stopped before that was known? Then the
 * outcome is known. */
static bool regular_is_done(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct outcome *o = &w->work.outcome;
	const bool complete = resume_is_complete(w, e, fd, st);
	if (complete) {
		o->action = FCOPY_ACTION_UNCHANGED;
		o->reused = true;
		o->resumed = (uint64_t)st->st_size;
	} else if (tree_stopped(w->tree)) {
		o->stage = OUTCOME_NONE;
	}
	return complete || o->stage == OUTCOME_NONE;
}

void regular_copy(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	const struct ground *g = &w->tree->root.ground;
	if (w->tree->root.record) /* a little earlier does no harm */
		clock_gettime(CLOCK_REALTIME_COARSE, &w->work.opened);
	record_before(w, st->st_size);
	if (g->journal && regular_is_done(w, e, fd, st)) {
		close(fd);
		return;
	}
	struct copy *c = pool_start_copy(w);
	c->skips_clone = w->options.reflink <= FCOPY_WHEN_AUTO && w->clones.is == ANSWER_NO &&
			 w->clones.dev == st->st_dev;
	c->local = regular_is_local(&w->local, fd, st);
	source_adopt(&c->src, fd, entry_src, st);
	bool known = false;
	int r = regular_open_seen(w, e, st, &known);
	if (r != 0) {
		c->src.ops->abort(&c->src);
	} else {
		bool large = st->st_size >= LARGE_SIZE;
		c->dst.faithful |= g->faithful;
		if (!c->dst.faithful && ground_merges(g) && !destination_is_target(&c->dst))
			c->device = e->dir->dst_inode.dev;
		c->dst.backup = &w->work.displaced->backup;
		c->bare = w->options.preserve & FCOPY_ATTR_MODE && g->exclusive &&
			  directory_gives_no_acl(e->dir);
		if (w->work.tracks)
			w->work.made = identity_of(c->dst.fd);
		if (large && !g->single)
			c->helpers = &w->file.helpers;
		if (large)
			report_large(w, e);
		r = copy_run(c);
		if (r == RESULT_TAKEN)
			r = regular_commit_again(w, e, st, &known);
		if (large)
			report_large(w, NULL);
	}
	report_file(w, st, r == 0);
	if (w->file.report.part_kept)
		regular_note_part(w, e);
	if (r == RESULT_SKIPPED)
		w->work.outcome.action = FCOPY_ACTION_SKIPPED;
	else if (r == 0 && w->tree->root.record)
		record_add(w, e, st);
	else if (r == RESULT_RIVAL || (r < 0 && !known && regular_met_rival(w, e)))
		regular_report_rival(w, e);
	else if (r < 0 && !known)
		report_failure(w, e, &w->file.report.error);
}

void regular_rehearse(struct worker *w, const struct entry *e, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const struct operand *dst = &w->tree->operands->dst;
	const bool only = w->tree->root.ground.single && w->tree->operands->count == 1 &&
			  !o->update;
	const bool file = S_ISREG(st->st_mode);
	struct fcopy_error error = {0};
	int r = 0;
	/* What it would replace or write to: the copy of no other entry. */
	const struct stat *old = w->work.facts.exists
				     ? decide_changed(&w->tree->root.ground, &w->work.facts, o)
				     : NULL;
	const bool target = old == &w->work.facts.target;
	if (rivals_possible(w->tree) && old && !S_ISDIR(old->st_mode) &&
	    !w->work.displaced->cleared.claimed &&
	    !(target ? rivals_claim_target(w->tree, e, st, old) : rivals_claim(w->tree, e, old))) {
		rivals_report(w, e);
		return;
	}
	if (o->link) {
		outcome_link(&w->work.outcome, st);
	} else if (o->symbolic_link) {
		w->work.outcome.type = S_IFLNK;
	} else if (file && !o->attributes_only) {
		w->work.outcome.bytes = (uint64_t)st->st_size;
		w->work.outcome.replaced = w->work.facts.exists && !decide_replaces(o) &&
					   !w->work.decision.clears;
	}
	if (e->dir->dst < 0 || !file || w->work.decision.clears || o->link || o->symbolic_link ||
	    o->attributes_only)
		return;
	const bool device = facts_write_device(w->tree);
	if (device || (r = facts_place(w, e, &error)) == 0)
		r = destination_rehearse(
		    device ? &dst->place : &w->work.place, entry_dst, st, &w->options,
		    regular_flags(w, e) | (only ? DESTINATION_ONLY : 0), &error);
	if (r != 0)
		report_failure(w, e, &error);
}
