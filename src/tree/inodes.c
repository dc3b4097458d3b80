/* SPDX-License-Identifier: MIT
 * A set of inodes: a hash table of bitmaps.
 */
#include "tree.h"

#include <errno.h>

/* The row of 64 neighbouring inode numbers. An odd factor gives each of them another key. All
 * devices after the first INODES_DEVICES share an index: then two inodes with one number count as
 * one. */
static uint64_t inodes_key(struct inodes *s, const struct stat *st)
{
	unsigned i = 0;
	while (i < s->devices && s->device[i] != st->st_dev)
		i++;
	if (i == INODES_DEVICES)
		i--;
	else if (i == s->devices)
		s->device[s->devices++] = st->st_dev;
	const uint64_t key = (((uint64_t)st->st_ino / 64 ^ (uint64_t)i << 58) + 1) *
			     0x9e3779b97f4a7c15u;
	return key ^ key >> 32;
}

static uint64_t inodes_bit(const struct stat *st)
{
	return (uint64_t)1 << (st->st_ino % 64);
}

void inodes_free(struct inodes *s)
{
	pthread_mutex_destroy(&s->lock);
	table_free(&s->rows);
}

int inodes_add(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	struct table_row *row = table_add(&s->rows, inodes_key(s, st));
	const int r = !row ? -ENOMEM : !(row->value & inodes_bit(st));
	if (row)
		row->value |= inodes_bit(st);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void inodes_remove(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	struct table_row *row = table_find(&s->rows, inodes_key(s, st));
	if (row)
		row->value &= ~inodes_bit(st);
	pthread_mutex_unlock(&s->lock);
}

bool inodes_has(struct inodes *s, const struct stat *st)
{
	pthread_mutex_lock(&s->lock);
	const struct table_row *row = table_find(&s->rows, inodes_key(s, st));
	const bool has = row && row->value & inodes_bit(st);
	pthread_mutex_unlock(&s->lock);
	return has;
}

void claims_free(struct claims *c)
{
	for (int i = 0; i < SETS; i++)
		inodes_free(&c->set[i]);
}
