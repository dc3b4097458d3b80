/* SPDX-License-Identifier: MIT
 * The set of inodes by which a merge recognises what it has made, and the hash table that it and
 * the rows of hard links are in.
 */
#include "util.h"

#include "tree/tree.h"

#include <stdlib.h>
#include <string.h>

#define NUMBERS 3000

static struct stat numbered(unsigned dev, uint64_t ino)
{
	return (struct stat){.st_dev = dev, .st_ino = ino};
}

/* step: how far apart the numbers are; of two devices of the first, and of many of the last. */
START_TEST(remembers)
{
	static const uint64_t steps[] = {1, 63, 64, 4097, (uint64_t)1 << 32, 0x9e3779b97f4a7c15u};
	static const unsigned devices[] = {1, 2, 60, 200};
	const uint64_t step = steps[_i % 6];
	const unsigned devs = devices[_i / 6];
	struct inodes inodes = INODES_EMPTY, *set = &inodes;
	set_label("step %#llx, %u devices", (unsigned long long)step, devs);
	for (unsigned i = 0; i < NUMBERS; i++) {
		const struct stat st = numbered(i % devs * 7, i / devs * step);
		check(!inodes_has(set, &st), "%u is there already", i);
		check(inodes_add(set, &st) == 1, "%u was there", i);
		check(inodes_add(set, &st) == 0, "%u was not there", i);
	}
	for (unsigned i = 0; i < NUMBERS; i++) {
		struct stat st = numbered(i % devs * 7, i / devs * step);
		check(inodes_has(set, &st), "%u is gone", i);
		st.st_dev = 3;
		check(!inodes_has(set, &st), "%u is on another device, too", i);
	}
	/* Every other one is removed: those that are left are still found, and each can come back.
	 */
	for (unsigned i = 0; i < NUMBERS; i += 2) {
		const struct stat st = numbered(i % devs * 7, i / devs * step);
		inodes_remove(set, &st);
		inodes_remove(set, &st);
	}
	for (unsigned i = 0; i < NUMBERS; i++) {
		const struct stat st = numbered(i % devs * 7, i / devs * step);
		check(inodes_has(set, &st) == (i % 2 == 1), "%u after the removal", i);
		check(inodes_add(set, &st) == (i % 2 == 0), "%u is added again", i);
	}
	inodes_free(set);
}
END_TEST

/* Few different keys, so that many rows belong into one place; in any order they are found as long
 * as they are in the table, and nothing else is. */
START_TEST(table_finds_what_is_left)
{
	enum { KEYS = 4096 };
	static uint64_t value[KEYS];
	struct table t = {0};
	uint64_t random = 88172645463325252u + (uint64_t)_i;
	size_t used = 0;
	memset(value, 0, sizeof(value));
	for (unsigned n = 1; n < 60000; n++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		const unsigned i = (unsigned)(random % KEYS);
		const uint64_t key = (uint64_t)(i + 1) << (_i * 5);
		struct table_row *row = table_find(&t, key);
		check((row != NULL) == (value[i] != 0), "key %u: %p", i, (void *)row);
		check(!row || row->value == value[i], "key %u has another value", i);
		if (row) {
			table_remove(&t, row);
			value[i] = 0;
			used--;
		} else if ((row = table_add(&t, key))) {
			row->value = value[i] = n;
			used++;
		}
		check(t.used == used, "%zu rows, not %zu", t.used, used);
	}
	table_free(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inodes");
	TCase *c = add_case(s, "inodes");
	tcase_add_loop_test(c, remembers, 0, 24);
	tcase_add_loop_test(c, table_finds_what_is_left, 0, 4);
	return run_suite(s);
}
