/* SPDX-License-Identifier: MIT
 * A set of inodes: for each device, a hash table of bitmaps.
 */
#include "tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The place of a device in s->of, which is in order, or where it belongs. */
static size_t inodes_place(const struct inodes *s, dev_t dev)
{
	size_t from = 0, to = s->devices;
	while (from < to) {
		const size_t middle = (from + to) / 2;
		if (s->of[middle].dev < dev)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* NULL: it has no inode of this device. */
static struct table *inodes_rows(const struct inodes *s, dev_t dev)
{
	const size_t i = inodes_place(s, dev);
	return i < s->devices && s->of[i].dev == dev ? &s->of[i].rows : NULL;
}

/* NULL: there is no memory. */
static struct table *inodes_new_rows(struct inodes *s, dev_t dev)
{
	const size_t i = inodes_place(s, dev);
	struct inodes_of *of = realloc(s->of, (s->devices + 1) * sizeof(*of));
	if (!of)
		return NULL;
	s->of = of;
	memmove(&of[i + 1], &of[i], (s->devices++ - i) * sizeof(*of));
	of[i] = (struct inodes_of){.dev = dev};
	return &of[i].rows;
}

/* The row of 64 neighbouring inode numbers. An odd factor gives each of them another key. */
static uint64_t inodes_key(const struct stat *st)
{
	const uint64_t key = ((uint64_t)st->st_ino / 64 + 1) * 0x9e3779b97f4a7c15u;
	return key ^ key >> 32;
}

static uint64_t inodes_bit(const struct stat *st)
{
	return (uint64_t)1 << (st->st_ino % 64);
}

void inodes_free(struct inodes *s)
{
	pthread_mutex_destroy(&s->lock);
	for (size_t i = 0; i < s->devices; i++)
		table_free(&s->of[i].rows);
	free(s->of);
}

int inodes_add(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	struct table *rows = inodes_rows(s, st->st_dev);
	if (!rows)
		rows = inodes_new_rows(s, st->st_dev);
	struct table_row *row = rows ? table_add(rows, inodes_key(st)) : NULL;
	const int r = !row ? -ENOMEM : !(row->value & inodes_bit(st));
	if (row)
		row->value |= inodes_bit(st);
	pthread_mutex_unlock(&s->lock);
	return r;
}

static struct table_row *inodes_find(const struct inodes *s, const struct stat *st)
{
	const struct table *rows = inodes_rows(s, st->st_dev);
	return rows ? table_find(rows, inodes_key(st)) : NULL;
}

void inodes_remove(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	struct table_row *row = inodes_find(s, st);
	if (row)
		row->value &= ~inodes_bit(st);
	pthread_mutex_unlock(&s->lock);
}

bool inodes_has(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	const struct table_row *row = inodes_find(s, st);
	const bool has = row && row->value & inodes_bit(st);
	pthread_mutex_unlock(&s->lock);
	return has;
}

void claims_free(struct claims *c)
{
	for (int i = 0; i < SETS; i++)
		inodes_free(&c->set[i]);
	table_free(&c->spelled);
}
