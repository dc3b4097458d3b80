/* SPDX-License-Identifier: MIT
 * What is kept besides the bytes, and beside the copy: attributes, an existing destination, the
 * part of an interrupted copy, the page cache; and a copy that is compared with its source.
 */
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SIZE ((off_t)(3 << 20) + 4099)

static void begin(int i)
{
	enter(&dirs[i]);
	set_label("on %s", dirs[i].name);
	make_file("src", SIZE, DENSE, 1);
	make_file("old", 20000, DENSE, 2);
}

static int copy_to(const char *dst, struct fcopy_options o)
{
	o.api = FCOPY_API;
	return fcopy_copy("src", dst, &o, &report);
}

START_TEST(existing_destination)
{
	begin(_i);
	make_file("dst", 20000, DENSE, 2);
	struct fcopy_options o = {.api = FCOPY_API, .no_clobber = true};
	check(copy_to("dst", o) == 0 && report.skipped, "%s", report.error.call);
	check(same_bytes("old", "dst"), "touched");
	check(report.error.err == 0, "%d", report.error.err);
	check(copy_to("new", o) == 0 && !report.skipped, "%s", report.error.call);
	check(same_bytes("src", "new") && names_in(".") == 4, "bytes differ");
	leave();
}
END_TEST

START_TEST(attributes)
{
	begin(_i);
	struct stat a, b;
	const struct timespec times[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
	char value[8] = "";
	int fd = open("src", O_RDWR | O_CLOEXEC);
	bool xattr = fsetxattr(fd, "user.fcopy", "kept", 4, 0) == 0;
	need(fchmod(fd, 04751) == 0 && futimens(fd, times) == 0);
	close(fd);
	if (geteuid() == 0)
		need(chown("src", 1234, 4321) == 0 && chmod("src", 04751) == 0);
	struct fcopy_options o = {.api = FCOPY_API,
				  .preserve = FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP |
					      FCOPY_ATTR_TIMESTAMPS |
					      (xattr ? FCOPY_ATTR_XATTR : 0)};
	o.preserve_required = o.preserve;
	check(copy_to("dst", o) == 0, "%s: %d", report.error.call, report.error.err);
	need(stat("src", &a) == 0 && stat("dst", &b) == 0);
	check(a.st_mode == b.st_mode, "%o, not %o", b.st_mode, a.st_mode);
	check(a.st_uid == b.st_uid && a.st_gid == b.st_gid, "owner");
	check(b.st_mtim.tv_sec == times[1].tv_sec && b.st_mtim.tv_nsec / 100 == 9876543, "time");
	check(!xattr || getxattr("dst", "user.fcopy", value, sizeof(value)) == 4, "attribute");
	check(!xattr || memcmp(value, "kept", 4) == 0, "attribute");
	check(same_bytes("src", "dst"), "bytes differ");
	leave();
}
END_TEST

START_TEST(compares)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i % mode_count];
	const struct dir *d = &dirs[_i / mode_count];
	if (!mode_runs(m, d))
		skip_test("no %s on %s", m->name, d->name);
	begin(_i / mode_count);
	set_label("mode %s on %s", m->name, d->name);
	check(copy_to("dst", (struct fcopy_options){.mode = m, .verify = true}) == 0, "%s: %d",
	      report.error.call, report.error.err);
	check(same_bytes("src", "dst"), "bytes differ");
	check(report.seconds[FCOPY_PHASE_VERIFY] > 0, "no time was spent");
	leave();
}
END_TEST

/* Continues after the correct prefix of an earlier part, whatever follows in it. */
START_TEST(resumes)
{
	static const off_t parts[] = {0, 4096, 1 << 20, SIZE, 2 * SIZE};
	begin(_i / 10);
	off_t part = parts[_i % 5];
	bool damaged = _i / 5 % 2;
	set_label("part of %lld%s", (long long)part, damaged ? ", damaged" : "");
	make_part(".", "dst", "src", part, 1);
	if (damaged && part > 0)
		write_at("dst.fcopy-part/data", part / 2, 1, 2);
	check(copy_to("dst", (struct fcopy_options){.resume = true}) == 0, "%s: %d",
	      report.error.call, report.error.err);
	check(same_bytes("src", "dst"), "bytes differ");
	off_t most = part < SIZE ? part : SIZE;
	check(report.resumed <= (uint64_t)most, "%llu", (unsigned long long)report.resumed);
	check(damaged || report.resumed + 4096 > (uint64_t)most, "%llu",
	      (unsigned long long)report.resumed);
	check(names_in(".") == 3, "%d names", names_in("."));
	leave();
}
END_TEST

/* A clone cannot continue after a prefix: it starts over, even if the part is correct. */
START_TEST(clones_over_a_part)
{
	const struct fcopy_mode *m = fcopy_mode_find("reflink");
	struct fcopy_options o = {.resume = true, .mode = _i % 2 ? m : NULL};
	if (!mode_runs(m, &dirs[_i / 4]))
		skip_test("no %s on %s", m->name, dirs[_i / 4].name);
	begin(_i / 4);
	if (!o.mode)
		o.reflink = FCOPY_WHEN_ALWAYS;
	make_part(".", "dst", "src", _i / 2 % 2 ? SIZE : 1 << 20, 1);
	check(copy_to("dst", o) == 0, "%s: %d", report.error.call, report.error.err);
	check(report.cloned && report.resumed == 0, "%llu", (unsigned long long)report.resumed);
	check(same_bytes("src", "dst"), "bytes differ");
	check(names_in(".") == 3, "%d names", names_in("."));
	leave();
}
END_TEST

/* What others may write is no part of ours. */
START_TEST(refuses_a_planted_part)
{
	begin(_i);
	make_file("dst.fcopy-part", 4096, DENSE, 1);
	need(chmod("dst.fcopy-part", 0666) == 0);
	check(copy_to("dst", (struct fcopy_options){.resume = true}) == -1, "taken");
	check(!exists("dst") && size_of("dst.fcopy-part") == 4096, "touched");
	need(unlink("dst.fcopy-part") == 0 && symlink("old", "dst.fcopy-part") == 0);
	check(copy_to("dst", (struct fcopy_options){.resume = true}) == -1, "followed");
	check(size_of("old") == 20000, "touched");
	leave();
}
END_TEST

/* The part is the source: truncating or renaming it would destroy the only copy. */
START_TEST(refuses_a_source_that_is_the_part)
{
	begin(_i);
	need(rename("src", "dst.fcopy-part") == 0 && chmod("dst.fcopy-part", 0600) == 0);
	const struct fcopy_options options = {.api = FCOPY_API, .resume = true};
	check(fcopy_copy("dst.fcopy-part", "dst", &options, &report) == -1, "copied");
	check(report.error.err == EBUSY, "%d", report.error.err);
	check(!exists("dst") && size_of("dst.fcopy-part") == SIZE, "touched");
	need(link("dst.fcopy-part", "src") == 0);
	check(fcopy_copy("src", "dst", &options, &report) == -1, "copied");
	check(!exists("dst") && size_of("src") == SIZE, "touched");
	leave();
}
END_TEST

/* sparse=always: blocks of zeros become holes, in a new file and in place. */
START_TEST(zeros_become_holes)
{
	const struct dir *d = &dirs[_i / 2];
	bool in_place = _i % 2;
	if (!d->holes || !d->fallocate)
		skip_test("%s cannot punch or find holes", d->name);
	begin(_i / 2);
	struct fcopy_options o = {.api = FCOPY_API,
				  .sparse = FCOPY_WHEN_ALWAYS,
				  .in_place = in_place ? FCOPY_WHEN_ALWAYS : FCOPY_WHEN_NEVER};
	make_file("holes", SIZE, SPARSE, 1);
	need(fcopy_copy("holes", "src",
			&(struct fcopy_options){.api = FCOPY_API, .sparse = FCOPY_WHEN_NEVER},
			&report) == 0);
	if (in_place)
		make_file("dst", 2 * SIZE, DENSE, 2);
	check(copy_to("dst", o) == 0, "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	struct stat st;
	map_of("dst");
	need(stat("dst", &st) == 0);
	check(st.st_blocks * 512 < SIZE * 7 / 8, "%lld", (long long)st.st_blocks);
	leave();
}
END_TEST

/* It is refused where there is neither direct I/O nor RWF_DONTCACHE, and nowhere else. */
START_TEST(past_the_cache)
{
	begin(_i);
	bool able = engine_runs(&engine_direct, &dirs[_i]) || dirs[_i].dontcache;
	int r = copy_to("dst", (struct fcopy_options){.no_cache = true});
	check(r == (able ? 0 : -1), "%s: %d", report.error.call, report.error.err);
	check(exists("dst") == able, "dst");
	check(!able || same_bytes("src", "dst"), "bytes differ");
	check(able || report.error.err == EOPNOTSUPP, "%d", report.error.err);
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	int n = (int)dir_count;
	Suite *s = suite_create("keeping");
	TCase *c = add_case(s, "keeping");
	tcase_add_loop_test(c, existing_destination, 0, n);
	tcase_add_loop_test(c, attributes, 0, n);
	tcase_add_loop_test(c, compares, 0, n * mode_count);
	tcase_add_loop_test(c, resumes, 0, n * 10);
	tcase_add_loop_test(c, clones_over_a_part, 0, n * 4);
	tcase_add_loop_test(c, refuses_a_planted_part, 0, n);
	tcase_add_loop_test(c, refuses_a_source_that_is_the_part, 0, n);
	tcase_add_loop_test(c, zeros_become_holes, 0, n * 2);
	tcase_add_loop_test(c, past_the_cache, 0, n);
	return run_suite(s);
}
