/* SPDX-License-Identifier: MIT
 *
 * A table of hashes: what is known of the thing that has this one.
 */
#ifndef SHARD_KNOWN_H
#define SHARD_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known {
	uint64_t key; /* 0: free */
	uint64_t value;
	void *what;
	bool seen;
};

struct known_table {
	struct known *slot;
	size_t slots, used;
};

/* Returns NULL if there is none. */
struct known *known_find(const struct known_table *, uint64_t key);
/* Returns the one with this key, perhaps a new one of value 0, or NULL without memory. It is valid
 * until the next call. */
struct known *known_add(struct known_table *, uint64_t key);
void known_free(struct known_table *);

#endif
