/* SPDX-License-Identifier: MIT
 * A number of bytes in words, and a duration.
 */
#include "util.h"

#include "io/amount.h"
#include "show/text.h"

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

static const struct {
	uint64_t us;
	const char *text;
} durations[] = {{0, "0 us"},           {87, "87 us"},      {999, "999 us"},    {1000, "1.0 ms"},
		 {1049, "1.0 ms"},      {1050, "1.1 ms"},   {7890, "7.9 ms"},   {9949, "9.9 ms"},
		 {9950, "10 ms"},       {10499, "10 ms"},   {10500, "11 ms"},   {999499, "999 ms"},
		 {999500, "1.0 s"},     {2340000, "2.3 s"}, {9949999, "9.9 s"}, {9950000, "10 s"},
		 {3600000000, "3600 s"}};

START_TEST(duration_is_three_digits_and_unit)
{
	struct text t;
	text_clear(&t);
	text_duration_brief(&t, durations[_i].us);
	check(strcmp(t.at, durations[_i].text) == 0, "%ju us: '%s', not '%s'",
	      (uintmax_t)durations[_i].us, t.at, durations[_i].text);
}
END_TEST

/* A range has the unit and the decimals of its median. */
START_TEST(duration_has_the_unit_of_another_one)
{
	struct text t;
	text_clear(&t);
	text_duration_in_unit(&t, 990, 1200);
	text_add(&t, "-");
	text_duration_in_unit(&t, 12340, 1200);
	text_add(&t, " ");
	text_duration_in_unit(&t, 9000, 10000);
	ck_assert_str_eq(t.at, "1.0-12.3 9");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("amount");
	TCase *c = add_case(s, "amount");
	tcase_add_loop_test(c, amount_is_three_digits_and_unit, 0,
			    sizeof(amounts) / sizeof(*amounts));
	tcase_add_test(c, amount_has_at_most_three_digits);
	tcase_add_loop_test(c, duration_is_three_digits_and_unit, 0,
			    sizeof(durations) / sizeof(*durations));
	tcase_add_test(c, duration_has_the_unit_of_another_one);
	return run_suite(s);
}
