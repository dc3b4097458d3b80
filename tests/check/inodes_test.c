/* SPDX-License-Identifier: MIT
 * The set of inodes by which a merge recognises what it has made.
 */
#include "util.h"

#include "tree/inodes.h"

#include <stdlib.h>

#define NUMBERS 3000

static struct stat inode_of(unsigned dev, uint64_t ino)
{
	return (struct stat){.st_dev = dev, .st_ino = ino};
}

/* step: how far apart the numbers are; of two devices of the first, and of many of the last. */
START_TEST(remembers)
{
	static const uint64_t steps[] = {1, 63, 64, 4097, (uint64_t)1 << 32, 0x9e3779b97f4a7c15u};
	static const unsigned devices[] = {1, 2, 60};
	const uint64_t step = steps[_i % 6];
	const unsigned devs = devices[_i / 6];
	struct inodes *set = inodes_new();
	need(set);
	set_label("step %#llx, %u devices", (unsigned long long)step, devs);
	for (unsigned i = 0; i < NUMBERS; i++) {
		const struct stat st = inode_of(i % devs * 7, i / devs * step);
		check(!inodes_has(set, &st), "%u is there already", i);
		check(inodes_add(set, &st) == 1, "%u was there", i);
		check(inodes_add(set, &st) == 0, "%u was not there", i);
	}
	for (unsigned i = 0; i < NUMBERS; i++) {
		struct stat st = inode_of(i % devs * 7, i / devs * step);
		check(inodes_has(set, &st), "%u is gone", i);
		st.st_dev = 3;
		check(!inodes_has(set, &st), "%u is on another device, too", i);
	}
	/* Every other one is removed: those that are left are still found, and each can come back.
	 */
	for (unsigned i = 0; i < NUMBERS; i += 2) {
		const struct stat st = inode_of(i % devs * 7, i / devs * step);
		inodes_remove(set, &st);
		inodes_remove(set, &st);
	}
	for (unsigned i = 0; i < NUMBERS; i++) {
		const struct stat st = inode_of(i % devs * 7, i / devs * step);
		check(inodes_has(set, &st) == (i % 2 == 1), "%u after the removal", i);
		check(inodes_add(set, &st) == (i % 2 == 0), "%u is added again", i);
	}
	inodes_free(set);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inodes");
	TCase *c = add_case(s, "inodes");
	tcase_add_loop_test(c, remembers, 0, 18);
	return run_suite(s);
}
