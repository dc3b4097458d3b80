/* SPDX-License-Identifier: MIT
 * Implements known.h: open addressing, at most half full.
 */
#include "known.h"

#include <stdlib.h>

/* The slot of this key, or the free one where it belongs. */
static struct known *known_slot(const struct known_table *t, uint64_t key)
{
	size_t i = key & (t->slots - 1);
	while (t->slot[i].key && t->slot[i].key != key)
		i = (i + 1) & (t->slots - 1);
	return &t->slot[i];
}

struct known *known_find(const struct known_table *t, uint64_t key)
{
	struct known *k = t->slots ? known_slot(t, key ? key : 1) : NULL;
	return k && k->key ? k : NULL;
}

static bool known_grow(struct known_table *t)
{
	const struct known_table old = *t;
	struct known *more = calloc(old.slots ? 2 * old.slots : 1024, sizeof(*more));
	if (!more)
		return false;
	t->slot = more;
	t->slots = old.slots ? 2 * old.slots : 1024;
	for (size_t i = 0; i < old.slots; i++)
		if (old.slot[i].key)
			*known_slot(t, old.slot[i].key) = old.slot[i];
	free(old.slot);
	return true;
}

struct known *known_add(struct known_table *t, uint64_t key)
{
	if (2 * (t->used + 1) > t->slots && !known_grow(t))
		return NULL;
	struct known *k = known_slot(t, key ? key : 1);
	t->used += k->key == 0;
	k->key = key ? key : 1;
	return k;
}

void known_free(struct known_table *t)
{
	free(t->slot);
	*t = (struct known_table){NULL, 0, 0};
}
