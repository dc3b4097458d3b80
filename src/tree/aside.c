/* SPDX-License-Identifier: MIT
 * Where another user can exchange the names in a directory, mkdir(2), mknod(2) and symlink(2) are
 * unsafe: they return no descriptor, and the name that they made may lead to another inode when it
 * is opened. There an entry is made in a private directory, which no other user can enter, and
 * renamed when its owner and mode are set.
 *
 * Each thread has one private directory at a time. It lasts until the thread has finished its item
 * of the pool, so that the names of one item share it.
 */
#include "displace.h"
#include "entry.h"
#include "io/io.h"
#include "report.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Several threads may find out. */
static bool aside_has_others(struct directory *d)
{
	struct stat st;
	enum answer shared = __atomic_load_n(&d->known.shared, __ATOMIC_RELAXED);
	if (shared == ANSWER_UNKNOWN) {
		shared = answer_of(fstat(d->dst, &st) < 0 || private_is_shared(&st));
		__atomic_store_n(&d->known.shared, shared, __ATOMIC_RELAXED);
	}
	return shared == ANSWER_YES;
}

bool aside_is_shared(const struct tree *t, struct directory *d)
{
	return t->root.ground.foreign && aside_has_others(d);
}

bool aside_is_possible(struct tree *t, struct directory *d)
{
	enum answer moves = __atomic_load_n(&d->known.moves, __ATOMIC_RELAXED);
	if (moves == ANSWER_UNKNOWN) {
		moves = answer_of(
		    storage_can(t->known.storage, d->dst, STORAGE_RENAMES_DIRECTORIES));
		__atomic_store_n(&d->known.moves, moves, __ATOMIC_RELAXED);
	}
	return moves == ANSWER_YES;
}

bool aside_may_move(struct tree *t, struct directory *d)
{
	const struct stat *st = &d->st;
	/* The new tree of an earlier operand is no longer private. */
	if (!t->root.ground.foreign && !tree_has_several(t))
		return false;
	/* A symlink may have led to it: then other directories are on the way to it. */
	if (t->options->keep_directory_symlink)
		return true;
	/* When it is complete, a directory gets the owner and mode of its source. */
	if (d->parent &&
	    (st->st_mode & 022 ||
	     ((t->options->copy.preserve & FCOPY_ATTR_OWNERSHIP) && io_is_foreign(st))))
		return true;
	for (; d; d = d->parent)
		if (aside_has_others(d))
			return true;
	return false;
}

/* Returns the private directory of this item, or -errno with the call. */
static int aside_open(struct worker *w, const struct entry *e, struct failure *fail)
{
	char path[PATH_MAX];
	if (w->aside.of == e->dir)
		return w->aside.in.fd;
	aside_end(w);
	int r = private_make(&w->aside.in, e->dir->dst, fail);
	if (r < 0)
		return r;
	w->aside.of = e->dir;
	if (w->aside.in.exposed) {
		entry_path(e, false, path, sizeof(path));
		report_not_private(w->tree, path);
	}
	return w->aside.in.fd;
}

static bool aside_exists(const struct entry *e)
{
	struct stat st;
	return fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Returns as slot_commit(), and -EEXIST if a new name is taken before anything is made. */
static int aside_make_in(struct slot *s, struct worker *w, const struct entry *e,
			 const struct making *m, struct failure *fail)
{
	const int dir = e->dir->dst;
	int home = -1, r = 0;
	if (s->how == HOW_ASIDE) {
		r = home = aside_open(w, e, fail);
		if (r >= 0 && !s->is.exists && aside_exists(e))
			r = -EEXIST;
	}
	if (r >= 0)
		r = slot_make(s, dir, e->as, home, m->make, m->arg, m->call, fail);
	if (r >= 0 && m->complete) {
		slot_look(s, dir, e->as);
		r = m->complete(s->home, slot_name(s, e->as), m->arg, fail);
	}
	if (r >= 0)
		r = slot_commit(s, dir, e->as, fail);
	if (s->stage == SLOT_LOST)
		slot_warn_lost(s, &w->options);
	return r;
}

/* The chosen way has failed with r. Is there another one? */
static bool aside_choose_another(const struct worker *w, const struct entry *e, struct slot *s,
				 int r, const struct failure *fail)
{
	if (r == -EXDEV && s->how == HOW_ASIDE && geteuid() != 0) {
		__atomic_store_n(&e->dir->known.moves, ANSWER_NO, __ATOMIC_RELAXED);
		s->is.foreign = false;
	} else if (r < 0 && r != -EISDIR && s->stage != SLOT_LOST && s->is.exists &&
		   fail->step == STEP_RENAME && facts_still_allow(&w->work.decision, e)) {
		s->is.unfit |= HOW_INVISIBLE; /* it could be created, but no rename replaces */
	} else {
		return false;
	}
	s->how = slot_choose(&s->is);
	return s->how != HOW_NONE;
}

int aside_make(struct worker *w, const struct entry *e, const struct making *m, bool replace,
	       struct failure *fail)
{
	const struct stat *old = replace ? w->work.decision.seen : NULL;
	const bool foreign = (replace || !m->whole) && aside_is_shared(w->tree, e->dir);
	const bool possible = !foreign || aside_is_possible(w->tree, e->dir);
	if (!possible && geteuid() == 0)
		return fail_if(fail, -EOPNOTSUPP, "rename of a directory");
	struct slot s = {.is.exists = replace,
			 .is.foreign = foreign && possible,
			 .is.in_place = w->options.in_place,
			 .over = !replace ? OVER_NOTHING
				 : old    ? OVER_FOUND
					  : OVER_ANY,
			 .found = old,
			 .backup = old && w->work.decision.backup ? &w->work.displaced->backup
								  : NULL,
			 .storage = w->tree->known.storage};
	int r;
	s.how = slot_choose(&s.is);
	do {
		r = aside_make_in(&s, w, e, m, fail);
		if (r != 0)
			slot_drop(&s, e->dir->dst, e->as);
		slot_warn_left(&s, e->as, &w->options);
	} while (r != 0 && aside_choose_another(w, e, &s, r, fail));
	return r == RESULT_TAKEN ? (old ? RESULT_TAKEN : -EEXIST) : r;
}

int aside_replace(struct worker *w, const struct entry *e, const struct making *m,
		  struct failure *fail)
{
	struct stat old;
	const bool claims = rivals_possible(w->tree) &&
			    fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (claims && !rivals_claim(w->tree, e, &old))
		return RESULT_RIVAL;
	const int r = aside_make(w, e, m, true, fail);
	if (claims && (r < 0 || r == RESULT_TAKEN)) /* a copy may be made instead of a link */
		rivals_give_back(w->tree, &old);
	return r;
}

void aside_end(struct worker *w)
{
	if (!w->aside.of)
		return;
	private_end(&w->aside.in);
	w->aside.of = NULL;
}
