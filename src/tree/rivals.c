/* SPDX-License-Identifier: MIT
 * Implements rivals.h.
 */
#include "rivals.h"
#include "endpoints/error.h"
#include "io/io.h"
#include "io/system.h"
#include "namesakes.h"
#include "report.h"
#include "root.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void rivals_lock(struct tree *t)
{
	if (rivals_possible(t))
		pthread_mutex_lock(&t->claims.lock);
}

void rivals_unlock(struct tree *t)
{
	if (rivals_possible(t))
		pthread_mutex_unlock(&t->claims.lock);
}

/* Directories have a set of their own. The inode number of a file that was replaced can come back
 * as that of a new directory; this run removes no directory that it has claimed. */
static struct inodes *rivals_set(struct tree *t, const struct stat *st)
{
	return S_ISDIR(st->st_mode) ? &t->claims.set[SET_ENTERED] : &t->claims.set[SET_MADE];
}

static bool rivals_in(struct tree *t, enum set set, const struct stat *st)
{
	return inodes_has(&t->claims.set[set], st);
}

/* Does the name lead to a link that this run has made under another new name of the directory? The
 * list was read before the first of them: a name that is not in it leads to a new one. */
static bool rivals_lead_to_link(struct tree *t, const struct directory *d, const char *name,
				const struct stat *st)
{
	const struct name_list *there = __atomic_load_n(&d->rivals.there, __ATOMIC_ACQUIRE);
	return there && there->name && st->st_nlink > 1 && !S_ISDIR(st->st_mode) &&
	       rivals_in(t, SET_LINKED, st) && !names_have(there, name);
}

/* Is what `name` in d leads to made by this run? */
static bool rivals_are_made_as(struct tree *t, const struct directory *d, const char *name,
			       const struct stat *st)
{
	return inodes_has(rivals_set(t, st), st) || rivals_lead_to_link(t, d, name, st);
}

/* May the entry be written in place? No rename replaces the root of a mount: auto writes to it. */
static bool rivals_are_written(const struct fcopy_options *o, const struct entry *e)
{
	if (in_place_always(o) || !in_place_possible(o))
		return in_place_always(o);
	const int fd = openat(e->dir->dst, e->as, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const bool written = fd < 0 || system_is_mount_root(fd) != 0;
	io_close(fd);
	return written;
}

/* Does only this entry of its directory lead to the inode, which is in a set? Then another process
 * has given the number, or the file, this name; or the entry is listed twice, and may be copied
 * twice. Not so a directory, nor a file that is written in place: it may be that of an entry of
 * another directory, moved, or bound to a second place. Nor with backups: the second one would
 * replace the first one. */
static bool rivals_are_own(struct tree *t, const struct entry *e, const struct stat *st)
{
	const struct fcopy_tree_options *o = t->options;
	struct search s = {.e = e};
	if (S_ISDIR(st->st_mode) || o->backup || o->keep_directory_symlink ||
	    t->root.ground.single || rivals_in(t, SET_REACHED, st) ||
	    rivals_are_written(&o->copy, e))
		return false;
	if (namesakes_are_impossible(e, st))
		return !namesakes_are_twice(t, e);
	namesakes_search(t, &s, false);
	return s.count < 2 && (namesakes_are_links(t, &s) || namesakes_are_one(t, &s));
}

/* Has another entry made what e's name leads to, or followed it to its copy? */
static bool rivals_meet(struct tree *t, const struct entry *e, const struct stat *st)
{
	return rivals_in(t, SET_FOLLOWED, st) ||
	       (rivals_are_made_as(t, e->dir, e->as, st) && !rivals_are_own(t, e, st));
}

/* A file with several names may be replaced under each of them. Whether this run has made it is
 * then looked up again just before the rename. */
static bool rivals_take(struct tree *t, const struct entry *e, const struct stat *st)
{
	const bool shared = st->st_nlink > 1 && !S_ISDIR(st->st_mode);
	const int r = inodes_add(shared ? &t->claims.set[SET_TAKEN] : rivals_set(t, st), st);
	if (r < 0)
		tree_stop(t, -r);
	return shared ? !rivals_meet(t, e, st) : r != 0 || rivals_are_own(t, e, st);
}

static void rivals_note(struct tree *t, enum set set, const struct stat *st)
{
	if (inodes_add(&t->claims.set[set], st) < 0)
		tree_stop(t, ENOMEM);
}

/* Does an unchanged entry keep this name or, if the file has no other name, its inode? */
static bool rivals_stay(struct tree *t, const struct entry *e, const struct stat *st)
{
	const struct stat name = namesakes_key(e);
	const bool only = st->st_nlink < 2;
	if (rivals_in(t, SET_LEFT, &name) || (only && rivals_in(t, SET_LEFT, st)))
		return true;
	return (rivals_in(t, SET_KEPT, &name) || (only && rivals_in(t, SET_KEPT, st))) &&
	       !rivals_are_own(t, e, st);
}

/* Claims what the entry replaces: notes it, then looks for an entry that keeps it. Such an
 * entry also notes first and looks second, so at least one of two threads sees the other. */
static bool rivals_claim_stat(struct tree *t, const struct entry *e, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return rivals_take(t, e, st);
	const struct stat name = namesakes_key(e);
	rivals_note(t, SET_REPLACED, st->st_nlink < 2 ? st : &name);
	return rivals_take(t, e, st) && !rivals_stay(t, e, st) && !rivals_in(t, SET_FOLLOWED, st);
}

bool rivals_claim_target(struct tree *t, const struct entry *e, const struct stat *src,
			 const struct stat *st)
{
	if (!rivals_possible(t))
		return true;
	if (!namesakes_follow(t, e, st))
		return false;
	/* Before it is claimed: it is no evidence that an entry is listed twice. */
	rivals_note(t, SET_REACHED, st);
	rivals_note(t, SET_REPLACED, st);
	return (src->st_nlink > 1 || !rivals_in(t, SET_KEPT, st)) && rivals_claim_stat(t, e, st);
}

bool rivals_claim(struct tree *t, const struct entry *e, const struct stat *st)
{
	struct stat now;
	if (!rivals_possible(t) ||
	    (!st && fstatat(e->dir->dst, e->as, &now, AT_SYMLINK_NOFOLLOW) < 0))
		return true;
	return rivals_claim_stat(t, e, st ? st : &now);
}

void rivals_unclaim(struct tree *t, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		inodes_remove(&t->claims.set[SET_ENTERED], st);
}

void rivals_give_back(struct tree *t, const struct stat *st)
{
	inodes_remove(&t->claims.set[SET_REPLACED], st);
	if (st->st_nlink < 2 || S_ISDIR(st->st_mode)) /* others stay in SET_TAKEN */
		inodes_remove(rivals_set(t, st), st);
}

bool rivals_made(struct tree *t, const struct entry *e, const struct stat *st)
{
	return rivals_possible(t) && rivals_meet(t, e, st);
}

bool rivals_made_as(struct tree *t, const struct directory *d, const char *name,
		    const struct stat *st)
{
	return rivals_possible(t) && rivals_are_made_as(t, d, name, st);
}

bool rivals_have(struct tree *t, const struct entry *e)
{
	struct stat st;
	return rivals_possible(t) && fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       rivals_meet(t, e, &st);
}

static bool rivals_commit_meets(void *worker, const struct stat *st)
{
	const struct worker *w = worker;
	return rivals_meet(w->tree, w->work.entry, st) || rivals_stay(w->tree, w->work.entry, st);
}

static bool rivals_is_source(const struct stat *st, void *tree)
{
	return inodes_has(&((struct tree *)tree)->operands->inodes, st);
}

bool rivals_are_source(struct tree *t, const struct stat *st)
{
	return tree_has_several(t) && rivals_is_source(st, t);
}

int rivals_is_below_source(struct tree *t, int dir)
{
	return reader_climb(dir, rivals_is_source, t, NULL);
}

/* A symlink in DST was followed to the file that *old is of. Returns 0 or -errno, recorded. */
static int rivals_check_target(struct worker *w, const struct entry *e, const struct stat *old)
{
	struct tree *t = w->tree;
	struct fcopy_error *error = &w->file.report.error;
	const int src = entry_top(e)->src;
	int dir, r = rivals_is_source(old, t);
	destination_name(&w->file.copy.dst, &dir);
	if (r == 0)
		r = rivals_is_below_source(t, dir);
	if (r == 0 && !t->root.ground.single && src >= 0)
		r = inside_by_mount(t->known.mounts, src, dir, t->options->one_file_system);
	if (r < 0 && r != -EACCES) /* a process that may not search there cannot have read it */
		return error_call(error, "open", entry_dst, -r);
	return r > 0 ? error_refuse(error, entry_dst, EINVAL, "leads to a file of the source",
				    FCOPY_ADVICE_NONE)
		     : 0;
}

void rivals_expect_link(struct tree *t, const struct entry *e)
{
	struct directory *d = e->dir;
	if (rivals_possible(t) && !__atomic_load_n(&d->rivals.there, __ATOMIC_ACQUIRE) &&
	    d->dst >= 0 && !system_has(d->dst, SYSTEM_NAMES))
		(void)namesakes_list(d);
}

void rivals_note_linked(struct worker *w, const struct entry *e, const struct stat *st, bool is_new)
{
	struct tree *t = w->tree;
	const struct name_list *there = __atomic_load_n(&e->dir->rivals.there, __ATOMIC_ACQUIRE);
	/* Other SRC list in the same directory of DST. */
	const bool by_list = is_new && there && there->name && !tree_has_several(t);
	if (!rivals_possible(t) || (is_new && !there && system_has(e->dir->dst, SYSTEM_NAMES)) ||
	    (!by_list && !namesakes_differ_in_case(t, e, st, is_new)))
		return;
	rivals_lock(t);
	const int r = inodes_add(by_list ? &t->claims.set[SET_LINKED] : &t->claims.set[SET_MADE],
				 st);
	rivals_unlock(t);
	if (r < 0)
		tree_stop(t, -r);
}

/* A file with several names that was linked, or left as it is, is in no set. So that no copy
 * replaces it, another name may not lead to such a file: no symlink, and no name that DST lists in
 * another case. */
static int rivals_check_linked(struct worker *w, const struct entry *e, const struct stat *old)
{
	const struct fcopy_tree_options *o = w->tree->options;
	if (old->st_nlink < 2 || (!o->link_dest && !o->update))
		return 0;
	if (destination_is_target(&w->file.copy.dst))
		return error_refuse(&w->file.report.error, entry_dst, EMLINK,
				    "is a symlink to a file that has other hard links and may be "
				    "the copy of another entry",
				    FCOPY_ADVICE_NONE);
	return o->link_dest && namesakes_differ_in_case(w->tree, e, old, false) ? RESULT_RIVAL : 0;
}

static int rivals_claim_open(struct worker *w, const struct entry *e)
{
	struct tree *t = w->tree;
	struct endpoint *dst = &w->file.copy.dst;
	const bool target = destination_is_target(dst);
	const struct stat *old = dst->old_stat;
	struct stat new;
	int r = 0;
	if (old && S_ISREG(old->st_mode)) {
		if (target)
			r = rivals_check_target(w, e, old);
		if (r == 0)
			r = rivals_check_linked(w, e, old);
		if (r == 0 && !(target ? rivals_claim_target(t, e, &w->work.facts.src, old)
				       : rivals_claim_stat(t, e, old)))
			r = RESULT_RIVAL;
	}
	if (dst->st.st_ino)
		new = dst->st;
	else if (r == 0 && fstat(dst->fd, &new) < 0)
		r = error_call(&w->file.report.error, "fstat", entry_dst, errno);
	if (r != 0 || !S_ISREG(new.st_mode))
		return r;
	/* Written through a symlink, or in place under one of its names. */
	if (((target || new.st_nlink > 1) && inodes_add(&t->claims.set[SET_REACHED], &new) < 0) ||
	    inodes_add(&t->claims.set[SET_MADE], &new) < 0)
		r = -ENOMEM;
	if (r == -ENOMEM)
		tree_stop(t, ENOMEM);
	return r;
}

int rivals_claim_file(struct worker *w, const struct entry *e, int r)
{
	struct tree *t = w->tree;
	if (r != 0)
		return r;
	w->file.rivals = (struct rivals){rivals_commit_meets, w, &t->claims.lock};
	w->file.copy.dst.rivals = &w->file.rivals;
	r = rivals_claim_open(w, e);
	if (r == 0)
		return 0;
	if (r < 0 && w->file.report.error.err == 0)
		error_call(&w->file.report.error, "open", entry_dst, -r);
	w->file.copy.dst.ops->abort(&w->file.copy.dst);
	return r;
}

bool rivals_share(struct tree *t, const struct entry *e)
{
	struct search s = {.e = e};
	struct stat st;
	if (!rivals_possible(t) || fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (rivals_meet(t, e, &st))
		return true;
	if (!namesakes_differ_in_case(t, e, &st, false))
		return false;
	namesakes_search(t, &s, true);
	return s.rival[0] || s.unknown;
}

/* With --keep-directory-symlink another entry may reach the name: notes that, too. */
static void rivals_note_kept(struct tree *t, const struct entry *e, const struct stat *st)
{
	rivals_note(t, SET_KEPT, st);
	if (t->options->keep_directory_symlink) {
		const struct stat name = namesakes_key(e);
		rivals_note(t, SET_KEPT, &name);
	}
}

/* Does another entry replace what stays? */
static bool rivals_replace(struct tree *t, const struct entry *e, const struct stat *st)
{
	if (rivals_in(t, SET_REPLACED, st) && !rivals_are_own(t, e, st))
		return true;
	if (!t->options->keep_directory_symlink)
		return false;
	const struct stat name = namesakes_key(e);
	return rivals_in(t, SET_REPLACED, &name);
}

/* The look for another name of SRC is true only while the file has its name: an entry that takes
 * one of its names has claimed it before. */
bool rivals_keep(struct tree *t, const struct entry *e, const struct stat *st)
{
	if (!rivals_possible(t))
		return true;
	rivals_note_kept(t, e, st); /* before it is claimed: see rivals_leave_target() */
	if (st->st_nlink < 2)       /* 0: another entry has just replaced it */
		return rivals_take(t, e, st);
	if (rivals_replace(t, e, st) ||
	    (namesakes_differ_in_case(t, e, st, false) && rivals_share(t, e)))
		return false;
	return !rivals_in(t, SET_TAKEN, st) || namesakes_lead(e, e->as, st);
}

void rivals_unkeep(struct tree *t, const struct entry *e, const struct stat *st)
{
	const struct stat name = namesakes_key(e);
	if (!rivals_possible(t))
		return;
	inodes_remove(&t->claims.set[SET_KEPT], st);
	inodes_remove(&t->claims.set[SET_KEPT], &name);
}

bool rivals_keep_linked(struct tree *t, const struct entry *e, const struct stat *st)
{
	if (!rivals_possible(t))
		return true;
	rivals_note_kept(t, e, st);
	return !rivals_replace(t, e, st);
}

bool rivals_leave_target(struct tree *t, const struct entry *e, const struct stat *st)
{
	if (!rivals_possible(t))
		return true;
	if (!namesakes_follow(t, e, st))
		return false;
	const struct stat name = namesakes_key_of_target(e);
	rivals_note(t, SET_LEFT, &name);
	if (st->st_nlink < 2)
		rivals_note(t, SET_LEFT, st);
	if (rivals_in(t, SET_REPLACED, st) || rivals_in(t, SET_REPLACED, &name))
		return false;
	/* What is replaced may have gone, or got another name, before it is claimed. */
	if (decide_replaces(t->options) && st->st_nlink < 2)
		return rivals_take(t, e, st);
	return !rivals_in(t, SET_MADE, st) || rivals_in(t, SET_KEPT, st);
}

/* Reports s->rival, or that there is none. */
static int rivals_report_found(struct worker *w, const struct search *s)
{
	const struct entry *e = s->e;
	struct fcopy_error error;
	char path[PATH_MAX];
	error_refuse(&error, s->rival[0] ? entry_src : entry_dst, EEXIST,
		     s->rival[0] ? "are one file in the destination: only the second is copied"
				 : "is already the copy of another entry: not replaced",
		     FCOPY_ADVICE_NONE);
	if (s->rival[0]) {
		const struct entry rival = {.dir = e->dir, .name = s->rival, .as = s->rival};
		entry_path(&rival, true, path, sizeof(path));
		error.path2 = path;
	}
	return report_failure(w, e, &error);
}

static int rivals_leave(struct worker *w)
{
	w->work.outcome.stage = OUTCOME_NONE;
	return -EEXIST;
}

int rivals_report(struct worker *w, const struct entry *e)
{
	struct search s = {.e = e};
	if (!w->tree->root.ground.single) {
		namesakes_search(w->tree, &s, false);
		if ((s.count > 1 && namesakes_are_one(w->tree, &s)) ||
		    namesakes_have_one_source(&s))
			return rivals_leave(w);
	}
	return rivals_report_found(w, &s);
}

int rivals_report_new(struct worker *w, const struct entry *e)
{
	struct search s = {.e = e};
	namesakes_search(w->tree, &s, false);
	if (namesakes_have_one_source(&s) || (!s.rival[0] && s.count > 1))
		return rivals_leave(w);
	/* Where every name has a different inode number, that does not reveal a rival. */
	const bool aliased = !s.unknown && s.dst.st_nlink > 0 &&
			     !namesakes_are_impossible(e, &s.dst) &&
			     !reader_lists(e->dir->dst, e->as);
	return s.rival[0] || aliased || (s.unknown && !namesakes_are_impossible(e, &s.dst))
		   ? rivals_report_found(w, &s)
		   : 0;
}

int rivals_report_other(struct worker *w, const struct entry *e)
{
	__atomic_store_n(&w->tree->root.shared_by, true, __ATOMIC_RELAXED);
	return report_refusal(w, e, entry_dst, EEXIST,
			      "was made by another process during the copy: not replaced");
}
