/* SPDX-License-Identifier: MIT
 * Implements table.h.
 */
#include "table.h"

#include <stdlib.h>

#define ROWS ((size_t)1024) /* at first: a power of two */

/* The row of this key, or the free one where it belongs. */
static struct table_row *table_row(const struct table *t, uint64_t key)
{
	size_t i = key & (t->rows - 1);
	while (t->row[i].key && t->row[i].key != key)
		i = (i + 1) & (t->rows - 1);
	return &t->row[i];
}

struct table_row *table_find(const struct table *t, uint64_t key)
{
	struct table_row *found = t->rows ? table_row(t, key ? key : 1) : NULL;
	return found && found->key ? found : NULL;
}

static bool table_grow(struct table *t)
{
	struct table larger = {.rows = t->rows ? 2 * t->rows : ROWS, .used = t->used};
	larger.row = calloc(larger.rows, sizeof(*larger.row));
	if (!larger.row)
		return false;
	for (size_t i = 0; i < t->rows; i++)
		if (t->row[i].key)
			*table_row(&larger, t->row[i].key) = t->row[i];
	free(t->row);
	*t = larger;
	return true;
}

struct table_row *table_add(struct table *t, uint64_t key)
{
	if (2 * (t->used + 1) > t->rows && !table_grow(t))
		return NULL;
	struct table_row *row = table_row(t, key ? key : 1);
	t->used += row->key == 0;
	row->key = key ? key : 1;
	return row;
}

/* The rows after it that do not belong before the gap move into it. */
void table_remove(struct table *t, struct table_row *row)
{
	const size_t mask = t->rows - 1;
	size_t gap = (size_t)(row - t->row);
	for (size_t i = (gap + 1) & mask; t->row[i].key; i = (i + 1) & mask)
		if (((i - t->row[i].key) & mask) >= ((i - gap) & mask)) {
			t->row[gap] = t->row[i];
			gap = i;
		}
	t->row[gap] = (struct table_row){0};
	t->used--;
}

void table_free(struct table *t)
{
	free(t->row);
	*t = (struct table){NULL, 0, 0};
}
