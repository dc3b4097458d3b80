/* SPDX-License-Identifier: MIT
 * A set of inodes: a hash table of bitmaps.
 */
#define _GNU_SOURCE
#include "inodes.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#define ROWS_START  256 /* a power of two */
#define DEVICES_MAX 64

/* Of 64 neighbouring inode numbers. */
struct row {
	uint64_t key; /* the upper bits of the number, above them the index of the device; plus 1;
		       * 0: the row was never used */
	uint64_t bits;
};

struct inodes {
	pthread_mutex_t lock;
	dev_t device[DEVICES_MAX];
	unsigned devices;
	size_t used, size;
	struct row *row;
};

struct inodes *inodes_new(void)
{
	struct inodes *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->row = calloc(ROWS_START, sizeof(*s->row));
	if (!s->row) {
		free(s);
		return NULL;
	}
	s->size = ROWS_START;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void inodes_free(struct inodes *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s->row);
	free(s);
}

/* Never 0. All devices after the first DEVICES_MAX share an index: then two inodes with one number
 * count as one. */
static uint64_t inode_key(struct inodes *s, const struct stat *st)
{
	unsigned i = 0;
	while (i < s->devices && s->device[i] != st->st_dev)
		i++;
	if (i == DEVICES_MAX)
		i--;
	else if (i == s->devices)
		s->device[s->devices++] = st->st_dev;
	const uint64_t key = ((uint64_t)st->st_ino / 64 ^ (uint64_t)i << 58) + 1;
	return key ? key : 1;
}

static struct row *find_row(const struct inodes *s, uint64_t key)
{
	size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20);
	while (s->row[at &= s->size - 1].key && s->row[at].key != key)
		at++;
	return &s->row[at];
}

static bool grow(struct inodes *s)
{
	struct inodes larger = *s;
	larger.size = 2 * s->size;
	larger.row = calloc(larger.size, sizeof(*larger.row));
	if (!larger.row)
		return false;
	for (size_t i = 0; i < s->size; i++)
		if (s->row[i].key)
			*find_row(&larger, s->row[i].key) = s->row[i];
	free(s->row);
	s->row = larger.row;
	s->size = larger.size;
	return true;
}

int inodes_add(struct inodes *s, const struct stat *st)
{
	const uint64_t bit = (uint64_t)1 << (st->st_ino % 64);
	pthread_mutex_lock(&s->lock);
	int r = s->used < s->size / 4 * 3 || grow(s) ? 1 : -ENOMEM;
	if (r > 0) {
		const uint64_t key = inode_key(s, st);
		struct row *row = find_row(s, key);
		r = !(row->bits & bit);
		s->used += row->key == 0;
		row->key = key;
		row->bits |= bit;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

void inodes_remove(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	find_row(s, inode_key(s, st))->bits &= ~((uint64_t)1 << (st->st_ino % 64));
	pthread_mutex_unlock(&s->lock);
}

bool inodes_has(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	bool has = find_row(s, inode_key(s, st))->bits >> (st->st_ino % 64) & 1;
	pthread_mutex_unlock(&s->lock);
	return has;
}

/* Sets of names: a tree of tsearch(3). */

struct kept {
	dev_t dev;
	ino_t ino;
	struct name_list *list; /* NULL: it was taken */
};

static int compare_kept(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

void lists_keep(void **lists, int dir, struct name_list **list)
{
	struct stat st;
	if (!*list || fstat(dir, &st) < 0)
		return;
	struct kept *k = malloc(sizeof(*k));
	if (!k)
		return;
	*k = (struct kept){.dev = st.st_dev, .ino = st.st_ino};
	struct kept **found = (struct kept **)tsearch(k, lists, compare_kept);
	struct kept *of = found ? *found : NULL;
	if (of != k)
		free(k);
	if (of && !of->list) {
		of->list = *list;
		*list = NULL;
	}
}

struct name_list *lists_take(void **lists, int dir)
{
	struct stat st;
	if (!*lists || fstat(dir, &st) < 0)
		return NULL;
	const struct kept key = {.dev = st.st_dev, .ino = st.st_ino};
	struct kept **found = (struct kept **)tfind(&key, lists, compare_kept);
	struct name_list *list = found ? (*found)->list : NULL;
	if (found)
		(*found)->list = NULL;
	return list;
}

void lists_free(void **lists)
{
	while (*lists) {
		struct kept *k = *(struct kept **)*lists;
		tdelete(k, lists, compare_kept);
		if (k->list)
			names_free(k->list);
		free(k->list);
		free(k);
	}
}
