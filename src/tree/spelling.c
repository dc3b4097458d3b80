/* SPDX-License-Identifier: MIT
 * Implements spelling.h.
 */
#include "spelling.h"
#include "endpoints/case.h"
#include "io/io.h"
#include "report.h"
#include "rivals.h"

#include <fcntl.h>

/* Where the copy of the entry is, or will be: place_accept() has followed a symlink in DST. Without
 * /proc nobody knows. */
static bool spelling_find_path(const struct worker *w, const struct entry *e, char path[PATH_MAX])
{
	const struct place *p = &w->work.place;
	if (p->dir >= 0 && p->name[0])
		io_name_path(p->dir, p->name, path);
	else
		io_name_path(e->dir->dst, e->as, path);
	return path[0] == '/';
}

/* All names of one source have one spelling: their copies are equal. Not so with backups: that of
 * the second name would be the copy of the first one. */
static struct spelling spelling_of(const struct tree *t, const char *path, const struct stat *src)
{
	const uint64_t number[] = {src->st_ino, src->st_dev};
	const bool linked = src->st_nlink > 1 && !S_ISDIR(src->st_mode) && !t->options->backup;
	return (struct spelling){
	    .path = case_hash(path),
	    .source = linked ? hash_mix(hash_add(HASH_START, number, sizeof(number))) | 1
			     : hash_name(path) | 1};
}

/* A row of claims.spelled is begun or claimed when a copy begins, and noted when DST has it. Only
 * one that is begun can become that of another source. */
enum spelling_mark { SPELLING_NOTED, SPELLING_CLAIMED, SPELLING_BEGUN };

/* Is the path noted or claimed, or only begun if `begun`, with another source? */
static bool spelling_find(struct tree *t, const struct spelling *s, bool begun)
{
	pthread_mutex_lock(&t->claims.searches);
	const struct table_row *row = table_find(&t->claims.spelled, s->path);
	const bool other = row && row->value != s->source && (begun || row->mark != SPELLING_BEGUN);
	pthread_mutex_unlock(&t->claims.searches);
	return other;
}

/* Begins, claims or notes the path. Returns whether another source has it. To claim it, no other
 * one may have begun. */
static bool spelling_set(struct tree *t, const struct spelling *s, enum spelling_mark mark)
{
	pthread_mutex_lock(&t->claims.searches);
	struct table_row *row = table_add(&t->claims.spelled, s->path);
	const bool other = row && row->value != 0 && row->value != s->source;
	const bool met = other && (mark == SPELLING_CLAIMED || row->mark != SPELLING_BEGUN);
	if (row && !met && (row->value == 0 || mark < row->mark)) {
		row->value = s->source;
		row->mark = mark;
	}
	pthread_mutex_unlock(&t->claims.searches);
	if (!row)
		tree_stop(t, ENOMEM);
	return met;
}

static void spelling_remove(struct tree *t, const struct spelling *s)
{
	pthread_mutex_lock(&t->claims.searches);
	struct table_row *row = table_find(&t->claims.spelled, s->path);
	if (row && row->value == s->source && row->mark != SPELLING_NOTED)
		table_remove(&t->claims.spelled, row);
	pthread_mutex_unlock(&t->claims.searches);
}

/* dev: the file system of dir; 0: unknown. */
static bool spelling_is_served(struct tree *t, int dir, dev_t dev)
{
	struct stat st;
	if (dev)
		return storage_is_served(t->known.storage, dir, dev);
	return fstatat(dir, "", &st, AT_EMPTY_PATH) == 0 &&
	       storage_is_served(t->known.storage, dir, st.st_dev);
}

bool spelling_meets(struct worker *w, const struct entry *e, const struct stat *src, bool skipped)
{
	struct tree *t = w->tree;
	const struct directory *d = e->dir;
	char path[PATH_MAX];
	w->work.spelling = (struct spelling){.path = 0};
	if (!rivals_possible(t) || d->dst < 0 || (t->root.ground.single && !tree_has_several(t)) ||
	    !spelling_is_served(t, d->dst, d->dst_inode.dev) || !spelling_find_path(w, e, path))
		return false;
	w->work.spelling = spelling_of(t, path, src);
	return spelling_find(t, &w->work.spelling, skipped) && case_is_one_at(path);
}

static bool spelling_set_mark(struct worker *w, const struct entry *e, enum spelling_mark mark)
{
	char path[PATH_MAX];
	return w->work.spelling.path && spelling_set(w->tree, &w->work.spelling, mark) &&
	       spelling_find_path(w, e, path) && case_is_one_at(path);
}

bool spelling_begin(struct worker *w, const struct entry *e)
{
	return spelling_set_mark(w, e,
				 w->tree->options->backup ? SPELLING_CLAIMED : SPELLING_BEGUN);
}

bool spelling_claim(struct worker *w, const struct entry *e)
{
	return spelling_set_mark(w, e, SPELLING_CLAIMED);
}

void spelling_fail(struct worker *w)
{
	if (w->work.spelling.path)
		spelling_remove(w->tree, &w->work.spelling);
}

bool spelling_note(struct worker *w, const struct entry *e)
{
	return spelling_set_mark(w, e, SPELLING_NOTED);
}

bool spelling_meets_operand(struct tree *t, const struct place *to, struct spelling *s)
{
	char path[PATH_MAX];
	*s = (struct spelling){.path = 0};
	if (!spelling_is_served(t, to->dir, to->dev))
		return false;
	io_name_path(to->dir, to->name, path);
	if (path[0] == '/')
		*s = spelling_of(t, path, &(struct stat){.st_mode = S_IFDIR});
	return s->path && spelling_find(t, s, false) && case_is_one_at(path);
}

void spelling_note_operand(struct tree *t, const struct spelling *s)
{
	if (s->path)
		(void)spelling_set(t, s, SPELLING_NOTED);
}

bool spelling_is_begun(struct tree *t, const struct directory *d, const char *name)
{
	char path[PATH_MAX];
	if (!spelling_is_served(t, d->dst, d->dst_inode.dev))
		return false;
	io_name_path(d->dst, name, path);
	const struct spelling s = {.path = case_hash(path)};
	return spelling_find(t, &s, true);
}

bool spelling_is_same(struct tree *t, const struct entry *e, const char *name)
{
	struct stat st;
	return case_is_equal(e->as, name) &&
	       fstatat(e->dir->dst, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       spelling_is_served(t, e->dir->dst, 0) && case_is_one(e->dir->dst, e->as);
}

bool spelling_is_source(struct tree *t, const struct entry *e, dev_t src, dev_t dst)
{
	const struct directory *d = e->dir;
	return case_is_source(t->known.storage, d->src, e->name, src, d->dst, e->as, dst);
}

bool spelling_relates(struct tree *t, int src, const struct stat *st, const struct place *dst)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat above;
	bool equal;
	if (fstatat(dst->dir, "", &above, AT_EMPTY_PATH) < 0 || above.st_dev != st->st_dev ||
	    !storage_is_served(t->known.storage, dst->dir, above.st_dev))
		return false;
	io_name_path(src, "", from);
	io_name_path(dst->dir, dst->name, to);
	return from[0] == '/' && to[0] == '/' && case_paths_relate(from, to, &equal);
}
