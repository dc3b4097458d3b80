/* SPDX-License-Identifier: MIT
 * Implements namesakes.h.
 */
#define _GNU_SOURCE
#include "namesakes.h"
#include "io/io.h"
#include "source/reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define READ_AGAIN 16 /* times; after that, only the 32nd, 64th, ... time */

/* A name led to this inode of DST. */
struct note {
	dev_t dev;
	ino_t ino;
	size_t name; /* index in the list */
	size_t next; /* index of the next note of the bucket, plus 1 */
	enum certainty {
		NOTE_LATE,  /* another name may lead there without a note */
		NOTE_KNOWN, /* any other name that leads there is noted, too */
		NOTE_ENDED  /* the entry had ended: it is the copy of this name */
	} is;
};

struct namesakes {
	struct name_list list; /* of the directory of SRC */
	struct note *note;
	size_t count, size;
	size_t *bucket; /* index of a note, plus 1 */
	size_t buckets; /* a power of two */
	unsigned missed;
};

static size_t *bucket_of(const struct namesakes *n, const struct stat *st)
{
	const uint64_t hash = ((uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 32) *
			      0x9e3779b97f4a7c15u;
	return &n->bucket[(hash >> 32) & (n->buckets - 1)];
}

/* What cannot be noted for lack of memory is searched for again. */
static void note_add(struct namesakes *n, const char *name, const struct stat *st,
		     enum certainty is)
{
	const size_t at = names_from(&n->list, name);
	if (at == n->list.count || strcmp(n->list.name[at], name) != 0)
		return;
	if (n->count == n->size) {
		struct note *more = realloc(n->note, (2 * n->size + 64) * sizeof(*more));
		if (!more)
			return;
		n->note = more;
		n->size = 2 * n->size + 64;
	}
	size_t *bucket = bucket_of(n, st);
	n->note[n->count] = (struct note){st->st_dev, st->st_ino, at, *bucket, is};
	*bucket = ++n->count;
}

bool namesakes_stat(const struct entry *e, const char *name, struct stat *src, struct stat *dst)
{
	if (fstatat(e->dir->src, name, src, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		src->st_mode = src->st_nlink = 0;
	const int flags = S_ISREG(src->st_mode) ? 0 : AT_SYMLINK_NOFOLLOW;
	return fstatat(e->dir->dst, name, dst, flags) == 0;
}

static void namesakes_clear(struct namesakes *n)
{
	names_free(&n->list);
	free(n->note);
	free(n->bucket);
	n->note = NULL;
	n->bucket = NULL;
	n->count = n->size = n->buckets = 0;
}

/* Notes to which inode the name leads, unless that is noted as the one of `index`. */
static void note_name(struct namesakes *n, const struct entry *e, size_t index, bool again)
{
	struct stat src, dst;
	const char *name = n->list.name[index];
	if (strlen(name) > NAME_MAX || !namesakes_stat(e, name, &src, &dst))
		return;
	for (size_t at = again ? *bucket_of(n, &dst) : 0; at > 0; at = n->note[at - 1].next) {
		const struct note *note = &n->note[at - 1];
		if (note->name == index && note->dev == dst.st_dev && note->ino == dst.st_ino)
			return;
	}
	note_add(n, name, &dst, again ? NOTE_LATE : NOTE_KNOWN);
}

/* Reads the directory, and notes each name, twice: an entry may replace a file in the meantime, and
 * another name that leads to it may be noted before and after that. */
static void namesakes_read(struct namesakes *n, const struct entry *e)
{
	namesakes_clear(n);
	if (names_read(e->dir->src, &n->list, NULL) < 0)
		return;
	for (n->buckets = 64; n->buckets < n->list.count;)
		n->buckets *= 2;
	n->bucket = calloc(n->buckets, sizeof(*n->bucket));
	if (!n->bucket) {
		namesakes_clear(n);
		return;
	}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n->list.count; i++)
			note_name(n, e, i, pass > 0);
}

static unsigned count_name(const struct name_list *list, const char *name)
{
	unsigned count = 0;
	if (list->count > 0)
		for (size_t i = names_from(list, name);
		     i < list->count && strcmp(list->name[i], name) == 0; i++)
			count++;
	return count;
}

/* Looks only at what was noted. Returns whether that answers the search. */
static bool namesakes_find(const struct namesakes *n, struct search *s)
{
	struct stat src, dst;
	bool known = false;
	s->count = count_name(&n->list, s->e->name);
	if (s->dst.st_nlink == 0)
		return true;
	for (size_t at = n->buckets > 0 ? *bucket_of(n, &s->dst) : 0; at > 0;
	     at = n->note[at - 1].next) {
		const struct note *note = &n->note[at - 1];
		const char *name = n->list.name[note->name];
		if (note->dev != s->dst.st_dev || note->ino != s->dst.st_ino)
			continue;
		if (strcmp(name, s->e->name) == 0) {
			known |= note->is != NOTE_LATE;
			s->itself |= note->is == NOTE_ENDED;
		} else if (namesakes_stat(s->e, name, &src, &dst) && same_inode(&dst, &s->dst)) {
			strcpy(s->rival, name);
			return true;
		}
	}
	return known;
}

static struct namesakes *namesakes_of(struct directory *d)
{
	if (!d->namesakes)
		__atomic_store_n(&d->namesakes, calloc(1, sizeof(*d->namesakes)), __ATOMIC_RELEASE);
	return d->namesakes;
}

/* From the first search on, entries that end are noted. The directory is read after that, so that
 * no entry is missed. */
void namesakes_search(struct search *s, bool thorough)
{
	const struct entry *e = s->e;
	struct namesakes *n = namesakes_of(e->dir);
	struct stat src, now;
	s->unknown = !n;
	for (int tries = 0; n && tries < 5; tries++) {
		*s = (struct search){.e = e};
		if (!namesakes_stat(e, e->name, &s->src, &s->dst))
			s->dst.st_nlink = 0;
		if (n->list.name && namesakes_find(n, s))
			return;
		n->missed++;
		s->unknown = !thorough && n->missed > READ_AGAIN &&
			     (n->missed & (n->missed - 1)) != 0;
		if (s->unknown)
			return;
		namesakes_read(n, e);
		(void)namesakes_find(n, s);
		/* A file that had one name is replaced without the lock: if that was done during
		 * the search, the rival had another inode than the entry. */
		if (s->rival[0] || s->dst.st_nlink == 0 ||
		    !namesakes_stat(e, e->name, &src, &now) || same_inode(&now, &s->dst))
			return;
	}
}

void namesakes_note(struct tree *t, const struct entry *e)
{
	struct stat src, dst;
	if (!__atomic_load_n(&e->dir->namesakes, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&t->replacing);
	if (e->dir->namesakes->list.name && namesakes_stat(e, e->name, &src, &dst))
		note_add(e->dir->namesakes, e->name, &dst, NOTE_ENDED);
	pthread_mutex_unlock(&t->replacing);
}

void namesakes_forget(struct directory *d)
{
	if (d->namesakes)
		namesakes_clear(d->namesakes);
	free(d->namesakes);
	d->namesakes = NULL;
}
