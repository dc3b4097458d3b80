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
#define REST "d/dst.fcopy-part/data"
#define ALL  (FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_XATTR)

/* INSISTED: a lost attribute fails the copy. NOT_OVER: no_clobber, without O_TMPFILE. HOLES: those
 * of a sparse source, in the old file. */
enum scene { VERIFIED, RESUMED, PRESERVED, INSISTED, UNCACHED, NOT_OVER, HOLES, SCENES };

static const char *const scene_names[SCENES] = {
    "verify", "resume", "preserve", "preserve or fail", "no cache", "no clobber", "holes in place"};

static struct fcopy_options options_of(enum scene scene)
{
	return (struct fcopy_options){
	    .api = FCOPY_API,
	    .verify = scene == VERIFIED,
	    .resume = scene == RESUMED,
	    .preserve = scene == PRESERVED || scene == INSISTED ? ALL : 0,
	    .preserve_required = scene == INSISTED ? ALL : 0,
	    .fsync = scene == INSISTED,
	    .no_cache = scene == UNCACHED,
	    .no_clobber = scene == NOT_OVER,
	    .in_place = scene == HOLES ? FCOPY_WHEN_ALWAYS : FCOPY_WHEN_NEVER,
	};
}

enum want { FAILS, WARNS, GOES_ON, EITHER };

static const int storage[] = {EIO, ENOSPC, -1};
static const int input_output[] = {EIO, -1};
static const int denied[] = {EPERM, EROFS, EIO, -1};
static const int refused[] = {EPERM, EROFS, EOPNOTSUPP, -1};
static const int too_large[] = {ENOSPC, EDQUOT, -1};
static const int no_memory[] = {ENOMEM, -1};
static const int no_attribute[] = {EOPNOTSUPP, -1};
static const int no_value[] = {ENODATA, EOPNOTSUPP, -1};
static const int no_lock[] = {ENOLCK, EBUSY, -1};
static const int no_answer[] = {EIO, ENOMEM, -1}; /* whether the lock is held is unknown */
static const int locked[] = {EWOULDBLOCK, -1};
static const int exists_already[] = {EEXIST, -1};
static const int soft[] = {EINTR, -1};
static const int lacking[] = {EINVAL, ENOSYS, -1};
static const int no_uncached[] = {EOPNOTSUPP, EIO, -1};

static const struct row {
	enum scene scene;
	enum want want;
	const char *call;
	const int *errs;
	const char *reported; /* what the error calls it; NULL: several calls of that name */
} rows[] = {
    {VERIFIED, FAILS, "pread64", input_output, NULL},
    {VERIFIED, GOES_ON, "pread64", soft, NULL},
    {VERIFIED, FAILS, "mmap64 of memory", no_memory, "mmap"},
    {VERIFIED, FAILS, "fdatasync", storage, "fdatasync"},
    {RESUMED, EITHER, "openat64", denied, NULL}, /* some only ask */
    {RESUMED, EITHER, "flock", no_answer,
     "lock of its .fcopy-part"}, /* the first: is it a receipt? */
    {RESUMED, GOES_ON, "flock", no_lock, NULL},
    {RESUMED, GOES_ON, "flock", locked, NULL}, /* the first time */
    {RESUMED, WARNS, "fchmod", refused, NULL},
    {RESUMED, EITHER, "fchmod", storage, "fchmod"}, /* one is only tried */
    {RESUMED, EITHER, "open64", input_output, NULL},
    {RESUMED, EITHER, "ftruncate64", storage, "ftruncate"},
    {RESUMED, GOES_ON, "ftruncate64", soft, NULL},
    {RESUMED, FAILS, "pread64", input_output, NULL},
    {RESUMED, FAILS, "pwrite64", storage, "pwrite"},
    {RESUMED, FAILS, "mmap64 of memory", no_memory, "mmap"},
    {RESUMED, FAILS, "renameat", denied, "renameat"},
    {PRESERVED, WARNS, "futimens", refused, "futimens"},
    {PRESERVED, WARNS, "fchown", refused, "fchown"},
    {PRESERVED, WARNS, "fchmod", refused, "fchmod"},
    {PRESERVED, FAILS, "futimens", storage, "futimens"},
    {PRESERVED, FAILS, "fchown", storage, "fchown"},
    {PRESERVED, FAILS, "fchmod", storage, "fchmod"},
    {PRESERVED, WARNS, "flistxattr", input_output, "flistxattr"},
    {PRESERVED, GOES_ON, "flistxattr", no_attribute, NULL},
    {PRESERVED, WARNS, "fgetxattr", input_output, NULL},
    {PRESERVED, GOES_ON, "fgetxattr", no_value, NULL},
    {PRESERVED, GOES_ON, "fgetxattr to ask", input_output, NULL},
    {PRESERVED, WARNS, "fsetxattr", too_large, NULL},
    {PRESERVED, FAILS, "fsetxattr", input_output, "fsetxattr"},
    {INSISTED, FAILS, "futimens", denied, "futimens"},
    {INSISTED, FAILS, "fchown", denied, "fchown"},
    {INSISTED, FAILS, "fchmod", denied, "fchmod"},
    {INSISTED, FAILS, "flistxattr", input_output, "flistxattr"},
    {INSISTED, FAILS, "fgetxattr", input_output, NULL},
    {INSISTED, FAILS, "fsetxattr", storage, NULL},
    {INSISTED, EITHER, "fstat64", input_output, NULL}, /* the last one only reads back */
    {UNCACHED, FAILS, "preadv64v2", no_attribute, NULL},
    {UNCACHED, EITHER, "preadv64v2", input_output, "pread"}, /* the question, then the copy */
    {UNCACHED, GOES_ON, "preadv64v2", soft, NULL},
    {UNCACHED, FAILS, "pwritev64v2", no_uncached, "pwrite"},
    {UNCACHED, GOES_ON, "pwritev64v2", soft, NULL},
    {NOT_OVER, GOES_ON, "renameat2", lacking, NULL},
    {NOT_OVER, FAILS, "renameat2", denied, "renameat"},
    {NOT_OVER, FAILS, "pread64", exists_already, "pread"},
    {NOT_OVER, FAILS, "pwrite64", exists_already, "pwrite"},
    {NOT_OVER, FAILS, "open64", exists_already, "open"},
    {NOT_OVER, EITHER, "close", exists_already, "close"}, /* the others only read, or only ask */
    {NOT_OVER, FAILS, "getrandom", exists_already, "getrandom"},
    {HOLES, GOES_ON, "fallocate64 to punch", no_attribute, NULL},
    {HOLES, FAILS, "ftruncate64", storage, "ftruncate"},
    {HOLES, GOES_ON, "ftruncate64", soft, NULL},
    {HOLES, FAILS, "pwrite64", storage, "pwrite"},
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
	unlink("d/dst.fcopy-part/journal");
	unlink("d/dst.fcopy-part/lock");
	rmdir("d/dst.fcopy-part");
	if (scene == HOLES)
		make_file(DST, PART, DENSE, 2);
	if (scene != RESUMED)
		return;
	make_part("d", "dst", "src", PART, 1);
}

static void expect_told(const struct run *run, const struct fcopy_error *e)
{
	assert_int_equal(e->err, run->err);
	assert_true(e->call || e->reason);
	if (run->row->reported) {
		const char *what = e->operation ? e->operation : e->call;
		if (strncmp(what, run->row->reported, strlen(run->row->reported)) != 0)
			assert_string_equal(what, run->row->reported);
	}
}

/* The part that is left can be gone on with, to the same bytes. */
static void check_rest(void)
{
	const struct fcopy_options options = {.api = FCOPY_API, .resume = true};
	struct fcopy_report report;
	assert_false(exists(DST));
	if (exists(REST))
		assert_true(same_range("src", REST, 0, size_of(REST)));
	assert_int_equal(names_in("d"), exists(REST));
	assert_int_equal(fcopy_copy("src", DST, &options, &report), 0);
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
	struct fcopy_options o = options_of(scene);
	struct fcopy_report report;
	o.notify = note;
	o.user = run;
	run->warnings = 0;
	set_the_scene(scene);
	int before = open_descriptors();
	if (scene == NOT_OVER)
		fault_also("openat64 of O_TMPFILE", EOPNOTSUPP);
	if (scene == HOLES && strcmp(run->row->call, "pwrite64") == 0)
		fault_also("fallocate64 to punch", EOPNOTSUPP); /* zeros are written */
	if (scene == UNCACHED)
		fault_also("fcntl64 of flags", EINVAL); /* no O_DIRECT */
	fault_on();
	int r = fcopy_copy("src", DST, &o, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	assert_false(report.skipped);
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
	const struct errno_case *c = *state;
	struct run run = {.row = c->row, .err = c->err};
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, run.row->scene == HOLES ? SPARSE : DENSE, 1);
	need(setxattr("src", "user.fcopy", "kept", 4, 0) == 0);
	if (geteuid() != 0 && strcmp(run.row->call, "fchown") == 0)
		skip(); /* the copy has the right owner already: it is not set */
	need(geteuid() != 0 || chown("src", 1234, 4321) == 0);
	umask(022); /* the copy is created with another mode */
	need(chmod("src", 0666) == 0);
	fault_sweep(run.row->call, run.err, once, &run);
	if (run.row->want == EITHER)
		assert_true(run.failures > 0);
}

/* The name of the old file is missing at each look, and at the first look only. */
static void old_file_vanishes(void **state)
{
	struct fcopy_report report;
	const int *nth = *state;
	need(mkdir("d", 0755) == 0);
	make_file("src", PART, DENSE, 1);
	make_file(DST, SIZE, DENSE, 2);
	fault_set("lgetxattr", *nth, ENOENT);
	fault_also("llistxattr", ENOENT);
	fault_on();
	int r = fcopy_copy("src", DST, NULL, &report);
	fault_off();
	assert_true(fault_seen());
	if (*nth < FAULT_EVERY) {
		assert_int_equal(r, 0);
		assert_true(same_bytes("src", DST));
		return;
	}
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, ENOENT);
	assert_string_equal(report.error.reason, "was removed during the copy");
}

static bool say_yes(void *user, const char *dst)
{
	return user == NULL && dst;
}

/* A part whose DST was asked about: DST is looked at once more before the rename. */
static void once_asked(void *failures)
{
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = {.copy = {.api = FCOPY_API, .resume = true},
						   .confirm = say_yes};
	const char *const src = "src";
	set_the_scene(HOLES);
	fault_on();
	const int r = fcopy_tree(&src, 1, DST, &options, &report);
	fault_off();
	*(int *)failures += r < 0;
	assert_errno(report.error.err, r < 0 ? EIO : 0);
	assert_true(r < 0 || same_bytes("src", DST));
}

static void asked_fails(void **state)
{
	int failures = 0;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	fault_sweep(*state, EIO, once_asked, &failures);
	assert_true(failures > 0);
}

int main(void)
{
	static const int once_only = 1, always = FAULT_EVERY + 1;
	cases_enter("ext4");
	case_add(old_file_vanishes, &once_only, "a replaced file without a name for an instant");
	case_add(old_file_vanishes, &always, "a replaced file that is removed");
	case_add(asked_fails, "fstatat64", "resume after a yes: fstatat64 fails");
	for (size_t i = 0; i < ROWS; i++)
		case_add_errnos(sweep, &rows[i], rows[i].errs, scene_names[rows[i].scene],
				rows[i].call);
	return cases_run("keeping");
}
