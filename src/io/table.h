/* SPDX-License-Identifier: MIT
 *
 * A hash table of numbers: open addressing, at most half full. A key is a hash of what it stands
 * for. Two things may have one key: the caller compares them where that matters.
 */
#ifndef IO_TABLE_H
#define IO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_row {
	uint64_t key; /* 0: the row is free */
	uint64_t value;
	bool mark;
};

/* Starts as zeros. */
struct table {
	struct table_row *row;
	size_t rows, used;
};

/* Returns NULL if there is none. The row moves when another one is added. */
struct table_row *table_find(const struct table *, uint64_t key);
/* Returns the row of this key, which may be a new one of zeros; NULL: there is no memory. */
struct table_row *table_add(struct table *, uint64_t key);
/* Removes a row of the table. Others may move. */
void table_remove(struct table *, struct table_row *);
void table_free(struct table *);

#endif
