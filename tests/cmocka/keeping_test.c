/* SPDX-License-Identifier: MIT
 * The calls of the steps that are asked for: comparing with the source, going on with a part,
 * keeping attributes, keeping what is there. A copy that fails leaves the destination as it was,
 * and of a part no byte that is not the source's.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SIZE ((off_t)(1 << 20) + 7)
#define PART ((off_t)(512 << 10) + 100) /* what the interrupted copy has left */
#define DST  "d/dst"
#define REST "d/dst.fcopy-part"
#define ALL  (FCOPY_MODE | FCOPY_OWNERSHIP | FCOPY_TIMESTAMPS | FCOPY_XATTR)

/* INSISTED: a lost attribute fails the copy. NOT_OVER: no_clobber, without O_TMPFILE. HOLES: those
 * of a sparse source, in the old file. */
enum scene { VERIFIED, RESUMED, PRESERVED, INSISTED, UNCACHED, NOT_OVER, HOLES, SCENES };

static const char *const scene_names[SCENES] = {
    "verify", "resume", "preserve", "preserve or fail", "no cache", "no clobber", "holes in place"};

static const struct fcopy_options options[SCENES] = {
    [VERIFIED] = {.verify = true},
    [RESUMED] = {.resume = true},
    [PRESERVED] = {.preserve = ALL},
    [INSISTED] = {.preserve = ALL, .preserve_required = ALL, .fsync = true},
    [UNCACHED] = {.no_cache = true},
    [NOT_OVER] = {.no_clobber = true},
    [HOLES] = {.in_place = true},
};

enum want { FAILS, WARNS, GOES_ON, EITHER };

static const int storage[] = {EIO, ENOSPC, -1};
static const int input_output[] = {EIO, -1};
static const int denied[] = {EPERM, EROFS, EIO, -1};
static const int no_memory[] = {ENOMEM, -1};
static const int no_attribute[] = {EOPNOTSUPP, -1};
static const int no_value[] = {ENODATA, EOPNOTSUPP, -1};
static const int no_lock[] = {ENOLCK, EBUSY, -1};
static const int soft[] = {EINTR, EAGAIN, -1};
static const int lacking[] = {EINVAL, ENOSYS, -1};
static const int no_uncached[] = {EOPNOTSUPP, EIO, -1};

static const struct row {
	enum scene scene;
	const char *call;
	const int *errs;
	enum want want;
	const char *told; /* what the error calls it; NULL: several calls of that name */
} rows[] = {
    {VERIFIED, "pread64", input_output, FAILS, NULL},
    {VERIFIED, "pread64", soft, GOES_ON, NULL},
    {VERIFIED, "mmap64 of memory", no_memory, FAILS, "mmap"},
    {VERIFIED, "fdatasync", storage, FAILS, "fdatasync"},
    {RESUMED, "openat64", denied, FAILS, "open of its .fcopy-part"},
    {RESUMED, "flock", no_lock, FAILS, "open of its .fcopy-part"},
    {RESUMED, "fchmod", denied, FAILS, NULL},
    {RESUMED, "fstat64", input_output, FAILS, NULL},
    {RESUMED, "open64", input_output, FAILS, "open"},
    {RESUMED, "lseek64", input_output, EITHER, "lseek"},
    {RESUMED, "ftruncate64", storage, EITHER, "ftruncate"},
    {RESUMED, "pread64", input_output, FAILS, NULL},
    {RESUMED, "pwrite64", storage, FAILS, "pwrite"},
    {RESUMED, "mmap64 of memory", no_memory, FAILS, "mmap"},
    {RESUMED, "renameat", denied, FAILS, "renameat"},
    {PRESERVED, "futimens", denied, WARNS, "futimens"},
    {PRESERVED, "fchown", denied, WARNS, "fchown"},
    {PRESERVED, "fchmod", denied, WARNS, "fchmod"},
    {PRESERVED, "flistxattr", input_output, WARNS, "fsetxattr"},
    {PRESERVED, "flistxattr", no_attribute, GOES_ON, NULL},
    {PRESERVED, "fgetxattr", input_output, WARNS, NULL},
    {PRESERVED, "fgetxattr", no_value, GOES_ON, NULL},
    {PRESERVED, "fsetxattr", storage, WARNS, NULL},
    {INSISTED, "futimens", denied, FAILS, "futimens"},
    {INSISTED, "fchown", denied, FAILS, "fchown"},
    {INSISTED, "fchmod", denied, FAILS, "fchmod"},
    {INSISTED, "flistxattr", input_output, FAILS, "fsetxattr"},
    {INSISTED, "fgetxattr", input_output, FAILS, NULL},
    {INSISTED, "fsetxattr", storage, FAILS, NULL},
    {INSISTED, "fstat64", input_output, FAILS, NULL},
    {UNCACHED, "preadv64v2", no_uncached, FAILS, "pread"},
    {UNCACHED, "preadv64v2", soft, GOES_ON, NULL},
    {UNCACHED, "pwritev64v2", no_uncached, FAILS, "pwrite"},
    {UNCACHED, "pwritev64v2", soft, GOES_ON, NULL},
    {NOT_OVER, "renameat2", lacking, GOES_ON, NULL},
    {NOT_OVER, "renameat2", denied, FAILS, "renameat"},
    {HOLES, "fallocate64", no_attribute, GOES_ON, NULL},
    {HOLES, "ftruncate64", storage, FAILS, "ftruncate"},
    {HOLES, "pwrite64", storage, FAILS, "pwrite"},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	int err;
	int failures;
	int warnings; /* of one copy */
	struct fcopy_error warning;
};

static void note(void *user, const struct fcopy_event *event)
{
	struct run *run = user;
	if (event->kind != FCOPY_EVENT_WARNING)
		return;
	run->warnings++;
	run->warning = *event->error;
}

static void set_the_scene(enum scene scene)
{
	unlink(DST);
	unlink(REST);
	if (scene == HOLES)
		make_file(DST, PART, DENSE, 2);
	if (scene != RESUMED)
		return;
	make_file(REST, PART, DENSE, 1);
	need(chmod(REST, 0600) == 0);
}

static void expect_told(const struct run *run, const struct fcopy_error *e)
{
	assert_int_equal(e->err, run->err);
	assert_non_null(e->call);
	if (run->row->told)
		assert_string_equal(e->call, run->row->told);
}

/* The part that is left can be gone on with, to the same bytes. */
static void check_rest(void)
{
	struct fcopy_report report;
	assert_false(exists(DST));
	if (exists(REST))
		assert_true(same_range("src", REST, 0, size_of(REST)));
	assert_int_equal(names_in("d"), exists(REST));
	assert_int_equal(fcopy_copy("src", DST, &options[RESUMED], &report), 0);
	assert_true(same_bytes("src", DST));
	assert_int_equal(names_in("d"), 1);
}

static void check_answer(struct run *run, int r, const struct fcopy_report *report)
{
	enum want want = fault_seen() ? run->row->want : GOES_ON;
	if (want != EITHER)
		assert_int_equal(r, want == FAILS ? -1 : 0);
	assert_int_equal(run->warnings, want == WARNS);
	if (want == WARNS)
		expect_told(run, &run->warning);
	if (r < 0)
		expect_told(run, &report->error);
	else
		assert_int_equal(report->error.err, 0);
	run->failures += r < 0;
}

static void once(void *arg)
{
	struct run *run = arg;
	enum scene scene = run->row->scene;
	struct fcopy_options o = options[scene];
	struct fcopy_report report;
	o.notify = note;
	o.user = run;
	run->warnings = 0;
	set_the_scene(scene);
	int before = open_descriptors();
	if (scene == NOT_OVER)
		fault_also("openat64 of O_TMPFILE", EOPNOTSUPP);
	if (scene == HOLES && strcmp(run->row->call, "pwrite64") == 0)
		fault_also("fallocate64", EOPNOTSUPP); /* zeros are written */
	if (scene == UNCACHED)
		fault_also("fcntl64 of flags", EINVAL); /* no O_DIRECT */
	fault_on();
	int r = fcopy_copy("src", DST, &o, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	check_answer(run, r, &report);
	if (r == 0)
		assert_true(same_bytes("src", DST));
	if (r == 0 || scene != RESUMED)
		assert_int_equal(names_in("d"), r == 0 || scene == HOLES);
	else
		check_rest();
}

static void sweep(void **state)
{
	struct run *run = *state;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, run->row->scene == HOLES ? SPARSE : DENSE, 1);
	need(setxattr("src", "user.fcopy", "kept", 4, 0) == 0);
	need(geteuid() != 0 || chown("src", 1234, 4321) == 0);
	fault_sweep(run->row->call, run->err, once, run);
	if (run->row->want == EITHER)
		assert_true(run->failures > 0);
}

/* A copy that is not what was copied: told with the place, and not given the name. */
static void damage(void)
{
	need(exists(REST));
	write_at(REST, 70000, 1, 3);
}

static void sees_a_difference(void **state)
{
	struct fcopy_report report;
	struct fcopy_options o = {.verify = true, .resume = true};
	(void)state;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	fault_meanwhile(damage);
	fault_set("fsync", 1, 0);
	fault_on();
	int r = fcopy_copy("src", DST, &o, &report);
	fault_off();
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, EIO);
	assert_non_null(strstr(report.error.reason, "differs from the source at byte 70000"));
	assert_false(exists(DST));
}

/* What cannot be cut to its good bytes is not left to be gone on with. */
static void part_cannot_be_cut(void **state)
{
	struct fcopy_report report;
	(void)state;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	set_the_scene(RESUMED);
	fault_set("ftruncate64", FAULT_EVERY + 1, EIO);
	fault_on();
	assert_int_equal(fcopy_copy("src", DST, &options[RESUMED], &report), -1);
	fault_off();
	assert_int_equal(report.error.err, EIO);
	assert_int_equal(names_in("d"), 0);
}

/* Where the file system has no O_DIRECT its pages are dropped, and that is told; what cannot be
 * opened again at all fails. */
static void cannot_be_opened_again(void **state)
{
	struct run run = {.failures = 0};
	struct fcopy_report report;
	struct fcopy_options o = {.verify = true, .notify = note, .user = &run};
	(void)state;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	for (int nth = 3; nth <= 4; nth++) { /* after the source and d */
		fault_set("open64", nth, EINVAL);
		fault_on();
		assert_int_equal(fcopy_copy("src", DST, &o, &report), 0);
		fault_off();
		assert_true(fault_seen());
		assert_int_equal(run.warnings, nth - 2);
		assert_int_equal(run.warning.err, EOPNOTSUPP);
		assert_true(same_bytes("src", DST));
		need(unlink(DST) == 0);
		fault_set("open64", FAULT_EVERY + nth, EMFILE);
		fault_on();
		assert_int_equal(fcopy_copy("src", DST, &o, &report), -1);
		fault_off();
		assert_int_equal(report.error.err, EMFILE);
		assert_string_equal(report.error.path, nth == 3 ? "src" : DST);
		assert_int_equal(names_in("d"), 0);
	}
}

int main(void)
{
	static struct run runs[ROWS * 4];
	size_t n = 0;
	cases_enter("ext4");
	for (size_t i = 0; i < ROWS; i++)
		for (const int *err = rows[i].errs; *err >= 0; err++) {
			runs[n] = (struct run){.row = &rows[i], .err = *err};
			case_add(sweep, &runs[n++], "%s: %s fails with %s",
				 scene_names[rows[i].scene], rows[i].call, errno_name(*err));
		}
	case_add(sees_a_difference, NULL, "verify: the copy differs");
	case_add(cannot_be_opened_again, NULL, "verify: the files cannot be opened again");
	case_add(part_cannot_be_cut, NULL, "resume: the part cannot be cut");
	return cases_run("keeping");
}
