/* SPDX-License-Identifier: MIT
 * Calls fail while a tree is copied of which one entry fails, so that its part is kept. Whatever
 * failed, and whatever the journal lacks then: the next run completes the copy, and fcopy_clean()
 * removes what a failed removal left. And a mirror whose calls fail keeps what it has to keep.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"
#include "part/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES 12

/* A published part has its journal from the start; without options.resume only a kept one has. */
enum scene { KEPT, PUBLISHED, CONTINUED, MIRRORED };
static const char *const scene_names[] = {"kept", "published", "continued", "mirrored"};

static const struct row {
	const char *call;
	int err;
	unsigned scenes;
} rows[] = {
    {"write", EIO, 1 << KEPT | 1 << PUBLISHED},
    {"write", ENOSPC, 1 << KEPT | 1 << PUBLISHED},
    {"fdatasync", EIO, 1 << KEPT | 1 << PUBLISHED},
    {"fsync", EIO, 1 << KEPT | 1 << PUBLISHED},
    {"syncfs", EIO, 1 << KEPT | 1 << PUBLISHED | 1 << MIRRORED},
    {"renameat2", EIO, 1 << KEPT | 1 << PUBLISHED},
    {"mkdirat", ENOSPC, 1 << KEPT | 1 << PUBLISHED},
    {"openat64", EMFILE, 1 << KEPT | 1 << PUBLISHED},
    {"fstat64", EIO, 1 << KEPT | 1 << PUBLISHED},
    {"fchmod", EIO, 1 << KEPT | 1 << PUBLISHED},
    {"unlinkat", EIO, 1 << KEPT | 1 << PUBLISHED | 1 << MIRRORED},
    {"openat64", ENOENT, 1 << CONTINUED},
    {"fstatat64", ENOENT, 1 << CONTINUED},
    {"unlinkat", EIO, 1 << CONTINUED},
    {"getdents64", EIO, 1 << MIRRORED},
    {"fstatat64", EIO, 1 << MIRRORED},
    {"fstat64", EIO, 1 << MIRRORED},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	enum scene scene;
	unsigned kept; /* how often a part was there after the first run */
};

static void make_source(void)
{
	char name[64];
	need(mkdir("src", 0755) == 0 && mkdir("src/d", 0755) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "src/d/%d", i);
		make_file(name, 100 + i, DENSE, (unsigned)i + 1);
	}
	need(symlink("nowhere", "src/symlink") == 0);
}

static bool is_whole(const char *top)
{
	char a[64], b[64];
	for (int i = 0; i < FILES; i++) {
		snprintf(a, sizeof(a), "src/d/%d", i);
		snprintf(b, sizeof(b), "%s/d/%d", top, i);
		if (!exists(b) || !same_bytes(a, b))
			return false;
	}
	snprintf(b, sizeof(b), "%s/symlink", top);
	return exists(b);
}

static bool remove_each(void *user, const struct fcopy_left *l)
{
	(void)user, (void)l;
	return true;
}

static void once_kept(void *arg)
{
	struct run *run = arg;
	static struct fcopy_tree_report report;
	struct fcopy_tree_options o = {.copy.api = FCOPY_API, .recursive = true};
	const struct fcopy_clean_options clean = {.api = FCOPY_API, .remove = remove_each};
	struct fcopy_error error;
	const char *src = "src";
	o.copy.threads = 2;
	o.copy.no_directory = true;
	o.copy.resume = run->scene == PUBLISHED;
	fault_also("symlinkat", EACCES);
	int before = open_descriptors();
	fault_on();
	int r = fcopy_tree(&src, 1, "dst", &o, &report);
	fault_off();
	assert_int_equal(r, -1);
	assert_false(exists("dst"));
	if (report.error.call && strcmp(report.error.call, run->row->call) == 0)
		assert_errno(report.error.err, run->row->err);
	assert_int_equal(open_descriptors(), before);
	run->kept += exists("dst.fcopy-part");
	o.copy.resume = true;
	assert_int_equal(fcopy_tree(&src, 1, "dst", &o, &report), 0);
	assert_true(is_whole("dst"));
	assert_int_equal(fcopy_clean(".", &clean, &error), 0);
	assert_int_equal(names_in("."), 2);
	remove_all("dst");
}

static void count_warnings(void *user, const struct fcopy_event *event)
{
	*(unsigned *)user += event->kind == FCOPY_EVENT_WARNING;
}

/* A run that continues a part either keeps it, or leaves nothing that it does not report. */
static void once_continued(void *arg)
{
	static struct fcopy_tree_report report;
	struct fcopy_tree_options o = {.copy.api = FCOPY_API, .recursive = true};
	const struct fcopy_clean_options clean = {.api = FCOPY_API, .remove = remove_each};
	struct fcopy_error error;
	const char *src = "src";
	(void)arg;
	unsigned warnings = 0;
	o.copy.threads = 1;
	o.copy.no_directory = true;
	o.copy.resume = true;
	o.copy.notify = count_warnings;
	o.copy.user = &warnings;
	int status = -1;
	const pid_t child = fork(); /* it has a fault of its own */
	if (child == 0) {
		fault_set("symlinkat", 1, EACCES);
		fault_on();
		_exit(fcopy_tree(&src, 1, "dst", &o, &report) == -1 ? 0 : 1);
	}
	need(child > 0 && waitpid(child, &status, 0) == child);
	assert_int_equal(status, 0);
	assert_true(exists("dst.fcopy-part"));
	fault_on();
	int r = fcopy_tree(&src, 1, "dst", &o, &report);
	fault_off();
	assert_int_equal(exists("dst"), r == 0 || report.committed);
	assert_true(r == 0 || exists("dst") || exists("dst.fcopy-part"));
	if (warnings == 0)
		assert_int_equal(names_in("."), 1 + exists("dst") + exists("dst.fcopy-part"));
	assert_int_equal(fcopy_tree(&src, 1, "dst", &o, &report), 0);
	assert_true(is_whole("dst"));
	assert_int_equal(fcopy_clean(".", &clean, &error), 0);
	assert_int_equal(names_in("."), 2);
	remove_all("dst");
}

/* A file. Success may leave something beside DST only with a warning. */
static void once_file(void *arg)
{
	const bool shard = *(const bool *)arg;
	struct fcopy_report report;
	const struct fcopy_clean_options clean = {.api = FCOPY_API, .remove = remove_each};
	struct fcopy_error error;
	unsigned warnings = 0;
	struct fcopy_options o = {.api = FCOPY_API, .notify = count_warnings, .user = &warnings};
	o.resume = !shard;
	o.shard.count = shard;
	int before = open_descriptors();
	fault_on();
	int r = fcopy_copy("file", "dst", &o, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	assert_true(r < 0 || same_bytes("file", "dst"));
	if (r == 0 && warnings == 0)
		assert_int_equal(names_in("."), shard ? 3 : 2); /* shards leave a receipt */
	assert_int_equal(fcopy_copy("file", "dst", &o, &report), 0);
	assert_true(same_bytes("file", "dst"));
	assert_int_equal(fcopy_clean(".", &clean, &error), 0);
	assert_int_equal(names_in("."), 2);
	need(unlink("dst") == 0);
}

static void file_leaves(void **state)
{
	make_file("file", 5000, DENSE, 1);
	fault_sweep("unlinkat", EIO, once_file, *state);
}

/* NFS writes the journal at the latest when it is closed, and reports then that it could not. */
static void journal_is_lost_at_close(void **state)
{
	const bool shared = *(const bool *)*state;
	struct part p;
	struct stat st = {0};
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	need(here >= 0 && fstat(here, &st) == 0);
	part_init(&p, here, "dst");
	assert_int_equal(part_make(&p), 0);
	int data = openat(p.fd, PART_DATA, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	need(data >= 0);
	const struct journal_fact source = part_source(-1, &st);
	assert_int_equal(part_describe(&p, "dst", &source, 0, data, 0600), 0);
	fault_set("close", 1, EDQUOT);
	fault_on();
	int r = shared ? part_share(&p) : part_close(&p, false);
	fault_off();
	assert_errno(-r, EDQUOT);
	if (shared) {
		assert_string_equal(p.call, "close");
		need(unlinkat(p.fd, PART_DATA, 0) == 0);
		assert_int_equal(part_close(&p, true), 0);
		assert_int_equal(names_in("."), 0);
	}
	close(data);
	close(here);
}

static void note_operation(void *user, const struct fcopy_event *event)
{
	if (event->kind == FCOPY_EVENT_WARNING && event->error->operation)
		*(bool *)user = strcmp(event->error->operation, "close of its journal") == 0;
}

/* The copy fails, its part is kept, and each close(2) fails, too. */
static void kept_journal_is_lost(void **state)
{
	struct fcopy_report report;
	bool warned = false;
	const struct fcopy_options o = {
	    .api = FCOPY_API, .resume = true, .notify = note_operation, .user = &warned};
	(void)state;
	make_file("file", 5000, DENSE, 1);
	fault_set("renameat", 1, EDQUOT);
	fault_also("close", EDQUOT);
	fault_on();
	int r = fcopy_copy("file", "dst", &o, &report);
	fault_off();
	assert_int_equal(r, -1);
	assert_true(exists("dst.fcopy-part"));
	assert_true(warned);
}

/* DST has all of an older SRC, and three names more. */
static void make_mirror(void)
{
	char name[64];
	need(mkdir("dst", 0755) == 0 && mkdir("dst/d", 0755) == 0 && mkdir("dst/gone", 0755) == 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "dst/d/%d", i);
		make_file(name, 200 + i, DENSE, (unsigned)i + 100);
	}
	make_file("dst/gone/a", 10, DENSE, 1);
	make_file("dst/d/more", 10, DENSE, 1);
}

static void once_mirrored(void *arg)
{
	static struct fcopy_tree_report report;
	struct fcopy_tree_options o = {.copy.api = FCOPY_API,
				       .recursive = true,
				       .update = FCOPY_UPDATE_CHANGED,
				       .delete_extra = true};
	const char *src = "src";
	(void)arg;
	o.copy.threads = 2;
	o.copy.no_directory = true;
	make_mirror();
	int before = open_descriptors();
	fault_on();
	int r = fcopy_tree(&src, 1, "dst", &o, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	bool extra = exists("dst/gone") || exists("dst/d/more");
	if (r == 0)
		assert_true(is_whole("dst") && !extra);
	/* The next run repairs whatever was left. */
	assert_int_equal(fcopy_tree(&src, 1, "dst", &o, &report), 0);
	assert_true(is_whole("dst"));
	assert_false(exists("dst/gone") || exists("dst/d/more") || exists("dst/.fcopy-mirror"));
	assert_int_equal(names_in("."), 2);
	assert_int_equal(names_in("src/d"), FILES);
	remove_all("dst");
}

static void end_short_writes(void)
{
	fault_short(0);
}

static size_t count_in_file(const char *name, const char *word)
{
	static char text[1 << 20];
	FILE *f = fopen(name, "re");
	need(f);
	const size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	size_t count = 0;
	for (const char *at = text; (at = strstr(at, word)); at++)
		count++;
	return count;
}

/* A disk is full for a moment, and takes only a part of the lines that are set aside: nothing is
 * missing in the journal, and no gap is read as lines. */
static void lines_that_wait_are_cut(void **state)
{
	enum { MANY = 2000 };
	static struct fcopy_tree_report report;
	struct fcopy_tree_options o = {.copy.api = FCOPY_API, .recursive = true};
	const char *src = "src";
	char name[64];
	(void)state;
	make_source();
	for (int i = FILES; i < MANY; i++) {
		snprintf(name, sizeof(name), "src/d/%d", i);
		make_file(name, 10, DENSE, 1);
	}
	o.copy.threads = 1;
	o.copy.no_directory = true;
	fault_also("symlinkat", EACCES);
	fault_short(60000); /* 61,360 bytes are set aside; of the journal less is written at once */
	fault_before(end_short_writes);
	fault_set("ftruncate64", 1, 0);
	fault_on();
	assert_int_equal(fcopy_tree(&src, 1, "dst", &o, &report), -1);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(count_in_file("dst.fcopy-part/journal", " d/"), MANY);
}

static void sweep(void **state)
{
	struct run *run = *state;
	make_source();
	fault_sweep(run->row->call, run->row->err,
		    run->scene == MIRRORED    ? once_mirrored
		    : run->scene == CONTINUED ? once_continued
					      : once_kept,
		    run);
	if (run->scene <= PUBLISHED)
		assert_true(run->kept > 0);
}

int main(void)
{
	static struct run runs[ROWS * 4];
	size_t n = 0;
	cases_enter("tmpfs");
	for (size_t i = 0; i < ROWS; i++)
		for (int s = KEPT; s <= MIRRORED; s++) {
			if (!(rows[i].scenes & 1u << s))
				continue;
			runs[n] = (struct run){.row = &rows[i], .scene = s};
			case_add(sweep, &runs[n++], "%s: %s fails with %s", scene_names[s],
				 rows[i].call, errno_name(rows[i].err));
		}
	static const bool yes = true, no = false;
	case_add(file_leaves, &no, "file: unlinkat fails");
	case_add(file_leaves, &yes, "file in shards: unlinkat fails");
	case_add(journal_is_lost_at_close, &yes, "shards: close of the journal fails");
	case_add(journal_is_lost_at_close, &no, "file: close of the journal fails");
	case_add(lines_that_wait_are_cut, NULL, "kept: a write of what was set aside is cut");
	case_add(kept_journal_is_lost, NULL, "file: close of the journal of a kept part fails");
	return cases_run("journal");
}
