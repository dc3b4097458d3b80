/* SPDX-License-Identifier: MIT
 * Implements sum.h: eight bytes at a time, by eight tables.
 */
#include "sum.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0xc96c5795d7870f42u

static uint64_t table[8][256]; /* table[i]: of a byte that i bytes follow */

static void make_tables(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		uint64_t x = byte;
		for (int bit = 0; bit < 8; bit++)
			x = x >> 1 ^ (x & 1 ? POLYNOMIAL : 0);
		table[0][byte] = x;
	}
	for (unsigned byte = 0; byte < 256; byte++)
		for (int i = 1; i < 8; i++)
			table[i][byte] = table[i - 1][byte] >> 8 ^
					 table[0][table[i - 1][byte] & 0xff];
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
		sum = table[7][sum & 0xff] ^ table[6][sum >> 8 & 0xff] ^
		      table[5][sum >> 16 & 0xff] ^ table[4][sum >> 24 & 0xff] ^
		      table[3][sum >> 32 & 0xff] ^ table[2][sum >> 40 & 0xff] ^
		      table[1][sum >> 48 & 0xff] ^ table[0][sum >> 56];
	}
	for (; n > 0; n--, b++)
		sum = sum >> 8 ^ table[0][(sum ^ *b) & 0xff];
	return ~sum;
}
