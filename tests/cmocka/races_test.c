/* SPDX-License-Identifier: MIT
 * Something happens to the names or the source just before a system call of a copy, at each call
 * that is made. Afterwards every file is one that somebody wrote, whole.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE       ((off_t)(1 << 20) + 7) /* more than a block of those that are compared */
#define OLD_SIZE   3000
#define OTHER_SIZE 5000

/* What happens. Each brings at most one file of OTHER_SIZE to d. */

static void exchange_target(void)
{
	need(rename("d/target", "d/moved") == 0 || errno == ENOENT);
	make_file("d/target", OTHER_SIZE, DENSE, 3);
}

static void exchange_file(void)
{
	make_file("other", OTHER_SIZE, DENSE, 3);
	need(rename("other", "d/dst") == 0);
}

static void remove_file(void)
{
	need(unlink("d/dst") == 0 || errno == ENOENT);
}

static void change_source(void)
{
	write_at("src", 0, 1, 3);
}

static volatile int cancel;
static bool both[] = {false, true};

static void cancel_it(void)
{
	cancel = 1;
}

static const struct row {
	const char *name;
	void (*happens)(void);
	const char *call;
	struct fcopy_options options;
	int err;           /* that a copy may fail with, beside ENOENT */
	bool link, exists; /* DST is a symlink; DST exists */
} rows[] = {
    {"the target of a symlink is exchanged", exchange_target, "statx", {0}, ESTALE, true, true},
    {"the target of a symlink is exchanged", exchange_target, "openat64", {0}, ESTALE, true, true},
    {"the target of a symlink is exchanged", exchange_target, "readlink", {0}, ESTALE, true, true},
    {"the target of a symlink is exchanged", exchange_target, "renameat", {0}, ESTALE, true, true},
    {"the file is exchanged",
     exchange_file,
     "openat64",
     {.in_place = FCOPY_WHEN_ALWAYS},
     ESTALE,
     false,
     true},
    {"the file is removed",
     remove_file,
     "openat64",
     {.in_place = FCOPY_WHEN_ALWAYS},
     0,
     false,
     true},
    {"the file is removed", remove_file, "statx", {0}, 0, false, true},
    {"the file is removed", remove_file, "renameat", {0}, 0, false, true},
    {"a file appears", exchange_file, "linkat", {0}, 0, false, false},
    {"a file appears", exchange_file, "linkat", {.no_clobber = true}, 0, false, false},
    {"a file appears", exchange_file, "renameat2", {.no_clobber = true}, 0, false, false},
    {"the source changes", change_source, "pread64", {.strict = true}, EBUSY, false, false},
    {"the copy is cancelled", cancel_it, "fstat64", {.cancel = &cancel}, EINTR, false, false},
    {"the copy is cancelled",
     cancel_it,
     "fdatasync",
     {.cancel = &cancel, .verify = true},
     EINTR,
     false,
     false},
    {"the copy is cancelled", cancel_it, "llistxattr", {.cancel = &cancel}, EINTR, false, true},
    {"the copy is cancelled", cancel_it, "renameat", {.cancel = &cancel}, 0, false, true},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* From long ago: before Linux 6.13 a change within the same tick of the clock cannot be seen. */
static void make_source(void)
{
	static const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	make_file("src", SIZE, DENSE, 1);
	need(utimensat(AT_FDCWD, "src", old, 0) == 0);
}

static void set_the_scene(const struct row *row)
{
	cancel = 0;
	unlink("d/dst");
	unlink("d/target");
	unlink("d/moved");
	make_source();
	if (row->exists)
		make_file(row->link ? "d/target" : "d/dst", OLD_SIZE, DENSE, 2);
	if (row->link)
		need(symlink("target", "d/dst") == 0);
}

/* Each file of d is the copy, the old file or the other one. Returns whether the copy is there. */
static bool check_files(void)
{
	static const char *const names[] = {"d/dst", "d/target", "d/moved"};
	bool copied = false;
	int there = 0;
	for (int i = 0; i < 3; i++) {
		struct stat st;
		there += exists(names[i]);
		if (stat(names[i], &st) < 0)
			continue;
		bool copy = same_bytes("src", names[i]);
		assert_true(copy || same_bytes("old", names[i]) || same_bytes("new", names[i]));
		copied |= copy;
	}
	assert_int_equal(names_in("d"), there);
	return copied;
}

static void once(void *arg)
{
	const struct row *row = arg;
	struct fcopy_options options = row->options;
	struct fcopy_report report;
	options.api = FCOPY_API;
	set_the_scene(row);
	int before = open_descriptors();
	if (strcmp(row->call, "renameat2") == 0)
		fault_also("openat64 of O_TMPFILE", EOPNOTSUPP);
	fault_on();
	int r = fcopy_copy("src", "d/dst", &options, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	if (r < 0)
		assert_true(fault_seen() &&
			    (report.error.err == row->err || report.error.err == ENOENT));
	if (row->happens == change_source && fault_seen())
		assert_int_equal(r, -1);
	assert_int_equal(check_files(), r == 0 && !report.skipped);
	if (report.skipped)
		assert_true(fault_seen() && row->options.no_clobber && same_bytes("new", "d/dst"));
}

static void sweep(void **state)
{
	const struct row *row = *state;
	need(mkdir("d", 0755) == 0);
	make_file("old", OLD_SIZE, DENSE, 2);
	make_file("new", OTHER_SIZE, DENSE, 3);
	fault_before(row->happens);
	fault_sweep(row->call, 0, once, (void *)row);
}

/* Without strict a warning reports the change, and the copy has what was read. */
static void count_warnings(void *user, const struct fcopy_event *event)
{
	if (event->kind == FCOPY_EVENT_WARNING && event->error->err == EBUSY)
		++*(int *)user;
}

static void source_changes(void **state)
{
	struct fcopy_report report;
	int warnings = 0;
	struct fcopy_options options = {
	    .api = FCOPY_API, .notify = count_warnings, .user = &warnings};
	(void)state;
	make_source();
	fault_before(change_source);
	fault_set("pread64", 1, 0);
	fault_on();
	int r = fcopy_copy("src", "dst", &options, &report);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	assert_int_equal(warnings, 1);
	assert_true(report.source_changed);
	assert_true(same_bytes("src", "dst"));
}

static void make_directory(void)
{
	need(unlink("src") == 0 && mkdir("src", 0755) == 0);
	make_file("src/f", OTHER_SIZE, DENSE, 3);
}

static int copy_tree(const struct fcopy_options *copy, bool recursive,
		     struct fcopy_tree_report *report)
{
	const struct fcopy_tree_options options = {.copy = *copy, .recursive = recursive};
	const char *const src = "src";
	int before = open_descriptors();
	fault_on();
	int r = fcopy_tree(&src, 1, "d/dst", &options, report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(r, report->error.err ? -1 : 0);
	return r;
}

/* The copy is that of the file or of the whole directory, or there is none. */
static void becomes_directory(void *arg)
{
	static struct fcopy_tree_report report;
	const struct fcopy_options options = {.api = FCOPY_API};
	remove_all("src");
	remove_all("d/dst");
	make_source();
	int r = copy_tree(&options, *(const bool *)arg, &report);
	if (r < 0)
		assert_false(exists("d/dst"));
	else
		assert_true(same_bytes("d/dst", "old") || same_bytes("d/dst/f", "new"));
}

static void source_becomes_directory(void **state)
{
	need(mkdir("d", 0755) == 0);
	make_file("old", SIZE, DENSE, 1);
	make_file("new", OTHER_SIZE, DENSE, 3);
	fault_before(make_directory);
	fault_sweep(*state, 0, becomes_directory, &both[0]);
	fault_sweep(*state, 0, becomes_directory, &both[1]);
}

/* The report says what is there. */
static void cancelled(void *arg)
{
	static struct fcopy_tree_report report;
	const struct fcopy_options options = {
	    .api = FCOPY_API, .fsync = true, .cancel = &cancel, .resume = *(const bool *)arg};
	remove_all("d/dst*");
	cancel = 0;
	int r = copy_tree(&options, true, &report);
	assert_int_equal(r == 0, exists("d/dst"));
	assert_int_equal(report.committed, exists("d/dst"));
	assert_int_equal(report.part[0] != 0, r < 0 && options.resume);
	if (r == 0)
		assert_true(same_bytes("d/dst/f", "src/f"));
}

static void tree_is_cancelled(void **state)
{
	need(mkdir("d", 0755) == 0 && mkdir("src", 0755) == 0);
	make_file("src/f", SIZE, DENSE, 1);
	fault_before(cancel_it);
	fault_sweep(*state, 0, cancelled, &both[0]);
	fault_sweep(*state, 0, cancelled, &both[1]);
}

static void exchange_names(void)
{
	need(unlink("src/g") == 0);
	make_file("src/x", OTHER_SIZE, DENSE, 3);
}

/* The part has an older copy of a name that the source gets while it loses another one. */
static void source_gets_old_name(void **state)
{
	static struct fcopy_tree_report report;
	const struct fcopy_options options = {
	    .api = FCOPY_API, .threads = 1, .resume = true, .fsync = true, .cancel = &cancel};
	(void)state;
	need(mkdir("d", 0755) == 0);
	for (int nth = 1; nth < 1000; nth++) {
		remove_all("d/dst*");
		remove_all("src");
		need(mkdir("src", 0755) == 0);
		make_file("src/f", SIZE, DENSE, 1);
		make_file("src/g", SIZE, DENSE, 1);
		make_file("src/x", OLD_SIZE, DENSE, 2);
		cancel = 0;
		fault_before(cancel_it);
		fault_set("syncfs", 1, 0);
		(void)copy_tree(&options, true, &report);
		need(exists("d/dst.fcopy-part/data/x") && unlink("src/x") == 0);
		cancel = 0;
		fault_before(exchange_names);
		fault_set("fstatat64", nth, 0);
		(void)copy_tree(&options, true, &report);
		if (exists("d/dst/x"))
			assert_true(same_bytes("d/dst/x", "src/x"));
		if (!fault_seen())
			return;
	}
	fail_msg("no end of it");
}

/* As fcopy_clean() does, until a directory has its lock. */
static void clean_up(void)
{
	remove_all("d/.fcopy-*");
}

static void new_directory_is_removed(void **state)
{
	static struct fcopy_tree_report report;
	const struct fcopy_options options = {.api = FCOPY_API};
	need(mkdir("d", 0755) == 0 && mkdir("src", 0755) == 0);
	make_file("src/f", SIZE, DENSE, 1);
	fault_before(clean_up);
	fault_set(*state, 1, 0);
	assert_int_equal(copy_tree(&options, true, &report), 0);
	assert_true(fault_seen() && same_bytes("d/dst/f", "src/f"));
	assert_int_equal(names_in("d"), 1);
}

static void make_directories(void)
{
	(void)!mkdir("d/dst/src/f", 0700);
	(void)!mkdir("d/dst/src/g", 0700);
}

/* A merge: a copy that met a directory has failed, and says so. */
static void directory_has_name(void **state)
{
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = {
	    .copy = {.api = FCOPY_API, .threads = 1}, .recursive = true, .hard_links = true};
	const char *const src = "src";
	int r;
	need(mkdir("d", 0755) == 0 && mkdir("src", 0755) == 0);
	make_file("src/f", SIZE, DENSE, 1);
	need(link("src/f", "src/g") == 0);
	for (int nth = 1; nth == 1 || fault_seen(); nth++) {
		remove_all("d/dst");
		need(mkdir("d/dst", 0755) == 0 && mkdir("d/dst/src", 0755) == 0);
		fault_before(make_directories);
		fault_set(*state, nth, 0);
		fault_on();
		r = fcopy_tree(&src, 1, "d/dst", &options, &report);
		fault_off();
		assert_true(r < 0 || (same_bytes("src/f", "d/dst/src/f") &&
				      same_bytes("src/f", "d/dst/src/g")));
		assert_true(r == 0 || fault_seen());
	}
}

static void make_backup(void)
{
	if (!exists("d/dst.~1~"))
		make_file("d/dst.~1~", OTHER_SIZE, DENSE, 3);
}

/* Another process makes the backup of the same number: no backup replaces it. */
static void backup_appears(void **state)
{
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = {.copy.api = FCOPY_API,
						   .backup = FCOPY_BACKUP_NUMBERED};
	const char *const src = "src";
	make_source();
	make_file("old", OLD_SIZE, DENSE, 2);
	make_file("new", OTHER_SIZE, DENSE, 3);
	need(mkdir("d", 0755) == 0);
	make_file("d/dst", OLD_SIZE, DENSE, 2);
	if (*state)
		fault_also("linkat", EPERM);
	fault_before(make_backup);
	fault_set(*state ? "renameat2" : "linkat", 1, 0);
	fault_on();
	int r = fcopy_tree(&src, 1, "d/dst", &options, &report);
	fault_off();
	assert_true(fault_seen() && r == 0);
	assert_true(same_bytes("d/dst.~1~", "new") && same_bytes("d/dst.~2~", "old"));
	assert_true(same_bytes("d/dst", "src"));
}

static void exchange_once(void)
{
	exchange_file();
	fault_also("renameat2", EIO);
}

static char lost[PATH_MAX];

static void note_lost(void *user, const struct fcopy_event *event)
{
	(void)user;
	if (event->kind == FCOPY_EVENT_WARNING && strstr(event->error->path, "/.fcopy-"))
		snprintf(lost, sizeof(lost), "%s", event->error->path);
}

/* A newer copy of d/dst, at whose rename another process does that. Returns the error, recorded. */
static int update_while(void (*happens)(void), struct fcopy_tree_report *report)
{
	const struct fcopy_tree_options options = {.copy = {.api = FCOPY_API, .notify = note_lost},
						   .update = FCOPY_UPDATE_OLDER};
	const char *const src = "src";
	make_source();
	make_file("new", OTHER_SIZE, DENSE, 3);
	need(mkdir("d", 0755) == 0);
	make_file("d/dst", OLD_SIZE, DENSE, 2);
	need(utimensat(AT_FDCWD, "d/dst", (struct timespec[2]){{0}}, 0) == 0);
	lost[0] = '\0';
	fault_before(happens);
	fault_set("renameat2", 1, 0);
	fault_on();
	const int r = fcopy_tree(&src, 1, "d/dst", &options, report);
	fault_off();
	assert_true(fault_seen());
	return r;
}

/* What another process has made at the last moment comes out, and no rename gives it its name back:
 * it stays, and a warning names it. */
static void another_file_comes_out(void **state)
{
	static struct fcopy_tree_report report;
	(void)state;
	assert_true(update_while(exchange_once, &report) < 0);
	assert_true(same_bytes("d/dst", "src"));
	assert_true(same_bytes(lost, "new"));
}

static void move_ours(void)
{
	need(rename("d/dst", "d/moved") == 0);
}

static void exchange_and_move(void)
{
	exchange_file();
	fault_before(move_ours);
	fault_set("renameat2", 1, 0);
}

/* A third process has moved the copy away before that: the other file gets its name back. */
static void another_file_goes_back(void **state)
{
	static struct fcopy_tree_report report;
	(void)state;
	assert_true(update_while(exchange_and_move, &report) < 0);
	assert_int_equal(report.error.err, ESTALE);
	assert_true(same_bytes("d/dst", "new") && same_bytes("d/moved", "src") && !lost[0]);
}

static const char *second; /* of two files whose first one has a backup */

static void make_second_backup(void)
{
	second = exists("d/f.~1~") ? "d/g.~1~" : "d/f.~1~";
	make_file(second, OTHER_SIZE, DENSE, 3);
}

/* The same, when the names of the directory have been read; no rename keeps what has the name. */
static void backup_appears_late(void **state)
{
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = {.copy.api = FCOPY_API,
						   .copy.threads = 1,
						   .copy.no_directory = true,
						   .recursive = true,
						   .backup = FCOPY_BACKUP_NUMBERED};
	const char *const src = "src";
	(void)state;
	need(mkdir("d", 0755) == 0 && mkdir("src", 0755) == 0);
	make_file("src/f", SIZE, DENSE, 1);
	make_file("src/g", SIZE, DENSE, 1);
	make_file("old", OLD_SIZE, DENSE, 2);
	make_file("new", OTHER_SIZE, DENSE, 3);
	make_file("d/f", OLD_SIZE, DENSE, 2);
	make_file("d/g", OLD_SIZE, DENSE, 2);
	fault_also("linkat", EPERM);
	fault_also("renameat2", EINVAL);
	fault_before(make_second_backup);
	fault_set("renameat", 2, 0); /* the first one gives the first file its backup */
	fault_on();
	int r = fcopy_tree(&src, 1, "d", &options, &report);
	fault_off();
	assert_true(fault_seen() && r == 0);
	assert_true(same_bytes(second, "new") && exists("d/f.~1~") && exists("d/g.~1~"));
	assert_true(same_bytes("d/f", "src/f") && same_bytes("d/g", "src/g"));
}

static void make_entry(void)
{
	make_file("d/f", OTHER_SIZE, DENSE, 3);
}

/* -n: --link-dest makes no link where a file is, or where one appears just before the link. */
static void link_meets_file(void **state)
{
	static struct fcopy_tree_report report;
	const struct fcopy_tree_options options = {
	    .copy = {.api = FCOPY_API, .threads = 1, .no_clobber = true, .no_directory = true},
	    .recursive = true,
	    .link_dest = "earlier"};
	const char *const src = "src";
	struct stat st;
	need(mkdir("d", 0755) == 0 && mkdir("src", 0755) == 0 && mkdir("earlier", 0755) == 0);
	make_file("src/f", SIZE, DENSE, 1);
	make_file("earlier/f", SIZE, DENSE, 1);
	need(stat("src/f", &st) == 0);
	const struct timespec times[2] = {st.st_atim, st.st_mtim};
	need(utimensat(AT_FDCWD, "earlier/f", times, 0) == 0);
	make_file("new", OTHER_SIZE, DENSE, 3);
	fault_before(make_entry);
	if (*state)
		make_entry();
	else
		fault_set("linkat", 1, 0);
	fault_on();
	int r = fcopy_tree(&src, 1, "d", &options, &report);
	fault_off();
	assert_int_equal(r, 0);
	assert_int_equal(fault_seen(), !*state);
	assert_int_equal(report.count[FCOPY_COUNT_SKIPPED], 1);
	assert_int_equal(report.count[FCOPY_COUNT_HARD_LINKS], 0);
	assert_true(same_bytes("d/f", "new") && same_bytes("earlier/f", "src/f"));
}

static void remove_source(void)
{
	need(unlink("src") == 0);
}

/* The source is removed before the commit. */
static void last_share(void *arg)
{
	struct fcopy_options options = {.api = FCOPY_API, .shard = {.index = 0, .count = 2}};
	static struct fcopy_report report;
	(void)arg;
	remove_all("d/dst*");
	make_source();
	need(fcopy_copy("src", "d/dst", &options, &report) == 0);
	options.shard.index = 1;
	fault_on();
	int r = fcopy_copy("src", "d/dst", &options, &report);
	fault_off();
	assert_int_equal(r == 0, exists("d/dst"));
	if (r < 0)
		assert_true(report.error.err == ENOENT || report.error.err == EBUSY);
}

static void source_of_shards_is_removed(void **state)
{
	need(mkdir("d", 0755) == 0);
	fault_before(remove_source);
	fault_sweep(*state, 0, last_share, NULL);
}

static struct fcopy_progress progress;

static void count_early(void)
{
	progress.bytes += OTHER_SIZE;
	progress.entries++;
}

/* What other threads copy while the count of the source starts is not added to its total. */
static void copying_begins_early(void **state)
{
	static struct fcopy_tree_report report;
	const struct fcopy_options options = {
	    .api = FCOPY_API, .threads = 2, .limit_rate = 3000000, .progress = &progress};
	(void)state;
	need(mkdir("d", 0755) == 0 && mkdir("src", 0755) == 0);
	make_file("src/f", 3 * SIZE, DENSE, 1);
	progress = (struct fcopy_progress){.wants_total = true};
	fault_before(count_early);
	fault_set("pthread_create", 1, 0);
	assert_int_equal(copy_tree(&options, true, &report), 0);
	assert_true(fault_seen());
	assert_int_equal(progress.total, 3 * SIZE);
	assert_int_equal(progress.total_entries, 2); /* the directory itself, too */
}

int main(void)
{
	static const char *const ends[] = {"syncfs", "renameat2", "fsync"};
	cases_enter("ext4");
	for (size_t i = 0; i < ROWS; i++)
		case_add(sweep, &rows[i], "%s%s before %s", rows[i].name,
			 rows[i].options.in_place     ? " (in place)"
			 : rows[i].options.no_clobber ? " (no clobber)"
						      : "",
			 rows[i].call);
	case_add(source_changes, NULL, "the source changes: a warning");
	case_add(source_becomes_directory, "fstatat64", "a file becomes a directory");
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		case_add(tree_is_cancelled, ends[i], "a tree is cancelled before %s", ends[i]);
	case_add(source_gets_old_name, NULL, "the source gets a name of which the part has a copy");
	case_add(new_directory_is_removed, "flock", "the directory of a new tree is removed");
	case_add(directory_has_name, "linkat", "a directory has the name of a link");
	case_add(another_file_comes_out, NULL, "another file comes out, and cannot go back");
	case_add(another_file_goes_back, NULL, "another file comes out, and goes back by its name");
	case_add(backup_appears, NULL, "a numbered backup appears");
	case_add(backup_appears, &both[1], "a numbered backup appears, without links");
	case_add(backup_appears_late, NULL,
		 "a numbered backup appears, without links and exact renames");
	case_add(link_meets_file, NULL, "--link-dest -n: a file appears before its link");
	case_add(link_meets_file, &both[1], "--link-dest -n: a file is there");
	case_add(source_of_shards_is_removed, "flock", "shards: the source is removed");
	case_add(copying_begins_early, NULL, "the copy of a tree begins before its count");
	return cases_run("races");
}
