/* SPDX-License-Identifier: MIT
 * A number of bytes in words.
 */
#include "util.h"

#include "io/amount.h"

#include <string.h>

#define K ((uint64_t)1024)
#define M (K * K)
#define G (K * M)

static const struct {
	uint64_t bytes;
	const char *text;
} amounts[] = {{0, "0 B"},
	       {1, "1 B"},
	       {999, "999 B"},
	       {1000, "1.0 KiB"},
	       {1023, "1.0 KiB"},
	       {K, "1.0 KiB"},
	       {K + K / 2, "1.5 KiB"},
	       {10 * K - 52, "9.9 KiB"},
	       {10 * K - 51, "10 KiB"},
	       {10 * K + K / 2 - 1, "10 KiB"},
	       {10 * K + K / 2, "11 KiB"},
	       {1000 * K - K / 2 - 1, "999 KiB"},
	       {1000 * K - K / 2, "1.0 MiB"},
	       {M, "1.0 MiB"},
	       {512 * M, "512 MiB"},
	       {G - 1, "1.0 GiB"},
	       {4 * G, "4.0 GiB"},
	       {K * G, "1.0 TiB"},
	       {M * G, "1.0 PiB"},
	       {UINT64_MAX, "16 EiB"}};

START_TEST(amount_is_three_digits_and_unit)
{
	char text[AMOUNT_MAX];
	amount_write(text, amounts[_i].bytes);
	check(strcmp(text, amounts[_i].text) == 0, "%ju bytes: '%s', not '%s'",
	      (uintmax_t)amounts[_i].bytes, text, amounts[_i].text);
}
END_TEST

/* Every number of bytes near a power of two, and near the limits of the units. */
START_TEST(amount_has_at_most_three_digits)
{
	for (int bit = 0; bit < 64; bit++)
		for (int thousand = 0; thousand < 2; thousand++)
			for (int near = -3; near <= 3; near++) {
				const uint64_t base = (uint64_t)(thousand ? 1000 : 1) << bit;
				char text[AMOUNT_MAX];
				amount_write(text, base + (uint64_t)near);
				const size_t digits = strspn(text, "0123456789.");
				check(digits >= 1 && digits <= 3 && text[digits] == ' ',
				      "%ju bytes: '%s'", (uintmax_t)(base + (uint64_t)near), text);
			}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("amount");
	TCase *c = add_case(s, "amount");
	tcase_add_loop_test(c, amount_is_three_digits_and_unit, 0,
			    sizeof(amounts) / sizeof(*amounts));
	tcase_add_test(c, amount_has_at_most_three_digits);
	return run_suite(s);
}
