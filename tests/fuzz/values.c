/* SPDX-License-Identifier: MIT
 * Sizes, rates, numbers, times, shards, lists and modes, against a second opinion on what the text
 * says.
 */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The decimal number that text begins with, and how many digits it has; *whole is false, and the
 * number any, if it does not fit. */
static uint64_t digits(const char *text, size_t *length, bool *whole)
{
	uint64_t n = 0;
	size_t i = 0;
	*whole = true;
	for (; text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
			*whole = false;
	*length = i;
	return n;
}

/* The unit as a factor, from a list of all there are; 0: there is no such unit. */
static uint64_t unit(const char *name)
{
	static const char letters[] = "KkMGTPE";
	static const int powers[] = {1, 1, 2, 3, 4, 5, 6};
	static const char *const ends[] = {"", "iB", "B"};
	if (!*name)
		return 1;
	for (size_t i = 0; i < sizeof(powers) / sizeof(*powers); i++)
		for (int end = 0; end < 3; end++) {
			const char whole[] = {letters[i], '\0'};
			uint64_t factor = 1;
			if (strncmp(name, whole, 1) != 0 || strcmp(name + 1, ends[end]) != 0)
				continue;
			for (int power = 0; power < powers[i]; power++)
				factor *= end == 2 ? 1000 : 1024;
			return factor;
		}
	return 0;
}

static bool size_expected(const char *text, uint64_t *size)
{
	size_t length;
	bool whole;
	uint64_t n = digits(text, &length, &whole), factor = unit(text + length);
	return length > 0 && whole && factor != 0 && !__builtin_mul_overflow(n, factor, size);
}

/* Gives text to an option; whether it was taken. */
static bool give(struct cli *cli, const char *name, const char *text)
{
	const struct option_row *row = option_table;
	while (!row->name || strcmp(row->name, name) != 0)
		row++;
	*cli = (struct cli){0};
	said_begin();
	int status = row->set(cli, row, text);
	MUST(status == EXIT_DONE || status == EXIT_USAGE);
	MUST(said_anything() == (status == EXIT_USAGE));
	return status == EXIT_DONE;
}

static void check_sizes(const char *text)
{
	struct cli cli;
	uint64_t size, expected = 0;
	bool is_size = size_expected(text, &expected);
	MUST(size_parse(text, &size) == is_size);
	MUST(!is_size || size == expected);

	MUST(give(&cli, "limit-rate", text) == (is_size && expected >= 1));
	MUST(!is_size || cli.copy.limit_rate == expected);
	MUST(give(&cli, "size", text) == (is_size && expected >= 1));
	MUST(!is_size || cli.copy.expected_size == expected);
	bool fits = is_size && expected >= 1 && expected <= FCOPY_BUFFER_MAX;
	MUST(give(&cli, "buffer-size", text) == fits);
	MUST(cli.copy.buffer_size == (fits ? expected : 0));
}

static void check_numbers(const char *text)
{
	struct cli cli;
	size_t length;
	bool whole;
	uint64_t n = digits(text, &length, &whole);
	whole = whole && length > 0 && text[length] == '\0' && n >= 1;
	MUST(give(&cli, "threads", text) == (whole && n <= FCOPY_THREADS_MAX));
	MUST(cli.copy.threads == (whole && n <= FCOPY_THREADS_MAX ? n : 0));
	MUST(give(&cli, "max-clients", text) == (whole && n <= FCOPY_CLIENTS_MAX));
	MUST(cli.max_clients == (whole && n <= FCOPY_CLIENTS_MAX ? n : 0));
}

/* Decimal digits and a point, to the nearest millisecond; 0 only where 0 was meant. */
static void check_seconds(const char *text)
{
	struct cli cli;
	char *end;
	double seconds = strtod(text, &end);
	bool plain = text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
	for (const char *c = text; *c; c++)
		plain &= *c == '.' || (*c >= '0' && *c <= '9');
	bool is_number = plain && end != text && *end == '\0' && seconds <= 1000000;
	MUST(give(&cli, "timeout", text) == is_number);
	if (!is_number)
		return;
	int ms = cli.copy.timeout_ms;
	MUST(seconds > 0 ? ms >= 1 : ms == -1);
	MUST(seconds == 0 || ms == 1 || fabs(ms - seconds * 1000) <= 0.5);
}

/* I/N, finish/N and auto/N. The launcher does not say N, so `auto` alone is refused. */
static void check_shards(const char *text)
{
	struct fcopy_shard expected = {0};
	size_t length, end;
	bool whole_index = true, whole;
	const bool automatic = strncmp(text, "auto/", 5) == 0;
	const bool finish = strncmp(text, "finish/", 7) == 0;
	uint64_t index = automatic ? 3 : finish ? 0 : digits(text, &length, &whole_index);
	length = automatic ? 4 : finish ? 6 : length;
	const bool split = length > 0 && text[length] == '/';
	uint64_t count = digits(split ? text + length + 1 : "", &end, &whole);
	const bool good = split && end > 0 && text[length + 1 + end] == '\0' && whole_index &&
			  whole && count <= FCOPY_SHARDS_MAX && index < count;
	if (good)
		expected = (struct fcopy_shard){
		    .index = (unsigned)index, .count = (unsigned)count, .finish = finish};
	struct cli cli;
	setenv("PMIX_RANK", "3", 1);
	MUST(give(&cli, "shard", text) == good);
	const struct fcopy_shard *found = &cli.copy.shard;
	MUST(found->index == expected.index && found->count == expected.count);
	MUST(found->finish == expected.finish);
}

static void check_words(const char *text)
{
	struct cli cli;
	if (give(&cli, "sparse", text)) {
		static const char *const names[] = {[FCOPY_WHEN_AUTO] = "auto",
						    [FCOPY_WHEN_ALWAYS] = "always",
						    [FCOPY_WHEN_NEVER] = "never"};
		MUST(cli.copy.sparse != FCOPY_WHEN_DEFAULT);
		MUST(strcmp(text, names[cli.copy.sparse]) == 0);
	}
	if (give(&cli, "preserve", text)) {
		MUST(cli.copy.preserve != 0 || cli.tree.hard_links);
		MUST(cli.copy.preserve < FCOPY_ATTR_XATTR << 1);
		MUST((cli.copy.preserve_required & ~cli.copy.preserve) == 0);
		MUST(give(&cli, "no-preserve", text));
	}
}

/* The mode that text means, and the number of names that it has in the table. */
static void check_modes(const char *text)
{
	const struct fcopy_mode *mode = fcopy_mode_find(text), *named = NULL;
	size_t length;
	bool whole;
	uint64_t n = digits(text, &length, &whole);
	/* 04 may be the directory of a month. */
	bool numeric = length > 0 && text[length] == '\0' && (text[0] != '0' || length == 1);
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		if (numeric ? whole && n == (uint64_t)m->number
			    : strcmp(text, m->name) == 0 || (m->alias && !strcmp(text, m->alias)))
			named = m;
	MUST(mode == named);
	struct cli cli;
	MUST(give(&cli, "mode", text) == (mode != NULL));
	MUST(cli.copy.mode == mode);
	if (!mode)
		return;
	char number[16];
	snprintf(number, sizeof(number), "%d", mode->number);
	MUST(fcopy_mode_find(number) == mode);
	MUST(fcopy_mode_find(mode->name) == mode);
	MUST(!mode->alias || fcopy_mode_find(mode->alias) == mode);
}

/* What is suggested is there. */
static void check_suggestions(const char *text)
{
	const char *mode = suggest_mode(text), *option = suggest_option(option_table, text);
	MUST(!mode || fcopy_mode_find(mode));
	for (const struct option_row *row = option_table; option; row++) {
		MUST(!option_table_ends(row));
		if (row->name && strcmp(row->name, option) == 0)
			break;
	}
}

void values_check(const char *text)
{
	check_sizes(text);
	check_numbers(text);
	check_seconds(text);
	check_shards(text);
	check_words(text);
	check_modes(text);
	check_suggestions(text);
}
