/* SPDX-License-Identifier: MIT
 * A thread that may copy no more hands over what it has left, before each entry of a tree: other
 * threads copy each entry, once.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "tree/pool.h"

#include "fcopy.h"

#include <stdio.h>
#include <sys/stat.h>

#define DIRECTORIES 3
#define LEVELS      2
#define FILES       3 /* of each directory */
#define ALL         (1 + DIRECTORIES * LEVELS)

bool __real_pool_dismissed(const struct worker *);
bool __wrap_pool_dismissed(const struct worker *);

bool __wrap_pool_dismissed(const struct worker *w)
{
	return fault_strikes("pool_dismissed") || __real_pool_dismissed(w);
}

static void make_directory(const char *top)
{
	char name[64];
	need(mkdir(top, 0755) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%s/file %d", top, i);
		make_file(name, 100 + i, DENSE, (unsigned)i);
	}
}

static void check_directory(const char *top)
{
	char name[64], copy[64];
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "src%s/file %d", top, i);
		snprintf(copy, sizeof(copy), "dst%s/file %d", top, i);
		assert_true(exists(copy));
		assert_true(same_bytes(name, copy));
	}
}

static void copy_once(void *arg)
{
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = {.copy = {.api = FCOPY_API, .no_directory = true},
						   .recursive = true};
	const char *src = "src";
	(void)arg;
	fault_on();
	const int r = fcopy_tree(&src, 1, "dst", &options, &report);
	fault_off();
	assert_int_equal(r, 0);
	assert_int_equal(report.count[FCOPY_COUNT_FILES], ALL * FILES);
	assert_int_equal(report.count[FCOPY_COUNT_DIRECTORIES], ALL);
	char top[32] = "";
	check_directory(top);
	for (int i = 0; i < DIRECTORIES; i++) {
		snprintf(top, sizeof(top), "/%d", i);
		check_directory(top);
		snprintf(top, sizeof(top), "/%d/below", i);
		check_directory(top);
	}
	remove_all("dst");
}

static void hands_over(void **state)
{
	(void)state;
	char name[32];
	make_directory("src");
	for (int i = 0; i < DIRECTORIES; i++) {
		snprintf(name, sizeof(name), "src/%d", i);
		make_directory(name);
		snprintf(name, sizeof(name), "src/%d/below", i);
		make_directory(name);
	}
	fault_sweep("pool_dismissed", 0, copy_once, NULL);
}

int main(void)
{
	cases_enter("tmpfs");
	case_add(hands_over, NULL, "a thread hands over what it has left, before each entry");
	return cases_run("handing");
}
