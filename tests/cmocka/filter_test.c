/* SPDX-License-Identifier: MIT
 * Patterns and lists of names without memory: a filter is whole, or an error. With none, everything
 * would be copied, and a mirror would remove what is excluded. The same for the names in a
 * directory.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "source/filter.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
	/* The filter, the patterns, the names, and which of them were found; two for the wildcard.
	 */
	assert_int_equal(fault_sweep("calloc", ENOMEM, once, *state), 6);
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

static bool excludes(const char *pattern, const char *path)
{
	const struct fcopy_pattern p = {pattern, false};
	const struct fcopy_tree_options o = {.patterns = &p, .pattern_count = 1};
	struct filter *f;
	size_t bad;
	assert_int_equal(filter_new(&f, &o, &bad), 0);
	bool r = filter_excludes(f, path, false);
	filter_free(f);
	return r;
}

/* The places in a pattern are kept 64 at a time: each length around that, with each kind of place
 * at the seam. */
static void long_patterns(void **state)
{
	static const char *const kinds[] = {"a", "?", "[a]", "\\a", "*a", "**a", "a*", "a**"};
	char pattern[512], path[256];
	(void)state;
	for (size_t n = 60; n < 70; n++) {
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			memset(pattern, 'x', n);
			strcpy(stpcpy(pattern + n, kinds[k]), "*y");
			memset(path, 'x', n);
			strcpy(path + n, "azy");
			assert_true(excludes(pattern, path));
			path[n] = 'b';
			assert_true(excludes(pattern, path) == (strcmp(kinds[k], "?") == 0));
			strcpy(path + n, "x/y");
			assert_false(excludes(pattern, path));
		}
	}
	memset(pattern, '?', 200);
	strcpy(pattern + 200, "**/z");
	memset(path, 'x', 199);
	strcpy(path + 199, "y/b/z");
	assert_true(excludes(pattern, path));
	assert_false(excludes(pattern, path + 1));
}

/* Only a closing bracket ends brackets: not one that is part of a class, quoted, or the first. */
static void brackets(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} cases[] = {
	    {"[[:digit:]]*", "7z", true}, {"[[:digit:]]*", "a", false}, {"[]x]", "]", true},
	    {"[!]x]", "]", false},        {"[!]x]", "y", true},         {"[[.].]]z", "]z", true},
	    {"[[=a=]]z", "az", true},     {"[\\]x]", "]", true},        {"[x", "[x", true},
	    {"*[x", "a[x", true},         {"[a-c]?", "b/", false},      {"[^a]", "/", false},
	    {"[**]z", "*z", true},        {"a\\", "a\\", true},         {"*\\/b", "a/b", true},
	    {"x[a*", "x[abc", true},      {"[\\]]", "]", true},         {"[!\\]]", "]", false},
	    {"[!\\]]", "x", true},        {"[a\\-c]", "b", false},      {"[a\\-c]", "-", true},
	    {"[\\a-c]", "b", true},       {"[a-\\c]", "b", true},       {"[\\!a]", "!", true},
	    {"?\\", "a", false},          {"?\\", "a\\", false},        {"[\\^a]", "b", false},
	    {"[\\\\]", "\\", true},       {"[!\\]a]", "a", false},      {"[!\\]]", "/", false},
	    {"[]\\x]", "]", true},        {"[]\\x]", "x", true},        {"[\\a!b]", "b", true},
	    {"[\\a!b]", "!", true},       {"[\\a^]", "c", false},       {"[!\\a!b]", "!", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if ((HAS_LOCALES || !strpbrk(cases[i].pattern, ".=")) && /* [.x.] and [=x=] */
		    excludes(cases[i].pattern, cases[i].path) != cases[i].matches)
			fail_msg("%s and %s", cases[i].pattern, cases[i].path);
}

/* Not recursive: a directory in the list brings nothing that is below it. */
static void directory_and_below(void **state)
{
	static const char *const listed[] = {"b", "b/c", "b!", "b/c/d", "c"};
	const size_t count = sizeof(listed) / sizeof(*listed);
	struct fcopy_tree_options o = {.files = listed};
	struct filter *f;
	size_t bad;
	(void)state;
	for (o.file_count = 1; o.file_count <= count; o.file_count++) {
		assert_int_equal(filter_new(&f, &o, &bad), 0);
		for (size_t i = 0; i < o.file_count; i++)
			assert_false(filter_excludes(f, listed[i], false));
		assert_true(filter_excludes(f, "b/d", false));
		assert_true(filter_excludes(f, "b/c/e", false));
		filter_free(f);
	}
}

/* What a line of a list stands for: a path below SRC, everything in it, or nothing that can be. */
static void lines_of_a_list(void **state)
{
	static const struct {
		const char *line, *path; /* NULL: refused */
	} cases[] = {
	    {"a", "a"},     {"a/b", "a/b"},   {"./a", "a"}, {"a//b/", "a/b"}, {"/a", "a"},
	    {"./.", ""},    {"", ""},         {".a", ".a"}, {"..a", "..a"},   {"a..", "a.."},
	    {"...", "..."}, {"a/./b", "a/b"}, {"a.", "a."}, {"..", NULL},     {"../a", NULL},
	    {"a/..", NULL}, {"a/../b", NULL},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (int recursive = 0; recursive < 2; recursive++) {
			const struct fcopy_tree_options o = {
			    .files = &cases[i].line, .file_count = 1, .files_recursive = recursive};
			const char *path = cases[i].path;
			struct filter *f;
			size_t bad = 1, at = 0;
			const int r = filter_new(&f, &o, &bad);
			if (r != (path ? 0 : -EINVAL) || bad != (path ? 1 : 0))
				fail_msg("'%s': %d, line %zu", cases[i].line, r, bad);
			if (!path)
				continue;
			const bool whole = !path[0] && recursive;
			if (filter_excludes(f, "other", false) == whole)
				fail_msg("'%s': everything or nothing", cases[i].line);
			const char *missing = filter_missing(f, &at);
			if (path[0] ? !missing || strcmp(missing, path) != 0 : missing != NULL)
				fail_msg("'%s' is %s", cases[i].line, missing);
			at = 0;
			if (path[0] && (filter_excludes(f, path, true) || filter_missing(f, &at)))
				fail_msg("'%s' is not found", path);
			filter_free(f);
		}
}

/* With what is below the directories in the list, or without. */
static void lists_of_directories(void **state)
{
	static const char *const listed[] = {"b/c/", "a", "b/e"};
	static const struct {
		const char *path;
		bool is_listed, is_below;
	} cases[] = {
	    {"a", true, true},        {"a/x", false, true},  {"a/x/y", false, true},
	    {"b", true, true},        {"b/c", true, true},   {"b/c/d", false, true},
	    {"b/c/d/e", false, true}, {"b/d", false, false}, {"b/cd", false, false},
	    {"b/c!", false, false},   {"ab", false, false},  {"x/a", false, false},
	    {"c", false, false},      {"b/e", true, true},   {"b/e/f", false, true},
	};
	(void)state;
	for (int recursive = 0; recursive < 2; recursive++) {
		const struct fcopy_tree_options o = {
		    .files = listed, .file_count = 3, .files_recursive = recursive};
		struct filter *f;
		size_t bad;
		assert_int_equal(filter_new(&f, &o, &bad), 0);
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			const bool copied = recursive ? cases[i].is_below : cases[i].is_listed;
			if (filter_excludes(f, cases[i].path, false) == copied)
				fail_msg("'%s', recursive %d", cases[i].path, recursive);
		}
		filter_free(f);
	}
}

/* Patterns that name nothing below SRC are refused; the first bad one is named. */
static void patterns_that_name_nothing(void **state)
{
	static char huge[FCOPY_PATH_MAX + 2];
	const char *const wrong[] = {"", "/", "//", huge};
	(void)state;
	memset(huge, 'x', FCOPY_PATH_MAX);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const struct fcopy_pattern p[] = {{"a", false}, {"b/", true}, {wrong[i], false}};
		const struct fcopy_tree_options o = {.patterns = p, .pattern_count = 3};
		struct filter *f;
		size_t bad = 0;
		assert_int_equal(filter_new(&f, &o, &bad), -EINVAL);
		assert_int_equal(bad, 2);
		assert_null(f);
	}
}

/* Only patterns for directories need the types of what they are compared with. */
static void directories_alone(void **state)
{
	static const struct {
		const char *pattern;
		bool types, file, directory; /* is "a" excluded as such? */
	} cases[] = {
	    {"a", false, true, true},   {"a/", true, false, true},  {"a/***", true, false, true},
	    {"*", false, true, true},   {"*/", true, false, true},  {"a**", false, true, true},
	    {"/a/", true, false, true}, {"***", false, true, true}, {"b/", true, false, false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct fcopy_pattern p = {cases[i].pattern, false};
		const struct fcopy_tree_options o = {.patterns = &p, .pattern_count = 1};
		struct filter *f;
		size_t bad;
		assert_int_equal(filter_new(&f, &o, &bad), 0);
		if (filter_needs_types(f) != cases[i].types ||
		    filter_excludes(f, "a", false) != cases[i].file ||
		    filter_excludes(f, "a", true) != cases[i].directory ||
		    filter_protects(f, "a", true) != cases[i].directory)
			fail_msg("%s", cases[i].pattern);
		filter_free(f);
	}
	assert_false(filter_protects(NULL, "a", true));
}

static void once_listed(void *arg)
{
	struct name_list list;
	struct failure fail = {.call = NULL};
	int fd = open(".", O_RDONLY | O_DIRECTORY);
	(void)arg;
	need(fd >= 0);
	fault_on();
	int r = names_read(fd, &list, &fail);
	fault_off();
	close(fd);
	assert_int_equal(r, fault_seen() ? -ENOMEM : 0);
	if (r < 0) {
		assert_string_equal(fail.call, "malloc");
		return;
	}
	assert_int_equal(list.count, 2);
	assert_true(names_have(&list, "a") && names_have(&list, "b"));
	names_free(&list);
}

/* A mirror would remove what is not in the list of the source. */
static void list_without_memory(void **state)
{
	make_file("a", 1, DENSE, 1);
	make_file("b", 1, DENSE, 1);
	fault_sweep(*state, ENOMEM, once_listed, NULL);
}

int main(void)
{
	cases_enter("tmpfs");
	case_add(without_memory, NULL, "patterns: calloc fails with ENOMEM");
	case_add(without_memory, names, "names: calloc fails with ENOMEM");
	case_add(list_without_memory, "malloc", "the names in a directory: malloc fails");
	case_add(list_without_memory, "realloc", "the names in a directory: realloc fails");
	case_add(directory_and_below, NULL, "a directory and what is below it are both listed");
	case_add(lines_of_a_list, NULL, "what a line of a list stands for");
	case_add(lists_of_directories, NULL, "directories in a list, and what is below them");
	case_add(patterns_that_name_nothing, NULL, "patterns that name nothing are refused");
	case_add(directories_alone, NULL, "patterns for directories alone");
	case_add(long_paths, NULL, "a path that is too long is not excluded");
	case_add(long_patterns, NULL, "patterns around 64 places");
	case_add(brackets, NULL, "where brackets end, and what is in them");
	return cases_run("filter");
}
