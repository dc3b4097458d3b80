/* SPDX-License-Identifier: MIT
 * Implements hash.h.
 */
#include "hash.h"

#include <endian.h>
#include <pthread.h>
#include <stdlib.h>

/* The checksum: eight bytes at a time, by eight tables. */

#define POLYNOMIAL 0xc96c5795d7870f42u

static uint64_t crc[8][256]; /* crc[i]: of a byte that i bytes follow */

static void make_tables(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		uint64_t x = byte;
		for (int bit = 0; bit < 8; bit++)
			x = x >> 1 ^ (x & 1 ? POLYNOMIAL : 0);
		crc[0][byte] = x;
	}
	for (unsigned byte = 0; byte < 256; byte++)
		for (int i = 1; i < 8; i++)
			crc[i][byte] = crc[i - 1][byte] >> 8 ^ crc[0][crc[i - 1][byte] & 0xff];
}

uint64_t sum_add(uint64_t sum, const void *bytes, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const unsigned char *b = bytes;
	pthread_once(&once, make_tables);
	sum = ~sum;
	for (; n >= 8; n -= 8, b += 8) {
		uint64_t word;
		memcpy(&word, b, 8);
		sum ^= le64toh(word);
		sum = crc[7][sum & 0xff] ^ crc[6][sum >> 8 & 0xff] ^ crc[5][sum >> 16 & 0xff] ^
		      crc[4][sum >> 24 & 0xff] ^ crc[3][sum >> 32 & 0xff] ^
		      crc[2][sum >> 40 & 0xff] ^ crc[1][sum >> 48 & 0xff] ^ crc[0][sum >> 56];
	}
	for (; n > 0; n--, b++)
		sum = sum >> 8 ^ crc[0][(sum ^ *b) & 0xff];
	return ~sum;
}

/* The table. */

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
