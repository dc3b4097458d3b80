/* SPDX-License-Identifier: MIT
 * Whole copies: every mode, size and shape on every file system, to a new file, over an old one,
 * and in place.
 */
#define _GNU_SOURCE
#include "util.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct cell {
	const struct fcopy_mode *mode;
	const struct dir *from, *to;
};

static struct cell cells[DIRS_MAX * (DIRS_MAX + TABLE_MAX)];
static int cell_count;

static void find_cells(void)
{
	for (size_t d = 0; d < dir_count; d++) {
		if (!dirs[d].fallocate)
			left_out("unwritten files on %s", dirs[d].name);
		for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
			if (mode_runs(m, &dirs[d]))
				cells[cell_count++] = (struct cell){m, &dirs[d], &dirs[d]};
			else
				left_out("mode %s on %s", m->name, dirs[d].name);
	}
	for (size_t a = 0; a < dir_count; a++)
		for (size_t b = 0; b < dir_count; b++)
			if (a != b)
				cells[cell_count++] = (struct cell){fcopy_modes(), &dirs[a],
								    &dirs[b]};
}

enum destination { NEW, OLD, IN_PLACE, KINDS };

static const char *const kind_names[KINDS] = {"new", "old", "in place"};

/* Old bytes are longer than the new ones by an odd number, and nowhere the same. */
static void copy_one(const struct cell *c, const char *src, enum destination kind, off_t size)
{
	struct fcopy_options options = {.api = FCOPY_API,
					.in_place = kind == IN_PLACE ? FCOPY_WHEN_ALWAYS
								     : FCOPY_WHEN_NEVER,
					.mode = c->mode};
	if (c->mode->engine && c->mode->threads)
		options.threads = 2; /* auto decides by itself */
	struct stat before, after;
	if (kind != NEW) {
		make_file("dst", size + 70001, DENSE, 2);
		need(stat("dst", &before) == 0);
	}
	int r = fcopy_copy(src, "dst", &options, &report);
	check(r == 0, "%s: %s: %d", report.error.call, report.error.path, report.error.err);
	check(same_bytes(src, "dst"), "bytes differ");
	check(report.bytes == (uint64_t)size, "%llu", (unsigned long long)report.bytes);
	check(report.cloned || report.data + report.holes == (uint64_t)size, "%llu + %llu",
	      (unsigned long long)report.data, (unsigned long long)report.holes);
	check(!report.source_changed, "changed");
	need(stat("dst", &after) == 0);
	if (kind != NEW)
		check((before.st_ino == after.st_ino) == (kind == IN_PLACE), "inode");
	check(names_in(".") == 1 + (c->from == c->to), "%d names left", names_in("."));
	need(unlink("dst") == 0);
}

/* The source is made in each shape, and copied in each way. */
static void copy_shapes(const struct cell *c, off_t size)
{
	char src[PATH_MAX];
	enter(c->to);
	snprintf(src, sizeof(src), "src");
	if (c->from != c->to)
		snprintf(src, sizeof(src), "%s/src.%d", c->from->path, (int)getpid());
	for (enum shape shape = DENSE; shape < SHAPES; shape++) {
		if (!has_shape(c->from, shape, size))
			continue;
		make_file(src, size, shape, 1);
		for (enum destination kind = NEW; kind < KINDS; kind++) {
			set_label("mode %s, %s to %s, %s %lld, %s", c->mode->name, c->from->name,
				  c->to->name, shape_names[shape], (long long)size,
				  kind_names[kind]);
			copy_one(c, src, kind, size);
		}
		need(unlink(src) == 0);
	}
	leave();
}

START_TEST(copies)
{
	copy_shapes(&cells[_i / SIZES], sizes[_i % SIZES]);
}
END_TEST

/* Large enough for auto to use splice. */
START_TEST(auto_copies_large_files)
{
	copy_shapes(&cells[_i], ((off_t)3 << 20) + 5);
}
END_TEST

/* Large enough for auto to try splice and threads in turns. */
START_TEST(auto_tries_threads)
{
	const off_t size = ((off_t)32 << 20) + 5;
	enter(cells[_i].to);
	set_label("auto on %s", cells[_i].to->name);
	make_file("src", size, DENSE, 1);
	copy_one(&cells[_i], "src", NEW, size);
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	find_cells();
	Suite *s = suite_create("matrix");
	TCase *c = add_case(s, "matrix");
	tcase_add_loop_test(c, copies, 0, cell_count * SIZES);
	for (int i = 0; i < cell_count; i++) {
		if (cells[i].mode->engine)
			continue;
		tcase_add_loop_test(c, auto_copies_large_files, i, i + 1);
		if (cells[i].from == cells[i].to)
			tcase_add_loop_test(c, auto_tries_threads, i, i + 1);
	}
	return run_suite(s);
}
