/* SPDX-License-Identifier: MIT
 * What the cmocka programs share.
 */
#define _GNU_SOURCE
#include "cases.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct named {
	void (*test)(void **);
	void *state;
	char *name;
};

static const struct named *running; /* for messages */
static struct CMUnitTest *tests;
static size_t test_count;
static char here[PATH_MAX];
static int descriptors;

const char *errno_name(int err)
{
	return err ? strerrorname_np(err) : "0";
}

/* "5 (EIO)" */
static const char *describe_value(long long value, bool is_errno, char text[64])
{
	const char *name = is_errno && value != 0 ? strerrorname_np((int)llabs(value)) : NULL;
	if (name)
		snprintf(text, 64, "%lld (%s%s)", value, value < 0 ? "-" : "", name);
	else
		snprintf(text, 64, "%lld", value);
	return text;
}

void case_compare(const char *what, long long actual, long long expected, bool is_errno,
		  const char *file, int line)
{
	char a[64], b[64];
	if (actual == expected)
		return;
	/* run.sh prints lines that contain ERROR: cmocka prints `not ok` only afterwards. */
	print_error("ERROR: %s: %s is %s, not %s\n", running->name, what,
		    describe_value(actual, is_errno, a), describe_value(expected, is_errno, b));
	_fail(file, line);
}

/* The directory of FCOPY_TEST_DIR that ends in /name, or the first. */
static const char *find_dir(const char *name)
{
	static char list[PATH_MAX * 2];
	const char *given = getenv("FCOPY_TEST_DIR");
	snprintf(list, sizeof(list), "%s", given && *given ? given : ".");
	char *rest = list, *path;
	while ((path = strsep(&rest, ":"))) {
		const char *last = strrchr(path, '/');
		if (last && strcmp(last + 1, name) == 0)
			return path;
	}
	return list;
}

static int set_up(void **state)
{
	(void)state;
	descriptors = open_descriptors();
	return chdir(here);
}

static int tear_down(void **state)
{
	(void)state;
	fault_clear();
	int now = open_descriptors();
	if (now != descriptors)
		print_error("%d descriptors leaked\n", now - descriptors);
	need(chdir("/") == 0);
	remove_all(here);
	return now != descriptors || mkdir(here, 0700) != 0;
}

static void run_named(void **state)
{
	running = *state;
	void *own = running->state;
	running->test(&own);
}

void case_add(void (*test)(void **), const void *state, const char *format, ...)
{
	va_list args;
	struct named *n = malloc(sizeof(*n));
	need(n);
	*n = (struct named){.test = test, .state = (void *)state};
	va_start(args, format);
	need(vasprintf(&n->name, format, args) >= 0);
	va_end(args);
	need((tests = realloc(tests, (test_count + 1) * sizeof(*tests))));
	tests[test_count++] = (struct CMUnitTest){n->name, run_named, set_up, tear_down, n};
}

void case_add_errnos(void (*test)(void **), const void *row, const int *errs, const char *who,
		     const char *call)
{
	static struct errno_case all[256];
	static size_t n;
	for (; *errs >= 0; errs++) {
		need(n < sizeof(all) / sizeof(*all));
		all[n] = (struct errno_case){row, *errs};
		case_add(test, &all[n++], "%s: %s fails with %s", who, call, errno_name(*errs));
	}
}

void cases_enter(const char *file_system)
{
	char dir[PATH_MAX];
	need(realpath(find_dir(file_system), dir));
	need(snprintf(here, sizeof(here), "%s/f.XXXXXX", dir) < PATH_MAX);
	need(mkdtemp(here));
	need(chdir(here) == 0);
}

int cases_run(const char *group)
{
	int failed = _cmocka_run_group_tests(group, tests, test_count, NULL, NULL);
	need(chdir("/") == 0);
	rmdir(here);
	for (size_t i = 0; i < test_count; i++) {
		free((void *)tests[i].name);
		free(tests[i].initial_state);
	}
	free(tests);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
