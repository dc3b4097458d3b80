/* SPDX-License-Identifier: MIT
 *
 * Hashes, a checksum, and a table of hashes.
 */
#ifndef IO_HASH_H
#define IO_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* FNV-1a of 64 bits: every build of fcopy gets the same hash. It finds accidents, not forgeries. */

#define HASH_START 0xcbf29ce484222325u
static inline uint64_t hash_add(uint64_t hash, const void *bytes, size_t n)
{
	for (const unsigned char *b = bytes; n > 0; n--, b++)
		hash = (hash ^ *b) * 0x100000001b3u;
	return hash;
}

/* Some bits of FNV-1a do not depend on the last byte. */
static inline uint64_t hash_mix(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdu;
	return hash ^ hash >> 33;
}

/* Of which sums are made. */
static inline uint64_t hash_name(const char *name)
{
	return hash_mix(hash_add(HASH_START, name, strlen(name)));
}

/* A checksum of bytes that pass only once, for --verify of a stream: CRC-64 with the polynomial of
 * ECMA-182, reflected. Verification has to find faults of memory, cables and disks, not forgeries.
 * A CRC of 64 bits finds every change that lies within 64 consecutive bits; it misses one of 2^64
 * other changes. A CRC-32 would miss one of 2^32. A cryptographic hash would need a library, and
 * several times as much CPU time where the CPU has no instructions for it. Returns the sum of
 * `sum`'s bytes followed by n more; 0 is the sum of no bytes. */
uint64_t sum_add(uint64_t sum, const void *bytes, size_t n);

/* A hash table of numbers: open addressing, at most half full. A key is a hash of what it stands
 * for. Two things may have one key: the caller compares them where that matters. */

struct table_row {
	uint64_t key; /* 0: the row is free */
	uint64_t value;
	unsigned mark; /* the caller's */
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
