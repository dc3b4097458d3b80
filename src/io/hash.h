/* SPDX-License-Identifier: MIT
 *
 * FNV-1a of 64 bits: every build of fcopy gets the same hash. It finds accidents, not forgeries.
 */
#ifndef IO_HASH_H
#define IO_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#endif
