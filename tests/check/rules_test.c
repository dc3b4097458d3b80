/* SPDX-License-Identifier: MIT
 * What fcopy_copy(), fcopy_tree() and fcopy_serve() refuse before they open anything, and errors as
 * text.
 */
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void begin(void)
{
	enter(&dirs[0]);
	set_label("on %s", dirs[0].name);
	make_file("src", 20000, DENSE, 1);
	make_file("dst", 20000, DENSE, 2);
	make_file("old", 20000, DENSE, 2);
}

enum entry_point { COPY, TREE, SERVE };
static const char *const entry_names[] = {"fcopy_copy", "fcopy_tree", "fcopy_serve"};

static const uint64_t one = 1;

static const struct refused {
	enum entry_point by;
	const char *dst, *mode, *option;
	struct fcopy_tree_options options; /* recursive, too */
} refused[] = {
    {COPY, "dst", "auto", "inplace", {.copy.in_place = FCOPY_WHEN_ALWAYS, .copy.resume = true}},
    {COPY, "dst", "auto", "inplace", {.copy.in_place = FCOPY_WHEN_ALWAYS, .copy.no_clobber = true}},
    {COPY,
     "dst",
     "auto",
     "reflink",
     {.copy.reflink = FCOPY_WHEN_ALWAYS, .copy.sparse = FCOPY_WHEN_AUTO}},
    {COPY, "dst", "auto", "reflink", {.copy.reflink = FCOPY_WHEN_ALWAYS, .copy.no_cache = true}},
    {COPY,
     "dst",
     "auto",
     "preallocate",
     {.copy.preallocate = FCOPY_WHEN_ALWAYS, .copy.sparse = FCOPY_WHEN_ALWAYS}},
    {COPY, "dst", "auto", "count", {.copy.reflink = FCOPY_WHEN_ALWAYS, .copy.count = 1}},
    {COPY, "dst", "auto", "buffer-size", {.copy.buffer_size = 4096}},
    {COPY, "dst", "readwrite", "buffer-size", {.copy.buffer_size = FCOPY_BUFFER_MAX + 1}},
    {COPY, "dst", "parallel", "threads", {.copy.threads = FCOPY_THREADS_MAX + 1}},
    {COPY, "dst", "sendfile", "threads", {.copy.threads = 2}},
    {COPY, "dst", "sendfile", "sparse", {.copy.sparse = FCOPY_WHEN_AUTO}},
    {COPY, "dst", "sendfile", "reflink", {.copy.reflink = FCOPY_WHEN_NEVER}},
    {COPY, "dst", "sendfile", "no-cache", {.copy.no_cache = true}},
    {COPY, "dst", "auto", "timeout", {.copy.timeout_ms = 1000}},
    {COPY, "tcp:127.0.0.1:1", "auto", "force", {.copy.force = true}},
    {COPY, "tcp:127.0.0.1:1", "auto", "verify", {.copy.verify = true}},
    {COPY, "tcp:127.0.0.1:1", "auto", "fsync", {.copy.fsync = true}},
    {TREE, "new", "auto", "inplace", {.copy.in_place = FCOPY_WHEN_AUTO, .copy.no_clobber = true}},
    {TREE, "new", "auto", "inplace", {.copy.in_place = FCOPY_WHEN_ALWAYS, .copy.resume = true}},
    {TREE, "new", "auto", "count", {.copy.count = 1}},
    {TREE, "new", "auto", "size", {.copy.expected_size = 1}},
    {TREE, "new", "auto", "benchmark", {.copy.scratch = true}},
    {TREE, "new", "sendfile", "buffer-size", {.copy.buffer_size = 4096}},
    {TREE, "new", "sendfile", "threads", {.copy.threads = FCOPY_THREADS_MAX + 1}},
    {TREE, "new", "auto", "checksum", {.checksum = true}},
    {TREE, "new", "auto", "max-delete", {.max_delete = &one}},
    {TREE, "new", "auto", "link", {.link = true, .copy.resume = true}},
    {TREE, "-", "auto", "recursive", {.copy.force = true}},
    {SERVE, "tcp-listen:0", "auto", "size", {.copy.expected_size = 1}},
    {SERVE, "tcp-listen:0", "auto", "preserve", {.copy.preserve = FCOPY_ATTR_MODE}},
    {SERVE, "tcp-listen:0", "auto", "no-clobber", {.copy.no_clobber = true}},
    {SERVE, "tcp-listen:0", "auto", "threads", {.copy.threads = 2}},
    {SERVE, "dst", "auto", "keep-listening", {.copy.force = true}},
    {SERVE, "http-listen:0", "auto", "size", {.copy.expected_size = 1}},
    {SERVE, "http-listen:0", "auto", "preserve", {.copy.preserve = FCOPY_ATTR_MODE}},
    {COPY, "http-listen:0", "auto", "size", {.copy.expected_size = 1}},
    {COPY, "http-listen:0", "auto", "force", {.copy.force = true}},
    {COPY, "http-listen:0", "copy_file_range", "mode", {.copy.fsync = false}},
    {COPY, "http-listen:0", "auto", "verify", {.copy.verify = true}},
};

/* The error names the option, and nothing was opened, created or changed. */
START_TEST(refuses)
{
	static struct fcopy_tree_report tree;
	static const char *const src[] = {"src"};
	const struct refused *x = &refused[_i];
	const struct fcopy_error *e = x->by == TREE ? &tree.error : &report.error;
	struct fcopy_tree_options o = x->options;
	static const volatile int stop = 1; /* an accepted server ends at once */
	static const struct fcopy_service service = {.stop = &stop};
	begin();
	set_label("row %d, %s to %s in mode %s, expects a refusal of --%s", _i, entry_names[x->by],
		  x->dst, x->mode, x->option);
	o.recursive = true;
	o.copy.api = FCOPY_API;
	o.copy.mode = fcopy_mode_find(x->mode);
	int r = x->by == COPY   ? fcopy_copy("src", x->dst, &o.copy, &report)
		: x->by == TREE ? fcopy_tree(src, 1, x->dst, &o, &tree)
				: fcopy_serve(src, 1, x->dst, &o.copy, &service, &report);
	check(r == -1, "accepted: %d, not -1", r);
	check(e->option && strcmp(e->option, x->option) == 0, "option %s, not %s (%s: %s: %s)",
	      e->option, x->option, e->path, e->call, e->reason ? e->reason : strerror(e->err));
	check(e->unsuitable, "%s is no reason to refuse these operands", e->option);
	check(e->advice == FCOPY_ADVICE_USAGE, "advice %d, not %d", e->advice, FCOPY_ADVICE_USAGE);
	check(!e->call, "%s was called, not nothing", e->call);
	check(same_bytes("dst", "old"), "dst was changed");
	check(access("new", F_OK) < 0, "new was created");
	leave();
}
END_TEST

START_TEST(errors_have_a_text)
{
	static const struct {
		struct fcopy_error error;
		const char *text;
	} cases[] = {
	    {{.err = EIO}, "%s"},
	    {{.err = EIO, .path = "a"}, "a: %s"},
	    {{.err = EIO, .path = "a", .call = "pread"}, "a: pread: %s"},
	    {{.err = EIO, .path = "a", .call = "pread", .operation = "read back"},
	     "a: read back: %s"},
	    {{.err = EXDEV, .path = "a", .path2 = "b", .call = "splice"}, "a -> b: splice: %s"},
	    {{.err = EINVAL, .path = "a", .path2 = "b", .reason = "are the same file"},
	     "a and b: are the same file"},
	    {{.err = EINVAL, .option = "size", .reason = "no"}, "--size: no"},
	    {{.err = EINVAL, .option = "size", .path = "a", .reason = "no"}, "a: no"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[FCOPY_ERROR_TEXT_MAX], expected[64], cut[4];
		snprintf(expected, sizeof(expected), cases[i].text, strerror(cases[i].error.err));
		int n = fcopy_error_text(&cases[i].error, text, sizeof(text));
		ck_assert_str_eq(text, expected);
		ck_assert_int_eq(n, (int)strlen(expected));
		ck_assert_int_eq(fcopy_error_text(&cases[i].error, cut, sizeof(cut)), n);
		ck_assert_int_eq(strncmp(cut, expected, 3), 0);
		ck_assert_int_eq(cut[3], '\0');
	}
}
END_TEST

/* A caller that forgot the field, or was compiled with another header. */
START_TEST(refuses_another_api)
{
	static const int apis[] = {0, -1, FCOPY_API + 1};
	static const char *const src[] = {"src"};
	static const volatile int stop = 1;
	static const struct fcopy_service service = {.stop = &stop};
	begin();
	make_file("dst", 20000, DENSE, 2);
	struct fcopy_options o = {.api = apis[_i]};
	check(fcopy_copy("src", "dst", &o, &report) == -1, "api %d was accepted", o.api);
	check(report.error.err == EINVAL, "%d, not %d", report.error.err, EINVAL);
	check(same_bytes("dst", "old"), "touched");
	check(fcopy_serve(src, 1, "tcp-listen:0", &o, &service, &report) == -1, "api %d: served",
	      o.api);
	check(report.error.err == EINVAL, "%d, not %d", report.error.err, EINVAL);
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	Suite *s = suite_create("rules");
	TCase *c = add_case(s, "rules");
	tcase_add_loop_test(c, refuses, 0, (int)(sizeof(refused) / sizeof(*refused)));
	tcase_add_test(c, errors_have_a_text);
	tcase_add_loop_test(c, refuses_another_api, 0, 3);
	return run_suite(s);
}
