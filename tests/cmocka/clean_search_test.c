/* SPDX-License-Identifier: MIT
 * What --clean finds below a directory: deep trees, their size, and names that are exchanged while
 * they are removed.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "part/left.h"
#include "part/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t space; /* that the file of make_deep() takes */

/* Below "top": so many directories, each in the one before, and a file of 7 bytes in the last. */
static int make_deep(int depth)
{
	struct stat st;
	remove_all("top");
	need(mkdir("top", 0700) == 0);
	int top = open("top", O_RDONLY | O_DIRECTORY | O_CLOEXEC), at = dup(top);
	for (; depth > 0; depth--) {
		need(mkdirat(at, "d", 0700) == 0);
		int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = below;
	}
	int file = openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	need(top >= 0 && file >= 0 && write(file, "seven b", 7) == 7 && fstat(file, &st) == 0 &&
	     st.st_blocks > 0);
	space = (uint64_t)st.st_blocks * 512;
	close(file);
	close(at);
	return top;
}

static void measure_faulty(void *arg)
{
	const int *top = arg;
	struct left_size size = {.entries = ~0U};
	const int before = open_descriptors();
	fault_on();
	left_measure(*top, &size);
	fault_off();
	assert_int_equal(size.partial, fault_seen());
	assert_true(size.bytes == space || (size.partial && size.bytes == 0));
	assert_int_equal(open_descriptors(), before);
}

/* A size that may be too small is marked as partial. */
static void sizes_are_whole_or_marked(void **state)
{
	static const int cancel = 1;
	static const struct {
		int depth;
		unsigned entries;
		const int *cancel;
		bool partial;
	} rows[] = {
	    {0, ~0U, NULL, false}, {31, ~0U, NULL, false}, {32, ~0U, NULL, true},
	    {2, 3, NULL, false},   {2, 2, NULL, true},     {0, ~0U, &cancel, true},
	};
	static const struct {
		const char *call;
		int err;
	} faults[] = {
	    {"openat64", EMFILE}, {"fstat64", EIO},   {"fstatat64", EIO},
	    {"getdents64", EIO},  {"malloc", ENOMEM},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int top = make_deep(rows[i].depth);
		struct left_size size = {.entries = rows[i].entries, .cancel = rows[i].cancel};
		left_measure(top, &size);
		assert_int_equal(size.partial, rows[i].partial);
		assert_int_equal(size.bytes, rows[i].partial ? 0 : space);
		close(top);
	}
	int top = make_deep(2);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		fault_sweep(faults[i].call, faults[i].err, measure_faulty, &top);
	struct left_size size = {.entries = ~0U};
	fault_set("fstatat64", 1, ENOENT); /* removed since */
	fault_on();
	left_measure(top, &size);
	fault_off();
	assert_false(size.partial);
	close(top);
}

#define HIDDEN ".fcopy-0123456789abcdef"
#define LEVELS 30
#define MIDDLE 20 /* deeper than those that stay open */

/* The path of the directory that is so deep below top. */
static void name_level(char path[PATH_MAX], int level)
{
	size_t n = strlen(strcpy(path, "top"));
	for (int i = 0; i < level; i++)
		n += strlen(strcpy(path + n, "/d"));
}

static void move_level(void)
{
	char path[PATH_MAX];
	name_level(path, MIDDLE);
	(void)!rename(path, "moved");
}

static unsigned listed;

static void count_listed(void *user, const struct fcopy_left *l)
{
	(void)user, (void)l;
	listed++;
}

/* Searches below top, where a temporary file is in each second directory and in z, which comes
 * last. Returns the result. */
static int search(void)
{
	const struct fcopy_clean_options o = {
	    .api = FCOPY_API, .recursive = true, .notify = count_listed};
	struct fcopy_error error;
	char path[PATH_MAX], file[PATH_MAX + 32];
	remove_all("top");
	remove_all("moved");
	need(mkdir("top", 0755) == 0 && mkdir("top/z", 0755) == 0);
	for (int i = 0; i <= LEVELS; i++) {
		name_level(path, i);
		need(mkdir(path, 0700) == 0 || (i == 0 && errno == EEXIST));
		snprintf(file, sizeof(file), "%s/z.fcopy-part", path);
		if (i > 0)
			make_file(file, 0, DENSE, 1);
	}
	make_file("top/z/" HIDDEN, 0, DENSE, 1);
	listed = 0;
	const int before = open_descriptors();
	fault_on();
	const int r = fcopy_clean("top", &o, &error);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(r == 0, error.err == 0);
	return r;
}

static void search_once(void *moves)
{
	const int r = search();
	if (r == 0 && !moves)
		assert_int_equal(listed, LEVELS + 1);
	if (moves) /* what is open stays in reach */
		assert_in_range(listed, LEVELS / 2 + 1, LEVELS + 1);
}

/* A directory cannot be found again, or a call fails: the others are searched. */
static void deep_search_is_disturbed(void **state)
{
	(void)state;
	fault_before(move_level);
	fault_sweep("openat64", 0, search_once, move_level);
	fault_before(NULL);
	fault_sweep("openat64", EMFILE, search_once, NULL);
	fault_sweep("fstat64", EIO, search_once, NULL);
	fault_sweep("calloc", ENOMEM, search_once, NULL);
	fault_sweep("malloc", ENOMEM, search_once, NULL);
}

/* As the owner of a directory that a mirror has put aside may, who had it open before. */
static void exchange_directory(void)
{
	(void)!rename("top/sub", "sub");
	(void)!link("victim", "top/sub");
}

/* What gets the name of a directory that is removed keeps its mode. */
static void names_are_exchanged(void **state)
{
	static const char *const calls[] = {"fchmodat", "chmod", "openat64", "unlinkat"};
	struct stat st;
	int here = open(".", O_RDONLY | O_DIRECTORY);
	(void)state;
	make_file("victim", 100, DENSE, 1);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		bool seen = true;
		for (int nth = 1; seen && nth < 100; nth++) {
			need(chmod("victim", 04755) == 0);
			remove_all("sub");
			remove_all("top");
			need(mkdir("top", 0755) == 0 && mkdir("top/sub", 0755) == 0);
			need(mkdir("top/sub/below", 0755) == 0 && chmod("top/sub", 0) == 0);
			int top = open("top", O_RDONLY | O_DIRECTORY);
			fault_before(exchange_directory);
			fault_set(calls[i], nth, 0);
			fault_on();
			(void)remove_tree(top, here, "top", NULL);
			fault_off();
			seen = fault_seen();
			close(top);
			need(stat("victim", &st) == 0);
			assert_int_equal(st.st_mode & 07777, 04755);
		}
		assert_false(seen);
	}
	close(here);
}

int main(void)
{
	cases_enter("ext4");
	case_add(deep_search_is_disturbed, NULL, "--clean -r of a deep tree, disturbed");
	case_add(names_are_exchanged, NULL, "the names in what is removed are exchanged");
	case_add(sizes_are_whole_or_marked, NULL, "the size of what is left");
	return cases_run("clean_search");
}
