/* SPDX-License-Identifier: MIT
 * What comparing with the source finds, and what it cannot: --verify and --resume.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SIZE   ((off_t)(1 << 20) + 7)
#define PART   ((off_t)(512 << 10) + 100) /* what the interrupted copy has left */
#define NOBODY 65534
#define DST    "d/dst"
#define REST   "d/dst.fcopy-part/data"

struct notes {
	int warnings;
	int last; /* errno of the last one */
};

static void note(void *user, const struct fcopy_event *event)
{
	struct notes *notes = user;
	if (event->kind != FCOPY_EVENT_WARNING)
		return;
	notes->warnings++;
	notes->last = event->error->err;
}

/* A copy that differs from its source: the error has the offset, and the copy does not get its
 * name. */
static void damage(void)
{
	need(exists(REST));
	write_at(REST, 70000, 1, 3);
}

static void sees_a_difference(void **state)
{
	struct fcopy_report report;
	struct fcopy_options o = {.api = FCOPY_API, .verify = true, .resume = true};
	(void)state;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	fault_before(damage);
	fault_set("fdatasync", 2, 0); /* the first one is of the journal */
	fault_on();
	int r = fcopy_copy("src", DST, &o, &report);
	fault_off();
	assert_int_equal(r, -1);
	assert_errno(report.error.err, EIO);
	assert_non_null(report.error.reason);
	assert_string_equal(report.error.reason, "differs from the source at byte 70000");
	assert_false(exists(DST));
}

/* What an interrupted copy leaves. */
static void interrupt(void)
{
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	make_part("d", "dst", "src", PART, 1);
}

/* The lock of a part on SMB: after the two reads of the journal, the second one is that of the
 * part, by its second descriptor. */
static void locked_part_is_read(void **state)
{
	const struct fcopy_options options = {.api = FCOPY_API, .resume = true};
	struct fcopy_report report;
	(void)state;
	interrupt();
	fault_set("pread64", 4, EACCES);
	fault_on();
	int r = fcopy_copy("src", DST, &options, &report);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	assert_int_equal(report.resumed, PART / 4096 * 4096);
	assert_true(same_bytes("src", DST));
}

/* The next try will see by itself how much of it is good. */
static void part_cannot_be_cut(void **state)
{
	const struct fcopy_options options = {.api = FCOPY_API, .resume = true};
	struct fcopy_report report;
	(void)state;
	interrupt();
	fault_set("ftruncate64", FAULT_EVERY + 1, EIO);
	fault_on();
	assert_int_equal(fcopy_copy("src", DST, &options, &report), -1);
	fault_off();
	assert_errno(report.error.err, EIO);
	assert_int_equal(names_in("d"), 1);
	assert_int_equal(fcopy_copy("src", DST, &options, &report), 0);
	assert_true(same_bytes("src", DST));
}

/* Where the file system has no O_DIRECT its pages are dropped, and a warning says so; what cannot
 * be opened again at all fails. */
static void cannot_be_opened_again(void **state)
{
	struct notes notes = {.warnings = 0};
	struct fcopy_report report;
	struct fcopy_options o = {.api = FCOPY_API, .verify = true, .notify = note, .user = &notes};
	(void)state;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	for (int nth = 3; nth <= 4; nth++) { /* after the source and d */
		fault_set("open64", nth, EINVAL);
		fault_on();
		assert_int_equal(fcopy_copy("src", DST, &o, &report), 0);
		fault_off();
		assert_true(fault_seen());
		assert_int_equal(notes.warnings, nth - 2);
		assert_errno(notes.last, EOPNOTSUPP);
		assert_true(same_bytes("src", DST));
		need(unlink(DST) == 0);
		fault_set("open64", FAULT_EVERY + nth, EMFILE);
		fault_on();
		assert_int_equal(fcopy_copy("src", DST, &o, &report), -1);
		fault_off();
		assert_errno(report.error.err, EMFILE);
		assert_string_equal(report.error.path, nth == 3 ? "src" : DST);
		assert_int_equal(names_in("d"), 0);
	}
}

static int copy_directory(const struct fcopy_tree_options *o, const char *dst)
{
	static struct fcopy_tree_report report;
	const char *src = "src";
	return fcopy_tree(&src, 1, dst, o, &report);
}

static bool is_linked(const char *a, const char *b)
{
	struct stat one, two;
	need(stat(a, &one) == 0 && stat(b, &two) == 0);
	return one.st_ino == two.st_ino;
}

/* The attributes of one file cannot be listed, or not read: whether they are equal is unknown. The
 * first call is that of the comparison. */
static void attributes_cannot_be_read(void **state)
{
	const char *call = *state;
	struct notes notes = {.warnings = 0};
	struct fcopy_tree_options o = {.copy.api = FCOPY_API,
				       .copy.preserve = FCOPY_ATTR_XATTR | FCOPY_ATTR_TIMESTAMPS,
				       .copy.threads = 1,
				       .copy.no_directory = true,
				       .copy.notify = note,
				       .copy.user = &notes,
				       .recursive = true,
				       .update = FCOPY_UPDATE_CHANGED};
	need(mkdir("src", 0755) == 0);
	make_file("src/f", PART, DENSE, 1);
	need(setxattr("src/f", "user.fcopy", "kept", 4, 0) == 0);
	assert_int_equal(copy_directory(&o, "dst"), 0);
	fault_set(call, FAULT_EVERY + 1, EIO);
	fault_on();
	assert_int_equal(copy_directory(&o, "dst"), 0);
	fault_off();
	assert_true(fault_seen());
	assert_true(notes.warnings > 0); /* a repair was tried */
	assert_errno(notes.last, EIO);
	o.update = FCOPY_UPDATE_ALL;
	o.link_dest = "dst";
	fault_on();
	assert_int_equal(copy_directory(&o, "new"), 0);
	fault_off();
	assert_false(is_linked("new/f", "dst/f"));
	assert_int_equal(copy_directory(&o, "next"), 0);
	assert_true(is_linked("next/f", "dst/f"));
}

int main(void)
{
	cases_enter("ext4");
	case_add(sees_a_difference, NULL, "verify: the copy differs");
	case_add(cannot_be_opened_again, NULL, "verify: the files cannot be opened again");
	case_add(locked_part_is_read, NULL, "resume: a part that only its lock's holder can read");
	case_add(part_cannot_be_cut, NULL, "resume: the part cannot be cut");
	case_add(attributes_cannot_be_read, "flistxattr", "mirror: attributes cannot be listed");
	case_add(attributes_cannot_be_read, "fgetxattr", "mirror: an attribute cannot be read");
	return cases_run("comparing");
}
