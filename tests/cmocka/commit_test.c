/* SPDX-License-Identifier: MIT
 * Every system call of a whole copy fails, at each time that it is made. Afterwards the old file is
 * whole or the new one is, the error is the one that was given, and nothing else is left: no
 * descriptor, no temporary file.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE     ((off_t)(1 << 20) + 7) /* enough for threads, preallocation and a cut */
#define OLD_SIZE (2 * SIZE)             /* longer, so that it has to be cut in place */
#define OLD_MODE 0604

/* NAMED: where the file system has no O_TMPFILE. */
enum scene { NEW, REPLACED, NEW_NAMED, REPLACED_NAMED, SYMLINK, IN_PLACE, SCENES };

static const char *const scene_names[SCENES] = {
    "new",     "replaced", "new, named temporary", "replaced, named temporary", "through a symlink",
    "in place"};

/* The copy fails with this errno, goes on in spite of it, or one or the other: where the same call
 * stands for steps that matter and steps that do not. Then it has to fail at least once.
 * FAILS_FIRST: the last calls of the name only look for outdated temporary files, to warn of
 * them. */
enum want { FAILS, GOES_ON, EITHER, FAILS_FIRST };

static const int storage[] = {EIO, ENOSPC, EDQUOT, -1};
static const int unsafe[] = {EIO, ENOSPC, EDQUOT, EINTR, -1};
static const int denied[] = {EACCES, EROFS, EIO, -1};
static const int exhausted[] = {EMFILE, ENFILE, ENOMEM, -1};
static const int not_created[] = {EACCES, ENOSPC, EROFS, EMFILE, EDQUOT, EIO, -1};
static const int no_tmpfile[] = {EOPNOTSUPP, EISDIR, EINVAL, ENOENT, ENOSYS, -1};
static const int not_named[] = {EIO, ENOSPC, EDQUOT, EACCES, EROFS, EMLINK, EPERM, ENOENT, -1};
static const int not_renamed[] = {EIO, ENOSPC, EDQUOT, EACCES, EROFS, EBUSY, EPERM, ENOENT, -1};
static const int not_allowed[] = {EPERM, EROFS, -1};
static const int not_there[] = {EOPNOTSUPP, ENOSYS, EINVAL, -1};
static const int no_attribute[] = {ENODATA, EOPNOTSUPP, -1};
static const int bad_attribute[] = {EIO, ENOMEM, EPERM, -1};
static const int unreadable[] = {EIO, EPERM, EACCES, EINVAL, -1};
static const int interrupted[] = {EINTR, -1};
static const int input_output[] = {EIO, -1};
static const int no_random[] = {ENOSYS, EINTR, -1};
static const int no_memory[] = {ENOMEM, -1};
static const int again[] = {EAGAIN, -1};
static const int taken[] = {EEXIST, -1};

#define ALL   0x3f
#define OVER  (1 << REPLACED | 1 << REPLACED_NAMED | 1 << SYMLINK)
#define NAMED (1 << NEW_NAMED | 1 << REPLACED_NAMED)
#define FRESH (1 << NEW | 1 << NEW_NAMED)

static const struct row {
	const char *call;
	const int *errs;
	enum want want;
	unsigned scenes;
	bool late; /* also made when the new file has its name already */
} rows[] = {
    {"open64", denied, FAILS, ALL, false},
    {"openat64 of O_TMPFILE", not_created, FAILS, 1 << NEW | 1 << REPLACED, false},
    {"openat64 of O_TMPFILE", no_tmpfile, GOES_ON, 1 << NEW | 1 << REPLACED, false},
    {"openat64", denied, FAILS, ALL & ~NAMED, true},
    {"openat64", denied, FAILS_FIRST, NAMED, true},
    {"openat64", exhausted, FAILS, ALL & ~NAMED, true},
    {"openat64", exhausted, FAILS_FIRST, NAMED, true},
    {"openat64", taken, EITHER, NAMED, true},
    {"linkat", not_named, EITHER, 1 << NEW | 1 << REPLACED, false},
    {"renameat", not_renamed, FAILS, OVER | 1 << NEW_NAMED, false},
    {"fchmod", not_allowed, GOES_ON, OVER | 1 << NEW_NAMED, false},
    /* It may be the report of data that were lost. */
    {"fchmod", input_output, FAILS, OVER | 1 << NEW_NAMED, false},
    {"fchown", not_allowed, FAILS, OVER, false},
    {"lgetxattr", unreadable, GOES_ON, OVER, false},
    {"lgetxattr", no_memory, FAILS, OVER, false},
    {"lgetxattr", no_attribute, GOES_ON, OVER, false},
    {"fsetxattr", bad_attribute, FAILS, OVER, false},
    {"fgetxattr to ask", bad_attribute, GOES_ON, OVER, false},
    {"fremovexattr", bad_attribute, FAILS, OVER, false},
    {"ftruncate64", storage, FAILS, 1 << IN_PLACE, false},
    {"ftruncate64", interrupted, GOES_ON, 1 << IN_PLACE, false},
    {"fdatasync", unsafe, FAILS, 1 << NEW | 1 << REPLACED | 1 << SYMLINK | 1 << IN_PLACE, false},
    {"fsync", unsafe, FAILS, ALL & ~(1 << IN_PLACE), true},
    {"close", unsafe, EITHER, ALL, true},
    {"fcntl64", exhausted, FAILS, 1 << NEW, false}, /* linkat needs the descriptor after that */
    {"fallocate64", storage, FAILS, FRESH, false},
    {"fallocate64", not_there, GOES_ON, FRESH, false},
    {"fallocate64 to punch", storage, GOES_ON, FRESH, false},
    {"fallocate64", interrupted, GOES_ON, FRESH, false},
    {"ioctl", input_output, EITHER, ALL, false},
    {"ioctl", not_there, GOES_ON, ALL, false},
    {"lseek64", input_output, GOES_ON, ALL, false},
    {"lseek64", not_there, GOES_ON, ALL, false},
    {"fstatfs64", input_output, GOES_ON, 1 << NEW, false},
    {"fstat64", input_output, FAILS, ALL & ~FRESH, false},
    {"fstat64", input_output, EITHER, FRESH, false}, /* the first one asks whether DST is in /dev */
    {"fstatat64", denied, FAILS, ALL & ~NAMED, false},
    {"fstatat64", denied, FAILS_FIRST, 1 << REPLACED_NAMED, false},
    {"fstatat64", denied, EITHER, 1 << NEW_NAMED, false}, /* the last one only asks who came */
    {"statx", input_output, GOES_ON, OVER, false},        /* fstatat does without the inode flags */
    {"faccessat", denied, FAILS, OVER, false},
    {"readlink", denied, FAILS, 1 << SYMLINK, false},
    {"getrandom", no_random, FAILS, OVER | 1 << NEW_NAMED, false},
    {"pread64", input_output, FAILS, ALL, false},
    {"pread64", interrupted, GOES_ON, ALL, false},
    {"pread64", again, FAILS, ALL, false},
    {"pwrite64", storage, FAILS, ALL, false},
    {"pwrite64", interrupted, GOES_ON, ALL, false},
    {"pwrite64", again, FAILS, ALL, false},
    {"mmap64 of memory", no_memory, FAILS, ALL, false},
    {"pthread_create", again, GOES_ON, 1 << NEW, false},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	int err;
	enum scene scene;
	int failures;
	bool went_on;
};

static bool acls; /* the file system has them */

/* Away with what the last run left, and the old file back. */
static void set_the_scene(enum scene scene)
{
	unlink("d/dst");
	unlink("d/target");
	if (scene == NEW || scene == NEW_NAMED)
		return;
	const char *name = scene == SYMLINK ? "d/target" : "d/dst";
	make_file(name, OLD_SIZE, DENSE, 2);
	need(chmod(name, OLD_MODE) == 0);
	if (acls)
		need(give_acl(name));
	if (geteuid() == 0)
		need(chown(name, 1234, 1234) == 0);
	if (scene == SYMLINK)
		need(symlink("target", "d/dst") == 0);
}

/* The destination that had the old bytes has them still, or the new ones, with its old clothes. */
static void check_destination(const struct run *run, int r)
{
	enum scene s = run->scene;
	bool fresh = s == NEW || s == NEW_NAMED;
	if (r == 0) {
		assert_true(same_bytes("src", "d/dst"));
	} else if (s != IN_PLACE) {
		bool old = fresh ? !exists("d/dst") : same_bytes("old", "d/dst");
		assert_true(old || (run->row->late && same_bytes("src", "d/dst")));
	}
	if (exists("d/dst") && !fresh) {
		struct stat st;
		need(stat("d/dst", &st) == 0);
		/* an errno of this call means "no ACL here" */
		if (acls && strcmp(run->row->call, "lgetxattr") != 0)
			assert_true(has_acl("d/dst"));
		if (geteuid() == 0)
			assert_int_equal(st.st_uid, 1234);
	}
	assert_int_equal(names_in("d"), s == SYMLINK ? 2 : exists("d/dst") ? 1 : 0);
}

static void once(void *arg)
{
	struct run *run = arg;
	struct fcopy_options options = {.api = FCOPY_API,
					.fsync = true,
					.threads = 2,
					.in_place = run->scene == IN_PLACE ? FCOPY_WHEN_ALWAYS
									   : FCOPY_WHEN_NEVER};
	struct fcopy_report report;
	if (strcmp(run->row->call, "pthread_create") == 0)
		options.mode = fcopy_mode_find(
		    "parallel"); /* auto takes threads for large files only */
	set_the_scene(run->scene);
	int before = open_descriptors();
	if (1u << run->scene & NAMED)
		fault_also("openat64 of O_TMPFILE", EOPNOTSUPP);
	if (strcmp(run->row->call, "fstatat64") == 0)
		fault_also("statx", EPERM); /* otherwise it is not called */
	if (strstr(run->row->call, "getxattr"))
		fault_also("llistxattr", EOPNOTSUPP);
	if (strcmp(run->row->call, "fremovexattr") == 0)
		fault_also("fgetxattr to ask", EIO); /* an attribute may be there */
	fault_on();
	int r = fcopy_copy("src", "d/dst", &options, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	if (!fault_seen() || run->row->want == GOES_ON)
		assert_int_equal(r, 0);
	if (fault_seen() && run->row->want == FAILS)
		assert_int_equal(r, -1);
	assert_int_equal(report.error.err, r < 0 ? run->err : 0);
	check_destination(run, r);
	if (run->row->want == FAILS_FIRST && r < 0)
		assert_false(run->went_on);
	run->went_on |= fault_seen() && r == 0;
	run->failures += r < 0;
}

static void sweep(void **state)
{
	struct run *run = *state;
	bool sparse = strcmp(run->row->call, "lseek64") == 0; /* else it is not called */
	need(mkdir("d", 0755) == 0);
	/* A dozen extents: each makes three calls, and each call is one more copy. */
	make_file("src", sparse ? SIZE / 8 : SIZE, sparse ? SPARSE : DENSE, 1);
	make_file("old", OLD_SIZE, DENSE, 2);
	fault_sweep(run->row->call, run->err, once, run);
	if (run->row->want == EITHER || run->row->want == FAILS_FIRST)
		assert_true(run->failures > 0);
}

/* No name can be drawn that is not taken: that ends, too. */
static void all_names_are_taken(void **state)
{
	struct row row = {"linkat", taken, FAILS, 0, false};
	struct run run = {.row = &row, .err = EEXIST, .scene = *(const enum scene *)*state};
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	make_file("old", OLD_SIZE, DENSE, 2);
	if (run.scene == NEW_NAMED)
		row.call = "openat64";
	/* the first linkat only asks whether it works, the first openat is the directory's, to
	 * flush */
	fault_set(row.call, FAULT_EVERY + 2, EEXIST);
	once(&run);
	assert_true(fault_seen());
	assert_in_range(fault_calls(), 2, 64);
}

/* The data is on the disk, and the name may not be. */
static void directory_is_not_flushed(void **state)
{
	const struct fcopy_options options = {
	    .api = FCOPY_API, .fsync = true, .in_place = FCOPY_WHEN_ALWAYS};
	struct fcopy_report report;
	const int err = *(const int *)*state;
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	int before = open_descriptors();
	fault_set("fsync", 1, err);
	fault_on();
	int r = fcopy_copy("src", "d/dst", &options, &report);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, err);
	assert_string_equal(report.error.call, "fsync");
	assert_int_equal(report.error.advice, FCOPY_ADVICE_FLUSH);
	assert_true(same_bytes("src", "d/dst"));
	assert_int_equal(names_in("d"), 1);
}

static void add_all(void)
{
	static struct run runs[ROWS * SCENES * 12];
	size_t n = 0;
	for (size_t i = 0; i < ROWS; i++)
		for (const int *err = rows[i].errs; *err >= 0; err++)
			for (int s = 0; s < SCENES; s++) {
				const char *call = rows[i].call;
				/* A user's own file is judged by its mode. */
				bool possible = (acls || strcmp(call, "fsetxattr") != 0) &&
						(geteuid() == 0 ||
						 (strcmp(call, "fchown") != 0 &&
						  strcmp(call, "faccessat") != 0));
				if (!(rows[i].scenes & 1u << s) || !possible)
					continue;
				runs[n] = (struct run){.row = &rows[i], .err = *err, .scene = s};
				case_add(sweep, &runs[n++], "%s: %s fails with %s", scene_names[s],
					 call, errno_name(*err));
			}
}

int main(void)
{
	static const enum scene scenes[] = {NEW, REPLACED, NEW_NAMED};
	cases_enter("ext4");
	make_file("probe", 0, DENSE, 0);
	acls = give_acl("probe");
	unlink("probe");
	add_all();
	for (int i = 0; i < 3; i++)
		case_add(all_names_are_taken, &scenes[i], "%s: every name is taken",
			 scene_names[scenes[i]]);
	for (const int *err = unsafe; *err >= 0; err++)
		case_add(directory_is_not_flushed, err,
			 "new, in place: fsync of the directory fails with %s", errno_name(*err));
	return cases_run("commit");
}
