/* SPDX-License-Identifier: MIT
 * Patterns and lists of names without memory: a filter is whole, or an error. With none, everything
 * would be copied, and a mirror would remove what is excluded.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "source/filter.h"

#include <errno.h>
#include <string.h>

static const struct fcopy_pattern patterns[] = {{"*.o", false}, {"/a/", false}};
static const char *const names[] = {"b/c", "d"};

static void once(void *arg)
{
	struct fcopy_tree_options o = {.patterns = patterns, .pattern_count = 2};
	struct filter *f = NULL;
	size_t bad;
	if (arg) {
		o.files = names;
		o.file_count = 2;
	}
	fault_on();
	int r = filter_new(&f, &o, &bad);
	fault_off();
	assert_int_equal(r, fault_seen() ? -ENOMEM : 0);
	assert_int_equal(f != NULL, !fault_seen());
	if (!f)
		return;
	assert_true(filter_excludes(f, "b/x.o", false) && filter_excludes(f, "a", true));
	assert_false(filter_excludes(f, "b", true));
	assert_int_equal(filter_excludes(f, "e", false), arg != NULL);
	filter_free(f);
}

static void without_memory(void **state)
{
	/* The filter, the patterns, the names, and which of them were found. */
	assert_int_equal(fault_sweep("calloc", ENOMEM, once, *state), 4);
}

/* A path that does not fit is never matched half. */
static void long_paths(void **state)
{
	const struct fcopy_pattern p = {"*z", false};
	const struct fcopy_tree_options o = {.patterns = &p, .pattern_count = 1};
	static char path[FCOPY_PATH_MAX + 1];
	struct filter *f;
	size_t bad;
	(void)state;
	assert_int_equal(filter_new(&f, &o, &bad), 0);
	for (size_t n = FCOPY_PATH_MAX - 1; n <= FCOPY_PATH_MAX; n++) {
		memset(path, 'y', n);
		path[n - 1] = 'z';
		assert_int_equal(filter_excludes(f, path, false), n < FCOPY_PATH_MAX);
	}
	filter_free(f);
}

int main(void)
{
	cases_enter("tmpfs");
	case_add(without_memory, NULL, "patterns: calloc fails with ENOMEM");
	case_add(without_memory, names, "names: calloc fails with ENOMEM");
	case_add(long_paths, NULL, "a path that is too long is not excluded");
	return cases_run("filter");
}
