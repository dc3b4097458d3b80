/* SPDX-License-Identifier: MIT
 * The source is truncated just before one system call of a copy, for each call in turn. The kernel
 * then writes zeros for bytes that the engine had in a pipe or in a mapping. No such zeros stay in
 * a file. A copy to a stream that may have received some fails.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE   ((off_t)(3 << 20) + 5)
#define COUNT  ((off_t)2 << 20)
#define SHRUNK (COUNT - 4000) /* inside a page */
#define START  100            /* of an open descriptor */

static struct fcopy_report report;

static const struct row {
	const char *mode, *call, *stream_call; /* NULL: the mode takes no stream as DST */
	off_t count;
	bool from_stream; /* the mode takes one as SRC */
} rows[] = {
    {"sendfile", "pread64", "pread64", 0, false},   {"splice", "splice", "splice", 0, true},
    {"splice", "splice", "splice", COUNT, false},   {"splice", "pread64", "pread64", 0, true},
    {"copy_file_range", "pread64", NULL, 0, false}, {"mmap", "pwrite64", "write", 0, false},
    {"mmap", "pwrite64", "write", COUNT, false},    {"parallel", "pwrite64", NULL, 0, false},
    {"auto", "splice", "splice", 0, true},
};

static void shrink(void)
{
	need(truncate("src", SHRUNK) == 0);
}

/* Copies from a file, or an open descriptor at START, to a file, or an open descriptor at 0. */
static int copy_with(const struct row *row, bool src_open, bool dst_open)
{
	const struct fcopy_options options = {
	    .api = FCOPY_API,
	    .mode = fcopy_mode_find(row->mode),
	    .count = (uint64_t)row->count,
	    .reflink = strcmp(row->mode, "auto") == 0 ? FCOPY_WHEN_NEVER : 0};
	static char src[32], dst[32]; /* an error names them */
	strcpy(src, "src");
	strcpy(dst, "dst");
	make_file("src", SIZE, DENSE, 1);
	unlink("dst");
	int in = open("src", O_RDONLY | O_CLOEXEC);
	int out = dst_open ? open("dst", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	need(lseek(in, START, SEEK_SET) == START);
	if (src_open)
		snprintf(src, sizeof(src), "/dev/fd/%d", in);
	if (dst_open)
		snprintf(dst, sizeof(dst), "/dev/fd/%d", out);
	fault_before(shrink);
	fault_on();
	int r = fcopy_copy(src, dst, &options, &report);
	fault_off();
	close(in);
	if (dst_open)
		close(out);
	assert_true(r == 0 || exists("dst"));
	assert_true(size_of("dst") == 0 || same_range("whole", "dst", 0, SHRUNK - START));
	return r;
}

static void file_once(void *arg)
{
	const struct row *row = arg;
	assert_int_equal(copy_with(row, false, false), 0);
	/* auto copies in several steps: the bytes of a step that ended before the truncation stay.
	 */
	if (fault_seen() && strcmp(row->mode, "auto") == 0)
		assert_in_range(size_of("dst"), SHRUNK, SIZE);
	else
		assert_int_equal(size_of("dst"), fault_seen() ? SHRUNK
						 : row->count ? row->count
							      : SIZE);
	assert_int_equal(report.bytes, size_of("dst"));
	assert_int_equal(report.data, size_of("dst"));
	assert_int_equal(report.source_changed, fault_seen());
	assert_true(same_range("whole", "dst", 0, size_of("dst")));
}

static void file_has_no_zeros(void **state)
{
	const struct row *row = *state;
	make_file("whole", SIZE, DENSE, 1);
	fault_sweep(row->call, 0, file_once, *state);
}

static void descriptor_once(void *arg)
{
	assert_int_equal(copy_with(arg, true, false), 0);
	assert_int_equal(size_of("dst"), (fault_seen() ? SHRUNK : SIZE) - START);
	assert_int_equal(report.bytes, size_of("dst"));
	assert_true(same_range("whole", "dst", 0, size_of("dst")));
}

static void copy_of_descriptor_has_no_zeros(void **state)
{
	const struct row *row = *state;
	make_file("src", SIZE, DENSE, 1);
	need(system("tail -c +101 src >whole") == 0);
	fault_sweep(row->call, 0, descriptor_once, *state);
}

static int failures;

/* Also if no bytes past the new end were read yet: a reader would take the shorter stream for the
 * whole source. */
static void stream_once(void *arg)
{
	const struct row *row = arg;
	int r = copy_with(row, false, true);
	if (r == 0) {
		assert_int_equal(size_of("dst"), row->count ? row->count : SIZE);
		assert_true(same_range("whole", "dst", 0, size_of("dst")));
		return;
	}
	failures++;
	assert_true(fault_seen());
	assert_int_equal(report.error.err, EBUSY);
	assert_string_equal(report.error.path, "src");
	assert_string_equal(report.error.reason, "was truncated while it was copied");
	assert_null(report.error.call);
	assert_true(report.source_changed);
}

static void stream_with_zeros_is_a_failure(void **state)
{
	const struct row *row = *state;
	make_file("whole", SIZE, DENSE, 1);
	failures = 0;
	fault_sweep(row->stream_call, 0, stream_once, *state);
	assert_true(failures > 0);
}

#define LARGE ((off_t)20 << 20)

static void empty_source(void)
{
	need(truncate("src", 0) == 0);
}

/* A log file is rotated: the bytes copied before the last call contain no zeros, and stay. */
static void keeps_what_is_gone(void **state)
{
	const struct row *row = *state;
	const struct fcopy_options options = {.api = FCOPY_API, .mode = fcopy_mode_find(row->mode)};
	make_file("src", LARGE, DENSE, 1);
	make_file("whole", LARGE, DENSE, 1);
	fault_set(row->call, 1, 0);
	fault_before(empty_source);
	fault_on();
	int r = fcopy_copy("src", "dst", &options, &report);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	assert_true(report.source_changed);
	assert_int_equal(size_of("dst"), LARGE - (16 << 20));
	assert_true(same_range("whole", "dst", 0, size_of("dst")));
}

int main(void)
{
	cases_enter("ext4");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *mode = rows[i].mode, *count = rows[i].count ? ", --count" : "";
		case_add(file_has_no_zeros, &rows[i], "%s%s: a file, before %s", mode, count,
			 rows[i].call);
		if (strcmp(rows[i].call, "pread64") == 0)
			case_add(keeps_what_is_gone, &rows[i], "%s: the source is emptied at last",
				 mode);
		if (rows[i].stream_call)
			case_add(stream_with_zeros_is_a_failure, &rows[i],
				 "%s%s: a stream, before %s", mode, count, rows[i].stream_call);
		if (rows[i].from_stream)
			case_add(copy_of_descriptor_has_no_zeros, &rows[i],
				 "%s: an open descriptor, before %s", mode, rows[i].call);
	}
	return cases_run("shrinking");
}
