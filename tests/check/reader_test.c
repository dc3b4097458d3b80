/* SPDX-License-Identifier: MIT
 * What finds names: the readers of a directory, the way up from one, and tables of hashes.
 */
#define _GNU_SOURCE
#include "util.h"

#include "io/hash.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 300 /* more than fit into the smallest buffer */

static int make_directory(const char *name, int files)
{
	char path[64];
	need(mkdir(name, 0755) == 0);
	for (int i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/%03d", name, i * 2);
		make_file(path, 0, DENSE, 0);
	}
	const int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	need(fd >= 0);
	return fd;
}

START_TEST(each_name_is_read_once_whatever_was_read_before)
{
	static char buffer[2048] __attribute__((aligned(8)));
	static bool seen[FILES];
	enter(&dirs[_i]);
	set_label("%s", dirs[_i].name);
	const int fd = make_directory("d", FILES);
	for (int again = 0; again < 2; again++) {
		struct reader r = reader_open(fd, buffer, sizeof(buffer));
		int count = 0;
		memset(seen, 0, sizeof(seen));
		for (const char *name; (name = reader_next(&r)); count++) {
			const int i = atoi(name);
			check(i % 2 == 0 && i < 2 * FILES && !seen[i / 2], "%s", name);
			seen[i / 2] = true;
		}
		check(count == FILES, "%d names", count);
		check(!reader_next(&r), "a name after the end");
		check(reader_close(&r) == 0, "error %d", r.error);
	}
	close(fd);
	leave();
}
END_TEST

START_TEST(a_reader_reports_what_failed)
{
	static char buffer[2048] __attribute__((aligned(8)));
	enter(&dirs[_i]);
	set_label("%s", dirs[_i].name);
	struct reader r = reader_open(-1, buffer, sizeof(buffer));
	check(!reader_next(&r) && reader_close(&r) == -EBADF, "error %d", r.error);
	check(strcmp(r.call, "openat") == 0, "%s", r.call);
	make_file("file", 1, DENSE, 0);
	const int fd = open("file", O_RDONLY | O_CLOEXEC);
	r = reader_of(fd, buffer, sizeof(buffer));
	check(!reader_next(&r) && reader_close(&r) == -ENOTDIR, "error %d", r.error);
	check(strcmp(r.call, "getdents64") == 0, "%s", r.call);
	check(close(fd) == 0, "the caller's descriptor was closed");
	leave();
}
END_TEST

START_TEST(names_are_sorted_and_found)
{
	static const int counts[] = {0, 1, 2, 3, FILES};
	struct name_list list;
	struct failure fail = {.call = NULL};
	char text[16];
	enter(&dirs[0]);
	const int fd = make_directory("d", counts[_i]);
	set_label("%d names", counts[_i]);
	check(names_read(fd, &list, &fail) == 0, "%s", fail.call);
	check(list.count == (size_t)counts[_i], "%zu names", list.count);
	for (int i = 0; i < 2 * counts[_i]; i++) { /* every second one exists */
		snprintf(text, sizeof(text), "%03d", i);
		check(names_have(&list, text) == (i % 2 == 0), "%s", text);
		check(names_from(&list, text) == (size_t)(i + 1) / 2, "%s: %zu", text,
		      names_from(&list, text));
	}
	check(!names_have(&list, "") && names_from(&list, "") == 0, "before the first");
	check(!names_have(&list, "x") && names_from(&list, "x") == list.count, "after the last");
	check(!names_have(&list, ".") && !names_have(&list, ".."), "dots");
	names_free(&list);
	check(list.count == 0 && !list.name && !list.bytes, "freed");
	close(fd);
	leave();
}
END_TEST

START_TEST(only_two_names_are_dots)
{
	static const char *const others[] = {"", "...", ".a", "..a", "a.", "a"};
	check(name_is_dot(".") && name_is_dot(".."), "dots");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		check(!name_is_dot(others[i]), "%s", others[i]);
}
END_TEST

struct climbed {
	ino_t ino[32];
	unsigned visits, most;
};

static bool visit(const struct stat *st, void *arg)
{
	struct climbed *way = arg;
	need(way->visits < 32);
	way->ino[way->visits++] = st->st_ino;
	return way->visits == way->most;
}

static int climb_from(const char *path, struct climbed *way, unsigned most)
{
	struct failure fail = {.call = NULL};
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*way = (struct climbed){.most = most};
	const int r = reader_climb(fd, visit, way, &fail);
	need(close(fd) == 0);
	return r;
}

START_TEST(the_way_up_ends_at_the_root)
{
	static const char *const up[] = {"a/b/c", "a/b", "a", "."};
	struct climbed way, above;
	struct stat st;
	enter(&dirs[_i]);
	set_label("%s", dirs[_i].name);
	need(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0 && mkdir("a/b/c", 0755) == 0);
	check(climb_from("a/b/c", &way, 0) == 0, "to the root");
	check(climb_from("a/b", &above, 0) == 0 && way.visits == above.visits + 1, "one fewer");
	for (unsigned i = 0; i < 4; i++) {
		need(stat(up[i], &st) == 0);
		check(way.ino[i] == st.st_ino, "directory %u", i);
	}
	need(stat("/", &st) == 0);
	check(way.ino[way.visits - 1] == st.st_ino, "the root is visited");
	check(climb_from("/", &above, 0) == 0 && above.visits == 1, "from the root");
	for (unsigned most = 1; most <= way.visits; most++)
		check(climb_from("a/b/c", &above, most) == 1 && above.visits == most, "ends early");
	leave();
}
END_TEST

START_TEST(the_way_up_reports_what_failed)
{
	struct climbed way = {.visits = 0};
	struct failure fail = {.call = NULL};
	check(reader_climb(-1, visit, &way, &fail) == -EBADF, "no directory");
	check(strcmp(fail.call, "open") == 0 && way.visits == 0, "%s", fail.call);
}
END_TEST

/* Keys that meet in one row, at the end of the table and across its growth. */
START_TEST(a_table_keeps_each_key)
{
	static const uint64_t steps[] = {1, 2, 512, 1024, 4096, UINT64_MAX, 0x100000001};
	struct table t = {NULL, 0, 0};
	const uint64_t step = steps[_i];
	set_label("step %#jx", (uintmax_t)step);
	check(!table_find(&t, 0) && !table_find(&t, 1), "empty");
	for (uint64_t i = 1; i <= 5000; i++) {
		struct table_row *row = table_add(&t, i * step);
		check(row && row->value == 0 && !row->mark, "row %ju is not new", (uintmax_t)i);
		row->value = i;
		check(t.used == i && 2 * t.used <= t.rows, "%zu of %zu rows", t.used, t.rows);
	}
	check(t.rows < 4 * t.used, "%zu rows", t.rows);
	for (uint64_t i = 1; i <= 5000; i++) {
		const struct table_row *row = table_find(&t, i * step);
		check(row && row->value == i, "row %ju", (uintmax_t)i);
		check(table_add(&t, i * step) == row && t.used == 5000, "added twice");
	}
	check(!table_find(&t, 5001 * step), "another key");
	table_free(&t);
	check(!t.row && t.rows == 0 && t.used == 0, "freed");
}
END_TEST

START_TEST(a_key_of_zero_is_a_key)
{
	struct table t = {NULL, 0, 0};
	struct table_row *row = table_add(&t, 0);
	check(row, "added");
	row->value = 7;
	row = table_find(&t, 0);
	check(row && row->value == 7 && t.used == 1, "found");
	table_free(&t);
}
END_TEST

int main(void)
{
	dirs_find();
	Suite *s = suite_create("reader");
	TCase *c = add_case(s, "reader");
	tcase_add_loop_test(c, each_name_is_read_once_whatever_was_read_before, 0, (int)dir_count);
	tcase_add_loop_test(c, a_reader_reports_what_failed, 0, (int)dir_count);
	tcase_add_loop_test(c, names_are_sorted_and_found, 0, 5);
	tcase_add_test(c, only_two_names_are_dots);
	tcase_add_loop_test(c, the_way_up_ends_at_the_root, 0, (int)dir_count);
	tcase_add_test(c, the_way_up_reports_what_failed);
	tcase_add_loop_test(c, a_table_keeps_each_key, 0, 7);
	tcase_add_test(c, a_key_of_zero_is_a_key);
	return run_suite(s);
}
