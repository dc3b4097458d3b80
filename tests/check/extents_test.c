/* SPDX-License-Identifier: MIT
 * Holes stay holes, unwritten extents stay unwritten, and clones share what they have.
 */
#define _GNU_SOURCE
#include "util.h"

#include "copy/allocate.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MiB ((off_t)1 << 20)

/* A source as its parts: h hole, d data, u unwritten, each of `unit` bytes; `tail` more data. */
static const struct layout {
	const char *name, *parts;
	off_t unit, tail;
} layouts[] = {
    {"hole first", "hhd", MiB, 0},
    {"hole last", "dhh", MiB, 0},
    {"only a hole", "h", 3 * MiB, 0},
    {"alternating", "dhdhdhdh", MiB / 4, 0},
    {"alternating, odd end", "hdhd", MiB / 4, 4097},
    {"holes of 4 KiB", "dhdhdhdhdhdhdhdhdhdhdhdhdhdhdhdhdhdhdhdhd", 4096, 0},
    {"data of 4 KiB between large holes", "hdhhdhhhd", 65536, 1},
    {"unwritten first", "uud", MiB, 0},
    {"unwritten last", "duu", MiB, 0},
    {"only unwritten", "u", 3 * MiB, 0},
    {"all three", "duhduhudh", MiB / 4, 123},
    {"unwritten of 4 KiB", "dududududududududu", 4096, 0},
};

#define LAYOUTS ((int)(sizeof(layouts) / sizeof(*layouts)))

static void make_layout(const char *name, const struct layout *l)
{
	off_t at = 0;
	make_file(name, 0, DENSE, 1);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	need(fd >= 0);
	for (const char *p = l->parts; *p; p++, at += l->unit) {
		need(ftruncate(fd, at + l->unit) == 0);
		if (*p == 'd')
			write_at(name, at, (size_t)l->unit, 1);
		if (*p == 'u')
			need(fallocate(fd, 0, at, l->unit) == 0);
	}
	if (l->tail)
		write_at(name, at, (size_t)l->tail, 1);
	close(fd);
}

static int copy_with(struct fcopy_options o)
{
	o.api = FCOPY_API;
	o.reflink = FCOPY_WHEN_NEVER;
	return fcopy_copy("src", "dst", &o, &report);
}

static off_t blocks_of(const char *name)
{
	struct stat st;
	need(stat(name, &st) == 0);
	return st.st_blocks;
}

static bool runs_on(const struct layout *l, const struct dir *d)
{
	return d->holes && (d->fallocate || !strchr(l->parts, 'u'));
}

/* tmpfs has no FIEMAP: where each block is allocated, nothing confirms that some are unwritten. */
static bool knows_unwritten(const struct layout *l, const struct dir *d)
{
	return strcmp(d->name, "tmpfs") != 0 || strchr(l->parts, 'h');
}

/* dirty: the source's pages are not written yet, so that FIEMAP does not know of them. */
static void equal_maps(const struct dir *d, const struct layout *l, bool dirty, int kind)
{
	enter(d);
	set_label("%s on %s, %s, destination %d", l->name, d->name, dirty ? "dirty" : "clean",
		  kind);
	make_layout("src", l);
	if (!dirty)
		map_of("src");
	if (kind > 0) /* old bytes everywhere, and longer */
		make_file("dst", size_of("src") + 50000, DENSE, 2);
	check(copy_with((struct fcopy_options){.in_place = kind == 2 ? FCOPY_WHEN_ALWAYS
								     : FCOPY_WHEN_NEVER}) == 0,
	      "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	const char *src = map_of("src"), *dst = map_of("dst");
	check(strcmp(src, dst) == 0 || !knows_unwritten(l, d), "\nsource      %s\ndestination %s",
	      src, dst);
	/* xfs may keep what it allocated ahead for the writer, until it is closed */
	check(blocks_of("dst") <= blocks_of("src") + 16, "%lld blocks, not %lld",
	      (long long)blocks_of("dst"), (long long)blocks_of("src"));
	leave();
}

START_TEST(keeps_the_map)
{
	const struct dir *d = &dirs[_i / (LAYOUTS * 6)];
	const struct layout *l = &layouts[_i / 6 % LAYOUTS];
	if (!runs_on(l, d))
		skip_test("%s cannot hold %s", d->name, l->name);
	equal_maps(d, l, _i % 2, _i / 2 % 3);
}
END_TEST

/* XFS reserves blocks past the last write: a direct read of them fails. */
START_TEST(verifies_an_unwritten_end)
{
	const struct dir *d = &dirs[_i];
	if (!d->fallocate)
		skip_test("%s has no fallocate", d->name);
	enter(d);
	set_label("verify on %s", d->name);
	make_file("src", 303104, DENSE, 1);
	int fd = open("src", O_WRONLY | O_CLOEXEC);
	need(fd >= 0 && fallocate(fd, 0, 303104, 196896) == 0);
	close(fd);
	check(copy_with((struct fcopy_options){.verify = true, .reflink = FCOPY_WHEN_NEVER}) == 0,
	      "%s: %s", report.error.call, strerror(report.error.err));
	check(same_bytes("src", "dst"), "bytes differ");
	leave();
}
END_TEST

/* Holes beyond 4 GiB, with data on both sides of the boundary. */
START_TEST(keeps_a_huge_hole)
{
	const struct dir *d = &dirs[_i];
	if (!d->holes)
		skip_test("%s has no SEEK_DATA", d->name);
	enter(d);
	set_label("5 GiB on %s", d->name);
	make_file("src", 0, DENSE, 1);
	write_at("src", 4096 * MiB - 4096, 8192, 1);
	need(truncate("src", 5120 * MiB + 1) == 0);
	check(copy_with((struct fcopy_options){0}) == 0, "%s", report.error.call);
	check(size_of("dst") == 5120 * MiB + 1, "%lld", (long long)size_of("dst"));
	check(same_range("src", "dst", 4095 * MiB, 4097 * MiB), "bytes differ");
	check(strcmp(map_of("src"), map_of("dst")) == 0, "maps differ");
	check(report.data == 8192 && report.holes == 5120 * MiB + 1 - 8192, "%llu",
	      (unsigned long long)report.data);
	leave();
}
END_TEST

START_TEST(clones)
{
	const struct dir *d = &dirs[_i / 4];
	const char *mode = _i % 2 ? "reflink" : "auto";
	bool in_place = _i / 2 % 2;
	if (!d->reflink)
		skip_test("%s has no reflink", d->name);
	enter(d);
	set_label("%s on %s%s", mode, d->name, in_place ? ", in place" : "");
	make_file("src", MiB, SPARSE, 1);
	need(shared_bytes("src") == 0);
	if (in_place)
		make_file("dst", 2 * MiB, DENSE, 2);
	int r = copy_by(
	    mode, "src", "dst",
	    (struct fcopy_options){.in_place = in_place ? FCOPY_WHEN_ALWAYS : FCOPY_WHEN_NEVER});
	check(r == 0, "%s: %d", report.error.call, report.error.err);
	check(report.cloned, "not cloned");
	check(same_bytes("src", "dst"), "bytes differ");
	check(shared_bytes("dst") > 0 && shared_bytes("dst") == shared_bytes("src"), "%lld",
	      (long long)shared_bytes("dst"));
	need(unlink("dst") == 0);
	r = copy_by("auto", "src", "dst", (struct fcopy_options){.reflink = FCOPY_WHEN_NEVER});
	check(r == 0 && !report.cloned && shared_bytes("dst") == 0, "cloned against the order");
	check(same_bytes("src", "dst"), "bytes differ");
	leave();
}
END_TEST

/* sparse=never writes every byte; and where cloning is impossible, reflink=always is refused. */
START_TEST(obeys)
{
	const struct dir *d = &dirs[_i];
	enter(d);
	set_label("on %s", d->name);
	make_file("src", MiB, SPARSE, 1);
	check(copy_with((struct fcopy_options){.sparse = FCOPY_WHEN_NEVER}) == 0, "%s",
	      report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	check(strcmp(map_of("dst"), "data:1048576") == 0, "%s", map_of("dst"));
	check(report.holes == 0 && report.data == (uint64_t)MiB, "report");
	struct fcopy_options always = {.api = FCOPY_API, .reflink = FCOPY_WHEN_ALWAYS};
	int r = fcopy_copy("src", "clone", &always, &report);
	check(r == (d->reflink ? 0 : -1), "%d", r);
	check(exists("clone") == d->reflink, "clone");
	if (r)
		check(strcmp(report.error.engine, "reflink") == 0, "%s", report.error.engine);
	leave();
}
END_TEST

/* The iterator itself, on ranges that cut extents. */
START_TEST(iterates)
{
	const struct dir *d = &dirs[_i];
	struct extents x;
	struct extent e;
	if (!d->holes)
		skip_test("%s has no SEEK_DATA", d->name);
	enter(d);
	set_label("on %s", d->name);
	make_layout("src", &layouts[3]);
	struct stat st;
	int fd = open("src", O_RDONLY | O_CLOEXEC);
	need(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t start = 0; start < 2 * MiB; start += 100000) {
		off_t at = start, end = start + 700001 < 2 * MiB ? start + 700001 : 2 * MiB;
		extents_start(&x, fd, start, end, &st);
		while (extents_next(&x, &e)) {
			bool data = e.start / (MiB / 4) % 2 == 0;
			check(e.start == at && e.end > at && e.end <= end, "gap");
			check((e.kind == EXTENT_DATA) == data, "kind at %lld", (long long)at);
			check(e.end == end || e.end % (MiB / 4) == 0, "%lld", (long long)e.end);
			at = e.end;
		}
		check(at == end, "%lld", (long long)at);
	}
	extents_start(&x, fd, 10, 10, &st);
	check(!extents_next(&x, &e), "nothing is something");
	close(fd);
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	int n = (int)dir_count;
	Suite *s = suite_create("extents");
	TCase *c = add_case(s, "extents");
	tcase_add_loop_test(c, keeps_the_map, 0, n * LAYOUTS * 6);
	tcase_add_loop_test(c, verifies_an_unwritten_end, 0, n);
	tcase_add_loop_test(c, keeps_a_huge_hole, 0, n);
	tcase_add_loop_test(c, clones, 0, n * 4);
	tcase_add_loop_test(c, obeys, 0, n);
	tcase_add_loop_test(c, iterates, 0, n);
	return run_suite(s);
}
