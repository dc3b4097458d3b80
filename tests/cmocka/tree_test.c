/* SPDX-License-Identifier: MIT
 * Every system call of a tree copy fails, at each time that it is made. Afterwards the new tree is
 * whole or absent, the failure was reported, all threads have ended, and nothing else is left: no
 * descriptor, no temporary directory.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORIES 2
#define LEVELS      5  /* more than directories are open with DESCRIPTORS */
#define DESCRIPTORS 36 /* in addition to the test's */

/* LIMITED: a deep tree, of which few directories can be open, under a umask that takes rights from
 * the owner. */
enum scene { NEW, ARCHIVED, MERGED, RESUMED, DURABLE, LIMITED, SCENES };

static const char *const scene_names[SCENES] = {"new",     "archived", "merged",
						"resumed", "durable",  "limited"};

/* The copy fails, continues in spite of the errno, or one or the other: where the same call stands
 * for steps that matter and steps that do not. Then it has to fail at least once. */
enum want { FAILS, CONTINUES, EITHER };

static const int storage[] = {EIO, ENOSPC, -1};
static const int denied[] = {EACCES, EIO, EMFILE, -1};
static const int input_output[] = {EIO, -1};
static const int not_removed[] = {EIO, EBUSY, -1};
static const int vanished[] = {ENOENT, -1};
static const int not_made[] = {EACCES, ENOSPC, EIO, EDQUOT, -1};
static const int no_flag[] = {EINVAL, -1};
static const int no_memory[] = {ENOMEM, -1};
static const int not_set[] = {EPERM, EROFS, -1};
static const int no_thread[] = {EAGAIN, -1};
static const int no_link[] = {EMLINK, EPERM, -1};
static const int interrupted[] = {EINTR, -1};
static const int unsupported[] = {EOPNOTSUPP, -1};

#define ALL   (FRESH | 1 << MERGED | 1 << RESUMED)
#define FRESH (1 << NEW | 1 << ARCHIVED | 1 << DURABLE)

static const struct row {
	const char *call;
	const int *errs;
	enum want want;
	unsigned scenes;
} rows[] = {
    {"openat64", denied, EITHER, ALL | 1 << LIMITED},
    {"openat64", vanished, EITHER, ALL},
    {"open64", denied, EITHER, ALL},
    {"openat64 of O_TMPFILE", denied, FAILS, 1 << MERGED},
    /* some only ask what a umask withheld, or which time a directory had */
    {"fstat64", input_output, EITHER, 1 << NEW | 1 << MERGED | 1 << RESUMED | 1 << LIMITED},
    {"fstatat64", input_output, EITHER, ALL | 1 << LIMITED},
    /* the search for what killed copies left is best effort */
    {"getdents64", input_output, EITHER, ALL & ~(1 << RESUMED)},
    {"mkdirat", not_made, FAILS, 1 << RESUMED},
    /* Where nothing can be moved out of a private directory, a new tree is built beside it. */
    {"mkdirat", not_made, EITHER, FRESH},
    {"mknodat", not_made, FAILS, ALL},
    {"symlinkat", not_made, FAILS, ALL},
    {"readlinkat", input_output, FAILS, ALL},
    {"pread64", input_output, FAILS, ALL & ~(1 << RESUMED)},
    {"pread64", input_output, EITHER, 1 << RESUMED}, /* of the mark, or to compare: copied again */
    {"pread64", interrupted, CONTINUES, 1 << NEW},
    {"pwrite64", storage, FAILS, ALL},
    {"pwrite64", interrupted, CONTINUES, 1 << NEW},
    {"close", storage, EITHER, ALL},
    {"linkat", storage, EITHER, 1 << MERGED},
    {"linkat", no_link, CONTINUES, 1 << ARCHIVED},
    {"renameat2", storage, EITHER, FRESH | 1 << RESUMED}, /* the last one hides an empty part */
    {"renameat2", no_flag, CONTINUES, 1 << NEW},
    {"renameat", storage, FAILS, 1 << MERGED},
    {"unlinkat", not_removed, CONTINUES, FRESH | 1 << RESUMED}, /* with a warning */
    {"syncfs", storage, FAILS, 1 << DURABLE},
    {"fsync", storage, FAILS, 1 << DURABLE},
    {"fchmod", not_set, CONTINUES, 1 << ARCHIVED},
    {"fchmod", not_set, FAILS, 1 << MERGED}, /* the umask takes rights that the old file has */
    {"fchmod", input_output, FAILS, 1 << ARCHIVED | 1 << MERGED},
    {"fchown", not_set, CONTINUES, 1 << ARCHIVED},
    {"fchown", input_output, FAILS, 1 << ARCHIVED},
    {"fchownat", not_set, CONTINUES, 1 << ARCHIVED},
    {"fchownat", input_output, FAILS, 1 << ARCHIVED},
    {"utimensat", not_set, CONTINUES, 1 << ARCHIVED},
    {"utimensat", input_output, FAILS, 1 << ARCHIVED},
    {"futimens", not_set, CONTINUES, 1 << ARCHIVED},
    {"futimens", input_output, FAILS, 1 << ARCHIVED},
    {"flistxattr", input_output, CONTINUES, 1 << ARCHIVED},
    {"flock", input_output, FAILS, 1 << RESUMED},
    {"getrandom", input_output, FAILS, 1 << MERGED},
    {"getrandom", input_output, EITHER, FRESH | 1 << RESUMED},
    {"calloc", no_memory, EITHER, ALL},
    {"malloc", no_memory, EITHER, ALL},
    {"realloc", no_memory, EITHER, ALL},
    {"pthread_create", no_thread, CONTINUES, ALL},
    {"ioctl", unsupported, CONTINUES, ALL},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	int err;
	enum scene scene;
	int failures;
};

static const int file_count[DIRECTORIES] = {17 /* more than one batch */, 3};
#define FILES 20

static unsigned failed_events;
static char stuck[4096]; /* what a warning says could not be removed */

static void count_events(void *user, const struct fcopy_event *event)
{
	(void)user;
	failed_events += event->kind == FCOPY_EVENT_FAILED;
	if (event->kind == FCOPY_EVENT_WARNING && event->error->call &&
	    strcmp(event->error->call, "remove") == 0) {
		snprintf(stuck, sizeof(stuck), "%s", event->error->path);
		assert_true(exists(stuck));
	}
}

static void make_tree(const char *top, unsigned seed)
{
	char name[64];
	need(mkdir(top, 0755) == 0);
	for (int d = 0; d < DIRECTORIES; d++) {
		snprintf(name, sizeof(name), "%s/%d", top, d);
		need(mkdir(name, 0755) == 0);
		for (int f = 0; f < file_count[d]; f++) {
			snprintf(name, sizeof(name), "%s/%d/%d", top, d, f);
			make_file(name, 100 + f, DENSE, seed + (unsigned)f);
		}
	}
	snprintf(name, sizeof(name), "%s/symlink", top);
	need(symlink("nowhere", name) == 0);
	snprintf(name, sizeof(name), "%s/fifo", top);
	need(mkfifo(name, 0644) == 0);
}

/* Every file of the destination has the source's bytes, or in a merge those that it had. */
static unsigned count_whole(const char *top, bool old)
{
	unsigned whole = 0;
	for (int d = 0; d < DIRECTORIES; d++)
		for (int f = 0; f < file_count[d]; f++) {
			char a[64], b[64], c[64];
			snprintf(a, sizeof(a), "src/%d/%d", d, f);
			snprintf(b, sizeof(b), "%s/%d/%d", top, d, f);
			snprintf(c, sizeof(c), "old/%d/%d", d, f);
			if (!exists(b))
				continue;
			bool same = same_bytes(a, b);
			assert_true(same || (old && same_bytes(c, b)));
			if (old)
				assert_int_equal(mode_of(b), mode_of(c));
			whole += same;
		}
	return whole;
}

static struct fcopy_tree_options options_of(enum scene scene)
{
	struct fcopy_tree_options o = {.copy.api = FCOPY_API, .recursive = true};
	o.copy.threads = 2;
	o.copy.no_directory = true;
	o.copy.notify = count_events;
	o.copy.resume = scene == RESUMED;
	o.copy.fsync = scene == DURABLE;
	o.hard_links = scene == ARCHIVED;
	if (scene == ARCHIVED)
		o.copy.preserve = FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_TIMESTAMPS |
				  FCOPY_ATTR_XATTR;
	return o;
}

/* The report names the call that failed, or what it was for: "stat of its .fcopy-part", or "open"
 * of a directory that was closed. */
static void check_call(const struct run *run, const struct fcopy_error *e)
{
	const char *failed = run->row->call, *reported = e->call;
	if (run->scene == MERGED && run->row->errs == not_set) {
		assert_string_equal(e->reason, "its mode cannot be kept");
		return;
	}
	if (run->scene == LIMITED && reported && strcmp(reported, "open") == 0)
		return;
	if (strcmp(failed, "fstat64") == 0 || strcmp(failed, "fchmod") == 0)
		if (!reported || !strstr(reported, strcmp(failed, "fchmod") ? "stat" : "chmod"))
			fail_msg("%s failed, and the report names %s", failed,
				 reported ? reported : "none");
}

static void check_report(const struct run *run, int r, const struct fcopy_tree_report *report)
{
	assert_int_equal(r, report->error.err ? -1 : 0);
	if (!fault_seen() || run->row->want == CONTINUES)
		assert_int_equal(r, 0);
	if (fault_seen() && run->row->want == FAILS)
		assert_int_equal(r, -1);
	if (r < 0) {
		assert_int_equal(report->error.err, run->err);
		assert_true(failed_events > 0);
		assert_true(report->count[FCOPY_COUNT_FAILED] > 0);
		check_call(run, &report->error);
	}
}

static bool remove_each(void *user, const struct fcopy_left *l)
{
	(void)user, (void)l;
	return true;
}

/* What stands in the directory: src, old, and perhaps dst or one unfinished tree that is named; and
 * what a warning names. */
static void check_names(const struct run *run, int r, const struct fcopy_tree_report *report)
{
	unsigned whole = count_whole("dst", run->scene == MERGED);
	bool late = strcmp(run->row->call, "fsync") == 0; /* the tree has its name already */
	if (r == 0)
		assert_true(whole + FILES * report->count[FCOPY_COUNT_VANISHED] >= FILES);
	else if (run->scene != MERGED)
		assert_true(!exists("dst") || late || report->committed);
	assert_int_equal(names_in("."), 2 + exists("dst") + (stuck[0] && exists(stuck)) +
					    (report->part[0] && exists(report->part)));
	if (report->part[0]) {
		count_whole(report->part, false);
		remove_all(report->part);
	}
	if (stuck[0]) { /* --clean recognises what could not be removed */
		const struct fcopy_clean_options clean = {.api = FCOPY_API, .remove = remove_each};
		struct fcopy_error error;
		assert_int_equal(fcopy_clean(".", &clean, &error), 0);
		assert_int_equal(names_in("."), 2 + exists("dst"));
	}
	remove_all("dst.fcopy-part");
	remove_all("dst");
}

/* Before the tree is copied, and after it. */
static void set_limits(bool on)
{
	static struct rlimit old;
	static mode_t mask;
	if (on)
		need(getrlimit(RLIMIT_NOFILE, &old) == 0);
	const int next = dup(STDERR_FILENO);
	need(next >= 0 && close(next) == 0);
	const rlim_t most = (rlim_t)next + DESCRIPTORS;
	const struct rlimit limit = {on ? most : old.rlim_cur, old.rlim_max};
	need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	mode_t now = umask(on && geteuid() == 0 ? 0300 : mask);
	mask = on ? now : mask;
}

static void once(void *arg)
{
	struct run *run = arg;
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = options_of(run->scene);
	const char *src = "src";
	if (run->scene == MERGED)
		make_tree("dst", 1000);
	if (run->scene == MERGED && strcmp(run->row->call, "fchmod") == 0)
		need(chmod("dst/0/0", 0666) == 0 && chmod("old/0/0", 0666) == 0);
	int before = open_descriptors(), threads = names_in("/proc/self/task");
	failed_events = 0;
	stuck[0] = '\0';
	if (run->scene == LIMITED)
		set_limits(true);
	fault_on();
	int r = fcopy_tree(&src, 1, "dst", &options, &report);
	fault_off();
	if (run->scene == LIMITED)
		set_limits(false);
	assert_int_equal(open_descriptors(), before);
	/* the kernel removes a thread shortly after pthread_join(3) returned */
	for (int i = 0; i < 1000 && names_in("/proc/self/task") > threads; i++)
		usleep(1000);
	assert_int_equal(names_in("/proc/self/task"), threads);
	check_report(run, r, &report);
	check_names(run, r, &report);
	run->failures += r < 0;
}

/* Those that a new file has already are not set. */
static void give_attributes(void)
{
	umask(022);
	need(link("src/1/1", "src/hard") == 0);
	need(chmod("src/0/0", 0666) == 0);
	if (geteuid() != 0)
		return;
	need(chown("src/1/0", 1234, 4321) == 0);
	need(lchown("src/symlink", 1234, 4321) == 0);
	need(chown("src/fifo", 1234, 4321) == 0);
}

static void sweep(void **state)
{
	struct run *run = *state;
	make_tree("src", 1);
	make_tree("old", 1000);
	if (run->scene == ARCHIVED)
		give_attributes();
	char deep[64] = "src/0";
	for (int i = 0; i < LEVELS && run->scene == LIMITED; i++) {
		strcat(deep, "/d");
		need(mkdir(deep, 0755) == 0);
	}
	fault_sweep(run->row->call, run->err, once, run);
	if (run->row->want == EITHER)
		assert_true(run->failures > 0);
}

static void *end_at_once(void *arg)
{
	return arg;
}

/* ThreadSanitizer starts a thread with the first one, and keeps it. */
static void start_a_thread(void)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, end_at_once, NULL), 0);
	pthread_join(thread, NULL);
	for (int i = 0; i < 1000 && names_in("/proc/self/task") > 1; i++)
		usleep(1000);
}

int main(void)
{
	static struct run runs[ROWS * SCENES * 5];
	size_t n = 0;
	cases_enter("tmpfs");
	start_a_thread();
	for (size_t i = 0; i < ROWS; i++)
		for (const int *err = rows[i].errs; *err >= 0; err++)
			for (int s = 0; s < SCENES; s++) {
				if (!(rows[i].scenes & 1u << s) ||
				    (geteuid() != 0 && strncmp(rows[i].call, "fchown", 6) == 0))
					continue;
				runs[n] = (struct run){.row = &rows[i], .err = *err, .scene = s};
				case_add(sweep, &runs[n++], "%s: %s fails with %s", scene_names[s],
					 rows[i].call, errno_name(*err));
			}
	return cases_run("tree");
}
