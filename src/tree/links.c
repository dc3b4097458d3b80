/* SPDX-License-Identifier: MIT
 * Hard links: which inodes with more than one name were copied, and where to.
 *
 * The first name is copied. Names that are found while that copy is still running wait in its row;
 * links_done() returns them. A row is freed when all names of its inode have been found.
 *
 * A file that is deleted during the copy can leave its inode number to a new one: the time of birth
 * distinguishes the two, or their size and mtime where the file system has no such time.
 */
#include "directory.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "entry.h"
#include "io/hash.h"
#include "report.h"
#include "rivals.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UNKNOWN_LEFT ((nlink_t)-1) /* a name may be found twice, or by a symlink */

struct link {
	struct inode inode;
	struct timespec birth; /* zeros: unknown */
	off_t size;
	struct timespec mtime;
	nlink_t left;   /* names that were not found yet */
	uint64_t found; /* a bit for each name that was, so that one that is listed twice counts
			 * once; if two names have one bit, the row is freed later */
	bool complete;
	struct directory *dir; /* held; where the copy is */
	struct identity made;  /* of the copy, if aside_may_move(dir) */
	struct waiter *waiters;
	char name[];
};

struct links {
	pthread_mutex_t lock;
	struct table rows; /* of the addresses of struct link */
};

struct links *links_new(void)
{
	struct links *l = calloc(1, sizeof(*l));
	if (l)
		pthread_mutex_init(&l->lock, NULL);
	return l;
}

static struct link *link_of(const struct table_row *row)
{
	struct link *k = NULL;
	const uintptr_t address = row ? (uintptr_t)row->value : 0;
	memcpy(&k, &address, sizeof(k));
	return k;
}

static void link_free(struct link *k)
{
	directory_unref(k->dir);
	free(k);
}

void links_free(struct links *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->rows.rows; i++)
		if (l->rows.row[i].key)
			link_free(link_of(&l->rows.row[i]));
	pthread_mutex_destroy(&l->lock);
	table_free(&l->rows);
	free(l);
}

static uint64_t links_key(struct inode i)
{
	const uint64_t x = ((uint64_t)i.ino ^ (uint64_t)i.dev << 40) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 32;
}

static struct link *links_find(const struct links *l, const struct stat *st)
{
	struct link *k = link_of(table_find(&l->rows, links_key(inode_of(st))));
	return k && inode_is(k->inode, st) ? k : NULL;
}

static void links_remove(struct links *l, struct link *k)
{
	table_remove(&l->rows, table_find(&l->rows, links_key(k->inode)));
	link_free(k);
}

static struct timespec link_birth(const struct entry *e)
{
	struct statx sx;
	const int flags = e->follow ? 0 : AT_SYMLINK_NOFOLLOW;
	if (statx(e->dir->src, e->name, flags, STATX_BTIME, &sx) < 0 ||
	    !(sx.stx_mask & STATX_BTIME))
		return (struct timespec){0};
	return statx_time(sx.stx_btime);
}

static bool link_is_same(const struct link *k, const struct stat *st, struct timespec birth)
{
	if ((birth.tv_sec || birth.tv_nsec) && (k->birth.tv_sec || k->birth.tv_nsec))
		return same_time(k->birth, birth);
	return k->size == st->st_size && same_time(k->mtime, st->st_mtim);
}

static uint64_t link_bit(const struct entry *e)
{
	uint64_t hash = hash_add(HASH_START, &e->dir, sizeof(e->dir));
	hash = hash_add(hash, e->as, strlen(e->as));
	return (uint64_t)1 << (hash >> 58);
}

/* Returns false if there is no memory. Two inodes may have one key: the second one gets no row, and
 * its names become separate files. */
static bool links_add(struct links *l, const struct entry *e, const struct stat *st,
		      struct timespec birth, nlink_t left)
{
	const size_t length = strlen(e->as);
	struct link *k = malloc(sizeof(*k) + length + 1);
	struct table_row *row = k ? table_add(&l->rows, links_key(inode_of(st))) : NULL;
	if (!row || row->value) {
		free(k);
		return row;
	}
	*k = (struct link){.inode = inode_of(st),
			   .birth = birth,
			   .size = st->st_size,
			   .mtime = st->st_mtim,
			   .left = left,
			   .found = link_bit(e),
			   .dir = e->dir};
	memcpy(k->name, e->as, length + 1);
	directory_ref(e->dir);
	row->value = (uintptr_t)k;
	return true;
}

static bool links_wait(struct link *k, const struct entry *e)
{
	size_t length = strlen(e->name);
	struct waiter *waits = malloc(sizeof(*waits) + length + 1);
	if (!waits)
		return false;
	*waits = (struct waiter){.next = k->waiters, .dir = e->dir};
	memcpy(waits->name, e->name, length + 1);
	__atomic_add_fetch(&e->dir->pending, 1, __ATOMIC_RELAXED);
	directory_ref(e->dir);
	k->waiters = waits;
	return true;
}

/* One more name of the inode was found. */
static void links_count_name(struct links *l, const struct entry *e, const struct stat *st)
{
	const uint64_t bit = link_bit(e);
	pthread_mutex_lock(&l->lock);
	struct link *k = links_find(l, st);
	if (k && k->complete && k->left > 0 && k->left != UNKNOWN_LEFT && !(k->found & bit)) {
		k->found |= bit;
		if (--k->left == 0)
			links_remove(l, k);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Reports why the entry became no link. Returns whether it is copied instead, after a warning. */
static bool links_explain(struct worker *w, const struct entry *e, int r, const char *call)
{
	struct fcopy_error error;
	if (r == -ELOOP)
		error_refuse(&error, entry_dst, ELOOP,
			     "copied and not linked: one of its names in "
			     "DST is a symlink",
			     FCOPY_ADVICE_NONE);
	else if (r == -ESTALE)
		error_refuse(&error, entry_dst, ESTALE,
			     "copied and not linked: another user may have replaced its other name",
			     FCOPY_ADVICE_NONE);
	else
		error_call(&error, call, entry_dst, -r);
	if (hard_link_is_failure(-r)) {
		report_failure(w, e, &error);
		return false;
	}
	report_warning(w, e, &error);
	return true;
}

/* A name stays a separate file, because nothing may replace it. */
static void links_warn_left(struct worker *w, const struct entry *e)
{
	struct fcopy_error error;
	error_refuse(&error, entry_dst, EEXIST,
		     w->tree->options->attributes_only
			 ? "keeps its bytes, and is not linked to its other name"
			 : "unchanged, but not linked to its other name: it cannot be replaced",
		     FCOPY_ADVICE_NONE);
	report_warning(w, e, &error);
}

bool links_use(struct worker *w, const struct entry *e, const struct stat *st,
	       const struct copied *copied)
{
	struct links *l = w->tree->links;
	struct failure fail;
	int r = hard_link_make(w, e, st, copied, &fail);
	if (r == RESULT_KNOWN)
		return false;
	if (r == RESULT_RIVAL) {
		rivals_report(w, e);
		return false;
	}
	if (r == -EEXIST && (w->work.outcome.action == FCOPY_ACTION_UNCHANGED ||
			     decide_keeps_bytes(&w->work.facts, w->tree->options)))
		links_warn_left(w, e);
	if (r == -EEXIST) /* the copy keeps that file, follows that symlink, or reports a refusal */
		return true;
	links_count_name(l, e, st);
	if (r == RESULT_SAME) { /* its attributes may have been repaired */
		if (w->work.outcome.action != FCOPY_ACTION_REPAIRED)
			w->work.outcome.action = FCOPY_ACTION_UNCHANGED;
		w->work.outcome.reused = w->tree->root.ground.journal;
		return false;
	}
	if (r == 0) {
		outcome_link(&w->work.outcome, st);
		/* An earlier run may have begun with this name of the inode. */
		if (w->tree->root.ground.single && w->tree->options->copy.resume &&
		    !w->tree->options->dry_run)
			partial_remove(e->dir->dst, e->as, -1, st);
		return false;
	}
	if (!links_explain(w, e, r, fail.call))
		return false;
	pthread_mutex_lock(&l->lock);
	struct link *k = links_find(l, st);
	/* The old copy can have no more names: this one is the first of those that follow. */
	if (r == -EMLINK && k && k->complete) {
		const nlink_t left = k->left;
		const struct timespec birth = k->birth;
		links_remove(l, k);
		links_add(l, e, st, birth, left);
	}
	pthread_mutex_unlock(&l->lock);
	return true;
}

enum name_state links_claim(struct worker *w, const struct entry *e, const struct stat *st,
			    struct copied *copied, char *name)
{
	struct links *l = w->tree->links;
	bool memory = true;
	struct timespec birth = link_birth(e);
	pthread_mutex_lock(&l->lock);
	struct link *k = links_find(l, st);
	const bool other = k && !link_is_same(k, st, birth), taken = other && !k->complete;
	if (other && !taken)
		links_remove(l, k);
	k = other ? NULL : k;
	enum name_state is = !k                                                ? NAME_FIRST
			     : k->dir == e->dir && strcmp(k->name, e->as) == 0 ? NAME_TWICE
			     : k->complete                                     ? NAME_COPIED
									       : NAME_WAITS;
	if (is == NAME_COPIED) {
		*copied = (struct copied){.dir = k->dir, .name = name, .made = k->made};
		strcpy(name, k->name);
		directory_ref(copied->dir);
	} else if (is == NAME_WAITS) {
		memory = links_wait(k, e);
		w->work.outcome.stage = memory ? OUTCOME_LATER : w->work.outcome.stage;
	} else if (is == NAME_TWICE) {
		w->work.outcome.stage = OUTCOME_NONE;
	} else if (!taken) {
		/* In a part, a name that is listed twice must find its row. */
		bool known = w->tree->options->follow != FCOPY_FOLLOW_ALWAYS &&
			     !tree_has_several(w->tree) && !w->tree->root.ground.journal;
		memory = links_add(l, e, st, birth, known ? st->st_nlink - 1 : UNKNOWN_LEFT);
	}
	pthread_mutex_unlock(&l->lock);
	if (memory)
		return is;
	tree_stop(w->tree, ENOMEM);
	return NAME_FIRST;
}

struct waiter *links_done(struct worker *w, const struct entry *e, const struct stat *st,
			  bool complete)
{
	struct links *l = w->tree->links;
	struct waiter *waits = NULL;
	pthread_mutex_lock(&l->lock);
	struct link *k = links_find(l, st);
	if (k && !k->complete && k->dir == e->dir && strcmp(k->name, e->as) == 0) {
		waits = k->waiters;
		k->waiters = NULL;
		k->complete = true;
		k->made = w->work.made;
		if (!complete || k->left == 0)
			links_remove(l, k);
	}
	pthread_mutex_unlock(&l->lock);
	return waits;
}
