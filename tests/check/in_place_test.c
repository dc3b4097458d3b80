/* SPDX-License-Identifier: MIT
 * Into an existing inode: cut to its length at the end, and its old bytes never show through.
 */
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE ((off_t)(1 << 20) + 4097)

/* By each mode: old files that are longer, shorter, empty, sparse or preallocated. */
START_TEST(over_any_old_file)
{
	const struct fcopy_mode *m = moving_modes[_i / 6 % moving_count];
	const struct dir *d = &dirs[_i / 6 / moving_count];
	static const off_t old_sizes[] = {2 * SIZE, SIZE / 2, 0, 2 * SIZE, 2 * SIZE, SIZE};
	int kind = _i % 6;
	enum shape shape = kind == 3 ? SPARSE : kind == 4 ? UNWRITTEN : DENSE;
	struct stat before, after;
	if (!mode_runs(m, d))
		skip_test("no %s on %s", m->name, d->name);
	if (shape == UNWRITTEN && !d->fallocate)
		skip_test("%s has no fallocate", d->name);
	enter(d);
	for (enum shape source = DENSE; source <= SPARSE; source++) {
		set_label("mode %s on %s, %s over %d", m->name, d->name, shape_names[source], kind);
		make_file("src", SIZE, source, 1);
		make_file("dst", old_sizes[kind], shape, 2);
		need(chmod("dst", 0604) == 0 && stat("dst", &before) == 0);
		struct fcopy_options o = {
		    .api = FCOPY_API, .mode = m, .in_place = FCOPY_WHEN_ALWAYS, .fsync = kind == 0};
		check(fcopy_copy("src", "dst", &o, &report) == 0, "%s", report.error.call);
		need(stat("dst", &after) == 0);
		check(same_bytes("src", "dst"), "old bytes show through");
		check(before.st_ino == after.st_ino && after.st_mode == before.st_mode, "inode");
	}
	leave();
}
END_TEST

/* A hole of the source is a hole afterwards, where the file system punches them. */
START_TEST(punches_holes)
{
	const struct dir *d = &dirs[_i];
	if (!d->holes || !d->fallocate)
		skip_test("%s cannot punch or find holes", d->name);
	enter(d);
	set_label("on %s", d->name);
	make_file("src", 3 << 20, SPARSE, 1);
	make_file("dst", 4 << 20, DENSE, 2);
	struct fcopy_options o = {
	    .api = FCOPY_API, .in_place = FCOPY_WHEN_ALWAYS, .reflink = FCOPY_WHEN_NEVER};
	check(fcopy_copy("src", "dst", &o, &report) == 0, "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	check(strcmp(map_of("src"), map_of("dst")) == 0, "maps differ");
	o.sparse = FCOPY_WHEN_NEVER;
	check(fcopy_copy("src", "dst", &o, &report) == 0, "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	check(strcmp(map_of("dst"), "data:3145728") == 0, "%s", map_of("dst"));
	leave();
}
END_TEST

/* Written where the descriptor stands, and no further: a shell's `{ fcopy a -; fcopy b -; } >c`. */
START_TEST(at_the_position)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i];
	char name[32];
	enter(&dirs[0]);
	set_label("mode %s", m->name);
	make_file("src", SIZE, DENSE, 1);
	make_file("dst", 3 * SIZE, DENSE, 2);
	make_file("old", 3 * SIZE, DENSE, 2);
	int fd = open("dst", O_WRONLY | O_CLOEXEC);
	need(lseek(fd, 4096, SEEK_SET) == 4096);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	int r = copy_by(m->name, "src", name, (struct fcopy_options){0});
	check(r == 0 || (m->number > 1 && report.error.advice == FCOPY_ADVICE_AUTO), "%s",
	      report.error.call);
	check(lseek(fd, 0, SEEK_CUR) == 4096 + (r ? 0 : SIZE), "position");
	close(fd);
	check(size_of("dst") == 3 * SIZE, "cut");
	check(same_range("old", "dst", 0, 4096), "before");
	check(same_range("old", "dst", 4096 + SIZE, 3 * SIZE), "after the end");
	if (r == 0) {
		static char want[SIZE], got[SIZE];
		fill(want, SIZE, 0, 1);
		fd = open("dst", O_RDONLY | O_CLOEXEC);
		need(pread(fd, got, SIZE, 4096) == SIZE);
		close(fd);
		check(memcmp(want, got, SIZE) == 0, "bytes differ");
	}
	leave();
}
END_TEST

/* From where the descriptor stands. */
START_TEST(from_the_position)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i];
	char name[32];
	enter(&dirs[0]);
	set_label("mode %s", m->name);
	make_file("src", SIZE, DENSE, 1);
	int fd = open("src", O_RDONLY | O_CLOEXEC);
	need(lseek(fd, 5000, SEEK_SET) == 5000);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	int r = copy_by(m->name, name, "dst", (struct fcopy_options){0});
	check(r == 0 || (m->number > 1 && report.error.advice == FCOPY_ADVICE_AUTO), "%s",
	      report.error.call);
	if (r == 0) {
		static char all[SIZE];
		fill(all, SIZE, 0, 1);
		check(size_of("dst") == SIZE - 5000, "%lld", (long long)size_of("dst"));
		int out = open("dst", O_RDONLY | O_CLOEXEC);
		static char got[SIZE];
		need(read(out, got, SIZE) == SIZE - 5000);
		close(out);
		check(memcmp(all + 5000, got, SIZE - 5000) == 0, "bytes differ");
	}
	close(fd);
	leave();
}
END_TEST

/* Without an old file there is nothing to write into: it is a new file like any other. */
START_TEST(without_an_old_file)
{
	enter(&dirs[0]);
	make_file("src", SIZE, DENSE, 1);
	check(copy_by("auto", "src", "dst",
		      (struct fcopy_options){.in_place = FCOPY_WHEN_ALWAYS}) == 0,
	      "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	need(mkfifo("fifo", 0600) == 0);
	int fd = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	make_file("src", 1000, DENSE, 1);
	check(copy_by("auto", "src", "fifo", (struct fcopy_options){0}) == 0, "%s",
	      report.error.call);
	char got[2000], want[1000];
	fill(want, 1000, 0, 1);
	check(read(fd, got, sizeof(got)) == 1000 && memcmp(got, want, 1000) == 0, "bytes differ");
	close(fd);
	struct stat st;
	check(stat("fifo", &st) == 0 && S_ISFIFO(st.st_mode), "the FIFO was replaced");
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	int n = (int)dir_count;
	Suite *s = suite_create("in_place");
	TCase *c = add_case(s, "in_place");
	tcase_add_loop_test(c, over_any_old_file, 0, n * moving_count * 6);
	tcase_add_loop_test(c, punches_holes, 0, n);
	tcase_add_loop_test(c, at_the_position, 0, mode_count);
	tcase_add_loop_test(c, from_the_position, 0, mode_count);
	tcase_add_test(c, without_an_old_file);
	return run_suite(s);
}
