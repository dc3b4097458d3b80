/* SPDX-License-Identifier: MIT
 * The words of journals and lists: each is read as it was written, and whatever cannot have been
 * written is wrong.
 */
#include "util.h"

#include "io/words.h"

#include <string.h>

static const struct {
	intmax_t n;
	unsigned base, digits;
	const char *text;
} written[] = {
    {0, 10, 0, ";"},
    {0, 10, 1, "0;"},
    {7, 10, 1, "7;"},
    {10, 10, 1, "10;"},
    {10, 10, 2, "10;"},
    {7, 10, 9, "000000007;"},
    {-1, 10, 1, "-1;"},
    {-90, 10, 3, "-090;"},
    {0644, 8, 1, "644;"},
    {8, 8, 4, "0010;"},
    {INTMAX_MAX, 10, 1, "9223372036854775807;"},
    {INTMAX_MIN, 10, 1, "-9223372036854775808;"},
    {INTMAX_MAX, 8, 1, "777777777777777777777;"},
};
#define WRITTEN (sizeof(written) / sizeof(*written))

START_TEST(numbers_are_written_with_sign_and_digits)
{
	char text[32] = "";
	*words_put(text, written[_i].n, written[_i].base, written[_i].digits, ';') = '\0';
	set_label("%jd", written[_i].n);
	check(strcmp(text, written[_i].text) == 0, "%s, not %s", text, written[_i].text);
	if (written[_i].n < 0)
		return;
	*words_put_unsigned(text, (uintmax_t)written[_i].n, written[_i].base, written[_i].digits,
			    ';') = '\0';
	check(strcmp(text, written[_i].text) == 0, "unsigned: %s, not %s", text, written[_i].text);
}
END_TEST

static struct words words_of(const char *text)
{
	return (struct words){.at = text, .end = text + strlen(text)};
}

/* After a word that is right, `left` is what follows it. */
static const struct {
	const char *text;
	char stop;
	int base;
	intmax_t n;
	const char *left; /* NULL: the word is wrong */
} numbers[] = {
    {"0", ' ', 10, 0, ""},
    {"0 ", ' ', 10, 0, ""},
    {"12 3", ' ', 10, 12, "3"},
    {"9 9", ' ', 10, 9, "9"},
    {"12.3", '.', 10, 12, "3"},
    {"-5 x", ' ', 10, -5, "x"},
    {"007 ", ' ', 10, 7, ""},
    {"100644 1", ' ', 8, 0100644, "1"},
    {"9223372036854775807", ' ', 10, INTMAX_MAX, ""},
    {"-9223372036854775807", ' ', 10, -INTMAX_MAX, ""},
    {"9223372036854775808", ' ', 10, 0, NULL},
    {"99999999999999999999", ' ', 10, 0, NULL},
    {"92233720368547758070 ", ' ', 10, 0, NULL},
    {"", ' ', 10, 0, NULL},
    {" 1", ' ', 10, 0, NULL},
    {"-", ' ', 10, 0, NULL},
    {"- ", ' ', 10, 0, NULL},
    {"--1", ' ', 10, 0, NULL},
    {"+1", ' ', 10, 0, NULL},
    {"1x", ' ', 10, 0, NULL},
    {"1.", ' ', 10, 0, NULL},
    {"1 ", '.', 10, 0, NULL},
    {"8 ", ' ', 8, 0, NULL},
    {"78 ", ' ', 8, 0, NULL},
    {"1:", ' ', 10, 0, NULL},
    {"1/", ' ', 10, 0, NULL},
};
#define NUMBERS (sizeof(numbers) / sizeof(*numbers))

START_TEST(numbers_are_read_as_they_were_written)
{
	struct words w = words_of(numbers[_i].text);
	const intmax_t n = words_number(&w, numbers[_i].stop, numbers[_i].base);
	set_label("'%s'", numbers[_i].text);
	check(w.wrong == !numbers[_i].left, "wrong: %d", w.wrong);
	check(w.at <= w.end, "past the end");
	if (w.wrong)
		return;
	check(n == numbers[_i].n, "%jd", n);
	check(strcmp(w.at, numbers[_i].left) == 0, "left: '%s'", w.at);
	if (n < 0 || numbers[_i].stop != ' ' || numbers[_i].base != 10)
		return;
	w = words_of(numbers[_i].text);
	check(words_unsigned(&w) == (uintmax_t)n && !w.wrong, "unsigned");
	check(strcmp(w.at, numbers[_i].left) == 0, "unsigned, left: '%s'", w.at);
}
END_TEST

static const struct {
	const char *text;
	uintmax_t n;
	bool wrong;
} unsigneds[] = {
    {"18446744073709551615", UINTMAX_MAX, false},
    {"18446744073709551616", 0, true},
    {"99999999999999999999 ", 0, true},
    {"184467440737095516150", 0, true},
    {"-1", 0, true},
    {"", 0, true},
    {" ", 0, true},
    {"1a", 0, true},
    {"1:", 0, true},
    {"1/", 0, true},
};
#define UNSIGNEDS (sizeof(unsigneds) / sizeof(*unsigneds))

START_TEST(numbers_without_sign_have_their_own_bounds)
{
	struct words w = words_of(unsigneds[_i].text);
	const uintmax_t n = words_unsigned(&w);
	set_label("'%s'", unsigneds[_i].text);
	check(w.wrong == unsigneds[_i].wrong, "wrong: %d", w.wrong);
	check(w.wrong || n == unsigneds[_i].n, "%ju", n);
}
END_TEST

/* A wrong word makes the line wrong for good. */
START_TEST(right_words_after_a_wrong_one_repair_nothing)
{
	struct words w = words_of("x 1 2 3.000000000 a");
	size_t length;
	words_number(&w, ' ', 10);
	w.at = strchr(w.end - strlen("x 1 2 3.000000000 a"), '1');
	words_number(&w, ' ', 10);
	check(w.wrong, "number");
	words_unsigned(&w);
	check(w.wrong, "unsigned");
	words_time(&w);
	check(w.wrong, "time");
	words_text(&w, &length);
	check(w.wrong, "text");
}
END_TEST

static const struct {
	const char *text;
	struct timespec t;
	bool wrong;
} times[] = {
    {"0.000000000 ", {0, 0}, false},
    {"12.000000034 ", {12, 34}, false},
    {"-3.999999999 ", {-3, 999999999}, false},
    {"1764300000.500000000 ", {1764300000, 500000000}, false},
    {"1.1000000000 ", {0, 0}, true},
    {"1.-00000001 ", {0, 0}, true},
    {"1 ", {0, 0}, true},
    {".5 ", {0, 0}, true},
    {"1. ", {0, 0}, true},
    {"1.5.5 ", {0, 0}, true},
};
#define TIMES (sizeof(times) / sizeof(*times))

START_TEST(times_have_nine_digits)
{
	char text[64];
	struct words w = words_of(times[_i].text);
	const struct timespec t = words_time(&w);
	set_label("'%s'", times[_i].text);
	check(w.wrong == times[_i].wrong, "wrong: %d", w.wrong);
	if (w.wrong)
		return;
	check(t.tv_sec == times[_i].t.tv_sec && t.tv_nsec == times[_i].t.tv_nsec, "%jd.%09ld",
	      (intmax_t)t.tv_sec, t.tv_nsec);
	*words_put_time(text, &times[_i].t) = '\0';
	check(strcmp(text, times[_i].text) == 0, "written: '%s'", text);
}
END_TEST

START_TEST(words_are_separated_by_one_space)
{
	const char text[] = "one two  four";
	static const size_t lengths[] = {3, 3, 0, 4, 0};
	static const size_t starts[] = {0, 4, 8, 9, 13};
	struct words w = words_of(text);
	for (size_t i = 0; i < 5; i++) {
		size_t length = 99;
		const char *word = words_text(&w, &length);
		set_label("word %zu", i);
		check(length == lengths[i], "%zu bytes", length);
		check(word == text + starts[i], "at %td", word - text);
		check(w.wrong == (length == 0), "wrong: %d", w.wrong);
		w.wrong = false;
	}
}
END_TEST

/* Each byte but the null byte, alone and between others, comes back. */
START_TEST(names_are_read_as_they_were_written)
{
	for (unsigned c = 1; c < 256; c++) {
		const char name[] = {'a', (char)c, (char)c, '7', '\0'};
		const bool plain = c > ' ' && c != '\\' && c != 0x7f;
		char text[32], back[32];
		bool wrong = false;
		const size_t n = (size_t)(words_put_name(text, name, 4) - text);
		set_label("byte %#x", c);
		check(n == (plain ? 4 : 10), "%zu bytes", n);
		check(memchr(text, ' ', n) == NULL && memchr(text, '\n', n) == NULL, "a separator");
		check(words_name(text, n, back, &wrong) == 4 && !wrong, "wrong: %d", wrong);
		check(memcmp(back, name, 5) == 0, "'%s'", back);
		text[n] = '\0';
		check(words_name(text, n, text, &wrong) == 4 && memcmp(text, name, 5) == 0,
		      "in place: '%s'", text);
	}
}
END_TEST

static const struct {
	const char *text, *name;
	bool wrong;
} names[] = {
    {"", "", false},
    {"\\101", "A", false},
    {"\\101\\102", "AB", false},
    {"\\0011", "\0011", false},
    {"\\377x", "\377x", false},
    {"\\400", "\\400", true},
    {"\\000", "\\000", true},
    {"\\", "\\", true},
    {"\\1", "\\1", true},
    {"\\18", "\\18", true},
    {"\\181", "\\181", true},
    {"\\118", "\\118", true},
    {"\\811", "\\811", true},
    {"\\/11", "\\/11", true},
    {"\\11", "\\11", true},
    {"a\\101", "aA", false},
};
#define NAMES (sizeof(names) / sizeof(*names))

START_TEST(broken_escapes_are_wrong)
{
	char name[16];
	bool wrong = false;
	const size_t size = strlen(names[_i].text);
	set_label("'%s'", names[_i].text);
	check(words_name(names[_i].text, size, name, &wrong) == strlen(names[_i].name), "length");
	check(wrong == names[_i].wrong, "wrong: %d", wrong);
	check(strcmp(name, names[_i].name) == 0, "'%s'", name);
	/* What follows the text is not read: here, the rest of an escape. */
	wrong = false;
	check(words_name("\\101", 3, name, &wrong) == 3 && wrong, "reads past the end");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("words");
	TCase *c = add_case(s, "words");
	tcase_add_loop_test(c, numbers_are_written_with_sign_and_digits, 0, WRITTEN);
	tcase_add_loop_test(c, numbers_are_read_as_they_were_written, 0, NUMBERS);
	tcase_add_loop_test(c, numbers_without_sign_have_their_own_bounds, 0, UNSIGNEDS);
	tcase_add_test(c, right_words_after_a_wrong_one_repair_nothing);
	tcase_add_loop_test(c, times_have_nine_digits, 0, TIMES);
	tcase_add_test(c, words_are_separated_by_one_space);
	tcase_add_test(c, names_are_read_as_they_were_written);
	tcase_add_loop_test(c, broken_escapes_are_wrong, 0, NAMES);
	return run_suite(s);
}
