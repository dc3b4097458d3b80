/* SPDX-License-Identifier: MIT
 * From the name DST to its place, into a directory and through a link to one: each call of it
 * fails; names that are too long; and the name at the end.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct row {
	const char *call, *reported; /* what the error calls it */
	const char *dst;
	int err;
} rows[] = {
    {"open64", "open", "d", EACCES},          {"openat64", "open", "d", EMFILE},
    {"fstatat64", "stat", "d", EIO},          {"openat64", "open", "link", EACCES},
    {"fstatat64", "stat", "link/", EIO},      {"fstat64", "fstat", "link", EIO},
    {"fstatat64", "stat", "d/../link/", EIO},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

static unsigned failures; /* of one sweep */

static void once(void *arg)
{
	const struct row *row = arg;
	struct fcopy_report report;
	unlink("d/src");
	int before = open_descriptors();
	fault_on();
	int r = fcopy_copy("src", row->dst, NULL, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	failures += r < 0;
	/* The first one asks whether DST is in /dev, and may fail. */
	if (strcmp(row->call, "fstat64") == 0 && fault_seen() && r == 0) {
		assert_true(same_bytes("src", "d/src"));
		return;
	}
	assert_int_equal(r, fault_seen() ? -1 : 0);
	assert_int_equal(report.error.err, fault_seen() ? row->err : 0);
	assert_int_equal(names_in("d"), !fault_seen());
	if (fault_seen())
		assert_string_equal(report.error.call, row->reported);
	else
		assert_true(same_bytes("src", "d/src"));
}

static void make_places(void)
{
	need(mkdir("d", 0755) == 0 && symlink("d", "link") == 0);
	make_file("src", 5000, DENSE, 1);
}

static void sweep(void **state)
{
	const struct row *row = *state;
	make_places();
	failures = 0;
	/* Where container filters deny statx(2), which else finds out that there is no DST. */
	if (strcmp(row->call, "fstatat64") == 0)
		fault_also("statx", ENOSYS);
	fault_sweep(row->call, row->err, once, (void *)row);
	assert_true(failures > 0);
}

/* DST fits, DST/basename(SRC) does not; and one component alone that does not. */
static void too_long(void **state)
{
	static char dst[PATH_MAX];
	struct fcopy_report report;
	(void)state;
	make_places();
	for (size_t at = 0; at < PATH_MAX - 4; at += 2)
		memcpy(dst + at, "./", 3);
	strcpy(dst + PATH_MAX - 4, "d");
	assert_int_equal(fcopy_copy("src", dst, NULL, &report), -1);
	assert_int_equal(report.error.err, ENAMETOOLONG);
	memset(dst, 'x', NAME_MAX + 1);
	dst[NAME_MAX + 1] = '\0';
	assert_int_equal(fcopy_copy("src", dst, NULL, &report), -1);
	assert_int_equal(report.error.err, ENAMETOOLONG);
	assert_int_equal(names_in("d"), 0);
	assert_int_equal(names_in("."), 3);
}

/* A file system without RENAME_NOREPLACE, and what stands in for it fails: no half of the rename.
 */
static void cannot_be_named(void **state)
{
	const struct fcopy_options options = {.api = FCOPY_API, .resume = true, .no_clobber = true};
	const int err = strcmp(*state, "linkat") == 0 ? EACCES : EIO; /* EIO: there are none */
	struct fcopy_report report;
	make_places();
	/* The first removal is that of a probe. */
	fault_set(*state, strcmp(*state, "unlinkat") == 0 ? 2 : 1, err);
	fault_also("renameat2", EINVAL);
	fault_on();
	int r = fcopy_copy("src", "d", &options, &report);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, err);
	assert_string_equal(report.error.call, *state);
	if (exists("d/src"))
		assert_true(same_bytes("src", "d/src"));
	assert_true(exists("d/src.fcopy-part/journal"));
}

/* Two files into a directory: whatever fails, the result says whether both are there. */
static void once_several(void *arg)
{
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = {.copy.api = FCOPY_API, .copy.threads = 1};
	const char *const sources[] = {"src", "link/more"};
	(void)arg;
	need(unlink("d/src") == 0 || errno == ENOENT);
	int before = open_descriptors();
	fault_on();
	int r = fcopy_tree(sources, 2, "into", &options, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	failures += r < 0;
	assert_int_equal(r, names_in("into") == 2 ? 0 : -1);
	need(unlink("into/src") == 0 || errno == ENOENT);
	need(unlink("into/more") == 0 || errno == ENOENT);
}

static void several(void **state)
{
	make_places();
	make_file("d/more", 3000, DENSE, 2);
	need(mkdir("into", 0755) == 0);
	failures = 0;
	fault_sweep(*state, strcmp(*state, "calloc") == 0 ? ENOMEM : EMFILE, once_several, NULL);
	assert_true(failures > 0);
}

int main(void)
{
	cases_enter("ext4");
	for (size_t i = 0; i < ROWS; i++)
		case_add(sweep, &rows[i], "%s: %s fails with %s", rows[i].dst, rows[i].call,
			 errno_name(rows[i].err));
	case_add(cannot_be_named, "linkat", "the new name cannot be given");
	case_add(cannot_be_named, "unlinkat", "the old name cannot be taken away");
	case_add(several, "openat64", "several files: openat fails");
	case_add(several, "fcntl64", "several files: fcntl fails");
	case_add(several, "calloc", "several files: calloc fails");
	case_add(too_long, NULL, "names that are too long");
	return cases_run("places");
}
