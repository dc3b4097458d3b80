/* SPDX-License-Identifier: MIT
 *
 * A number of bytes in words, the same in every message: at most three digits and the unit, a power
 * of 1024: "512 B", "9.5 MiB", "512 MiB". A header only, because the library exports no function
 * for it. A signal handler may call these functions.
 */
#ifndef IO_AMOUNT_H
#define IO_AMOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AMOUNT_MAX 32 /* bytes of a text, with its null byte */

/* The unit in which the number has at most three digits, also if it is rounded up, as a power of
 * 1024. */
static inline unsigned amount_unit(uint64_t bytes)
{
	unsigned unit = 0;
	while (unit == 0 ? bytes >= 1000 : bytes >> (10 * unit - 1) >= 1999) /* 999.5 */
		unit++;
	return unit;
}

static inline const char *amount_unit_name(unsigned unit)
{
	static const char *const names[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
	return names[unit];
}

/* Has it one decimal in that unit? */
static inline bool amount_has_decimal(uint64_t bytes, unsigned unit)
{
	return unit > 0 && bytes >> (10 * unit) < 10;
}

static inline char *amount_write_number(char *to, uint64_t n)
{
	char digit[20];
	size_t at = sizeof(digit);
	do {
		digit[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	memcpy(to, digit + at, sizeof(digit) - at);
	return to + sizeof(digit) - at;
}

/* Without the name of the unit; rounded up from a half (nearest), or down. */
static inline void amount_write_digits(char text[AMOUNT_MAX], uint64_t bytes, unsigned unit,
				       bool decimal, bool nearest)
{
	uint64_t whole = bytes >> (10 * unit);
	uint64_t part = unit > 0 ? bytes >> (10 * (unit - 1)) & 1023 : 0; /* of 1024 */
	uint64_t tenths = (part * 10 + (nearest ? 512 : 0)) / 1024;
	if (unit > 0 && decimal && whole + tenths / 10 < 10) {
		text = amount_write_number(text, whole + tenths / 10);
		*text++ = '.';
		text = amount_write_number(text, tenths % 10);
	} else {
		text = amount_write_number(text, whole + (nearest && part >= 512));
	}
	*text = '\0';
}

static inline void amount_write(char text[AMOUNT_MAX], uint64_t bytes)
{
	const unsigned unit = amount_unit(bytes);
	amount_write_digits(text, bytes, unit, amount_has_decimal(bytes, unit), true);
	strcat(text, amount_unit_name(unit));
}

#endif
