/* SPDX-License-Identifier: MIT
 * Directory trees: whole or absent when new, merged when they exist, with every kind of entry.
 */
#define _GNU_SOURCE
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LARGE_SIZE  ((off_t)(20 << 20) + 5) /* idle threads help to copy it */
#define MAPPED_SIZE ((off_t)(3 << 20) + 5)  /* with holes */

static struct fcopy_tree_report tree;
static struct fcopy_tree_options plain = {.copy.api = FCOPY_API, .recursive = true};
static unsigned failures, warnings;

static void count_events(void *user, const struct fcopy_event *event)
{
	(void)user;
	failures += event->kind == FCOPY_EVENT_FAILED;
	warnings += event->kind == FCOPY_EVENT_WARNING;
}

static struct fcopy_tree_options archive(void)
{
	struct fcopy_tree_options o = plain;
	o.hard_links = true;
	o.copy.preserve = FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_TIMESTAMPS |
			  FCOPY_ATTR_XATTR;
	return o;
}

static int copy_tree(const char *src, const char *dst, struct fcopy_tree_options o)
{
	failures = warnings = 0;
	o.copy.notify = count_events;
	return fcopy_tree(&src, 1, dst, &o, &tree);
}

static void make_directory(const char *name, mode_t mode)
{
	need(mkdir(name, 0755) == 0 && chmod(name, mode) == 0);
}

/* Files of several sizes in three levels of directories. */
static void make_tree(const char *top)
{
	char name[64];
	make_directory(top, 0750);
	need(chdir(top) == 0);
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "%d", i % 4);
		if (i < 4)
			make_directory(name, 0755);
		snprintf(name, sizeof(name), "%d/d%d", i % 4, i);
		make_directory(name, i % 3 ? 0755 : 0555 | 0200);
		for (int k = 0; k < 5; k++) {
			snprintf(name, sizeof(name), "%d/d%d/%d", i % 4, i, k);
			/* Few of the largest. */
			int size = (i + k) % SIZES;
			make_file(name, sizes[size == SIZES - 1 && i > 8 ? k : size], SPARSE,
				  (unsigned)(i * 5 + k));
		}
	}
	need(symlink("nowhere", "symlink") == 0 && mkfifo("fifo", 0640) == 0);
	need(link("1/d1/0", "hard") == 0 && link("1/d1/0", "2/hard") == 0);
	need(chdir("..") == 0);
}

static void begin(int i)
{
	enter(&dirs[i]);
	set_label("on %s", dirs[i].name);
	umask(022);
	make_tree("src");
}

/* Both have the same names, types, modes, links and bytes; -a: times and owners too. */
static void same_trees(const char *a, const char *b, bool all)
{
	struct stat sa, sb;
	need(lstat(a, &sa) == 0);
	check(lstat(b, &sb) == 0, "%s is missing", b);
	mode_t mode = all ? sa.st_mode : sa.st_mode & ~07022u;
	check(S_ISLNK(sa.st_mode) || sb.st_mode == mode, "%s: %o, not %o", b, sb.st_mode, mode);
	if (all) {
		check(sa.st_mtim.tv_sec == sb.st_mtim.tv_sec, "%s: time %jd, not %jd", b,
		      (intmax_t)sb.st_mtim.tv_sec, (intmax_t)sa.st_mtim.tv_sec);
		check(sa.st_uid == sb.st_uid && sa.st_gid == sb.st_gid, "%s: %u:%u, not %u:%u", b,
		      sb.st_uid, sb.st_gid, sa.st_uid, sa.st_gid);
		check(S_ISDIR(sa.st_mode) || sa.st_nlink == sb.st_nlink, "%s: %ju links, not %ju",
		      b, (uintmax_t)sb.st_nlink, (uintmax_t)sa.st_nlink);
	}
	if (S_ISREG(sa.st_mode))
		check(same_bytes(a, b), "%s: differs at byte %jd", b,
		      (intmax_t)first_difference(a, b));
	if (!S_ISDIR(sa.st_mode))
		return;
	check(names_in(a) == names_in(b), "%s: %d names, not %d", b, names_in(b), names_in(a));
	DIR *d = opendir(a);
	need(d);
	for (struct dirent *e; (e = readdir(d));) {
		char pa[PATH_MAX], pb[PATH_MAX];
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(pa, sizeof(pa), "%s/%s", a, e->d_name);
		snprintf(pb, sizeof(pb), "%s/%s", b, e->d_name);
		same_trees(pa, pb, all);
	}
	closedir(d);
}

static void copy_new(unsigned threads)
{
	struct fcopy_tree_options o = plain;
	o.copy.threads = threads;
	check(copy_tree("src", "dst", o) == 0, "%s: %s", tree.error.path, tree.error.call);
	check(tree.count[FCOPY_COUNT_FILES] == 202 && tree.count[FCOPY_COUNT_DIRECTORIES] == 45,
	      "%ju files, %ju directories", (uintmax_t)tree.count[FCOPY_COUNT_FILES],
	      (uintmax_t)tree.count[FCOPY_COUNT_DIRECTORIES]);
	check(tree.count[FCOPY_COUNT_SYMLINKS] == 1 && tree.count[FCOPY_COUNT_SPECIALS] == 1 &&
		  tree.count[FCOPY_COUNT_HARD_LINKS] == 0,
	      "entries");
	check(tree.committed && tree.count[FCOPY_COUNT_FAILED] == 0 && failures == 0, "failed");
	check(tree.steps > 0 && tree.count[FCOPY_COUNT_DATA] + tree.count[FCOPY_COUNT_HOLES] ==
				    tree.count[FCOPY_COUNT_BYTES],
	      "%ju + %ju, not %ju", (uintmax_t)tree.count[FCOPY_COUNT_DATA],
	      (uintmax_t)tree.count[FCOPY_COUNT_HOLES], (uintmax_t)tree.count[FCOPY_COUNT_BYTES]);
	same_trees("src", "dst", false);
	check(names_in(".") == 2, "%d names", names_in("."));
	remove_all("dst");
}

START_TEST(new_tree)
{
	begin(_i);
	for (unsigned threads = 1; threads <= 7; threads += 2) {
		set_label("%u threads on %s", threads, dirs[_i].name);
		copy_new(threads);
	}
	leave();
}
END_TEST

START_TEST(archived_tree)
{
	begin(_i);
	const struct timespec times[2] = {{1000000000, 1}, {1100000000, 2}};
	need(utimensat(AT_FDCWD, "src/symlink", times, AT_SYMLINK_NOFOLLOW) == 0);
	need(utimensat(AT_FDCWD, "src/1/d1", times, 0) == 0);
	bool acl = dirs[_i].acl && give_acl("src/1/d1/1");
	check(copy_tree("src", "dst", archive()) == 0, "%s: %s", tree.error.path, tree.error.call);
	check(tree.count[FCOPY_COUNT_HARD_LINKS] == 2 && tree.count[FCOPY_COUNT_FILES] == 200,
	      "%ju links", (uintmax_t)tree.count[FCOPY_COUNT_HARD_LINKS]);
	same_trees("src", "dst", true);
	check(!acl || has_acl("dst/1/d1/1"), "ACL");
	leave();
}
END_TEST

/* Threads meet the names of one inode at the same time. */
START_TEST(many_hard_links)
{
	enter(&dirs[_i]);
	set_label("on %s", dirs[_i].name);
	char name[64];
	struct fcopy_tree_options o = archive();
	o.copy.threads = 8;
	make_directory("src", 0755);
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "src/%d", i);
		make_directory(name, 0755);
		snprintf(name, sizeof(name), "src/%d/big", i);
		if (i == 0)
			make_file(name, 1 << 20, DENSE, 1);
		else
			need(link("src/0/big", name) == 0);
	}
	check(copy_tree("src", "dst", o) == 0, "%s: %s", tree.error.path, tree.error.call);
	check(tree.count[FCOPY_COUNT_FILES] == 1 && tree.count[FCOPY_COUNT_HARD_LINKS] == 49,
	      "%ju links", (uintmax_t)tree.count[FCOPY_COUNT_HARD_LINKS]);
	same_trees("src", "dst", true);
	leave();
}
END_TEST

START_TEST(merged_tree)
{
	begin(_i);
	make_directory("dst", 0700);
	make_directory("dst/src", 0711);
	make_directory("dst/src/1", 0755);
	make_file("dst/src/mine", 10, DENSE, 7);
	make_file("dst/src/fifo", 10, DENSE, 7);
	check(copy_tree("src", "dst", plain) == 0, "%s: %s", tree.error.path, tree.error.call);
	check(exists("dst/src/mine"), "removed");
	check(mode_of("dst/src") == 0711, "%o", mode_of("dst/src"));
	need(unlink("dst/src/mine") == 0 && chmod("dst/src", 0750) == 0);
	same_trees("src", "dst/src", false);
	/* again: each file is replaced by a new inode */
	struct stat before, after;
	need(stat("dst/src/1/d1/2", &before) == 0);
	check(copy_tree("src", "dst", plain) == 0, "%s: %s", tree.error.path, tree.error.call);
	need(stat("dst/src/1/d1/2", &after) == 0);
	check(before.st_ino != after.st_ino, "written in place");
	struct fcopy_tree_options o = plain;
	o.copy.no_clobber = true;
	check(copy_tree("src", "dst", o) == 0 && tree.count[FCOPY_COUNT_SKIPPED] == 204,
	      "%ju skipped", (uintmax_t)tree.count[FCOPY_COUNT_SKIPPED]);
	same_trees("src", "dst/src", false);
	leave();
}
END_TEST

/* Threads find out at the same time that others may exchange names in a directory of DST, or that
 * its owner may not change them. */
START_TEST(one_directory)
{
	enter(&dirs[_i / 2]);
	set_label("on %s", dirs[_i / 2].name);
	char name[64];
	struct fcopy_tree_options o = archive();
	o.copy.threads = 8;
	make_directory("src", 0755);
	make_directory("dst", 0755);
	make_directory("dst/src", _i % 2 ? 01777 : 0500);
	for (int i = 0; i < 240; i++) {
		snprintf(name, sizeof(name), "src/%d", i);
		if (i % 2)
			need(symlink("nowhere", name) == 0);
		else
			make_file(name, 10, DENSE, (unsigned)i);
	}
	check(copy_tree("src", "dst", o) == 0, "%s: %s", tree.error.path, tree.error.call);
	same_trees("src", "dst/src", true);
	leave();
}
END_TEST

static uint64_t by_action[FCOPY_ACTION_REPAIRED + 1], entry_bytes;
static unsigned operands;
static enum fcopy_state last_state;
static _Atomic unsigned running;
static _Atomic bool met;
static bool at_once;

static void note_entry(void *user, const struct fcopy_event *event)
{
	(void)user;
	if (event->kind == FCOPY_EVENT_OPERAND) {
		operands++;
		last_state = event->operand->state;
	}
	if (event->kind != FCOPY_EVENT_ENTRY)
		return;
	if (++running > 1)
		met = true;
	const struct fcopy_entry *e = event->entry;
	__atomic_add_fetch(&by_action[e->action], 1, __ATOMIC_RELAXED);
	if (e->action == FCOPY_ACTION_COPIED)
		__atomic_add_fetch(&entry_bytes, e->bytes, __ATOMIC_RELAXED);
	check(e->operand && strcmp(e->operand, "src") == 0 && e->dst, "%s", e->dst);
	check((e->action == FCOPY_ACTION_FAILED) == (e->error != NULL), "%d", e->action);
	running--;
}

/* Each entry is reported once, whatever the number of threads; the numbers are those of the report.
 */
START_TEST(reported_entries)
{
	begin(_i / 2);
	at_once = _i % 2;
	struct fcopy_tree_options o = archive();
	o.report_entries = true;
	o.report_at_once = at_once;
	o.copy.threads = 64;
	o.copy.notify = note_entry;
	const char *src = "src";
	memset(by_action, 0, sizeof(by_action));
	operands = 0;
	entry_bytes = 0;
	met = false;
	check(fcopy_tree(&src, 1, "dst", &o, &tree) == 0, "%s", tree.error.path);
	check(at_once || !met, "in two threads at once");
	check(by_action[FCOPY_ACTION_COPIED] ==
		  tree.count[FCOPY_COUNT_FILES] + tree.count[FCOPY_COUNT_DIRECTORIES] +
		      tree.count[FCOPY_COUNT_SYMLINKS] + tree.count[FCOPY_COUNT_SPECIALS],
	      "%ju copied", (uintmax_t)by_action[FCOPY_ACTION_COPIED]);
	check(by_action[FCOPY_ACTION_LINKED] == tree.count[FCOPY_COUNT_HARD_LINKS] &&
		  tree.count[FCOPY_COUNT_HARD_LINKS] == 2,
	      "%ju linked", (uintmax_t)tree.count[FCOPY_COUNT_HARD_LINKS]);
	check(entry_bytes == tree.count[FCOPY_COUNT_BYTES], "%ju bytes", (uintmax_t)entry_bytes);
	check(operands == 1 && last_state == FCOPY_STATE_COMPLETE, "state %d", last_state);
	/* A merge with a failure. */
	o.copy.no_clobber = true;
	o.copy.no_directory = true;
	o.hard_links = false;
	need(unlink("dst/symlink") == 0 && unlink("dst/fifo") == 0 && mkdir("dst/fifo", 0755) == 0);
	need(symlink("a", "src/new") == 0);
	memset(by_action, 0, sizeof(by_action));
	fcopy_tree(&src, 1, "dst", &o, &tree);
	check(by_action[FCOPY_ACTION_SKIPPED] == tree.count[FCOPY_COUNT_SKIPPED] &&
		  tree.count[FCOPY_COUNT_SKIPPED] > 0,
	      "skipped");
	check(by_action[FCOPY_ACTION_UNCHANGED] == tree.count[FCOPY_COUNT_UNCHANGED], "unchanged");
	check(by_action[FCOPY_ACTION_FAILED] == tree.count[FCOPY_COUNT_FAILED], "%ju failed",
	      (uintmax_t)tree.count[FCOPY_COUNT_FAILED]);
	check(by_action[FCOPY_ACTION_COPIED] ==
		  tree.count[FCOPY_COUNT_FILES] + tree.count[FCOPY_COUNT_DIRECTORIES] +
		      tree.count[FCOPY_COUNT_SYMLINKS] + tree.count[FCOPY_COUNT_SPECIALS],
	      "%ju copied", (uintmax_t)by_action[FCOPY_ACTION_COPIED]);
	leave();
}
END_TEST

/* A directory where a file is needed, and the reverse, fail for that entry alone. */
START_TEST(merge_conflicts)
{
	begin(_i);
	make_directory("dst", 0755);
	make_directory("dst/fifo", 0755);
	make_directory("dst/symlink", 0755);
	make_directory("dst/1", 0755);
	make_directory("dst/1/d1", 0755);
	make_directory("dst/1/d1/2", 0755);
	make_file("dst/2", 10, DENSE, 7);
	need(symlink("1", "dst/3") == 0);
	struct fcopy_tree_options o = plain;
	o.copy.no_directory = true;
	check(copy_tree("src", "dst", o) == -1, "accepted");
	check(tree.count[FCOPY_COUNT_FAILED] == 5 && failures == 5, "%ju failed",
	      (uintmax_t)tree.count[FCOPY_COUNT_FAILED]);
	check(same_bytes("src/1/d1/3", "dst/1/d1/3"), "not continued");
	check(!exists("dst/1/d3"), "a symlink was followed");
	leave();
}
END_TEST

/* Nothing is left of a new tree that was cancelled or has no room. */
static volatile int cancel;
static int entries;

static void cancel_at_entry(void *user, const struct fcopy_event *event)
{
	(void)user;
	if (event->kind == FCOPY_EVENT_ENTRY && ++entries == 50)
		__atomic_store_n(&cancel, 1, __ATOMIC_RELAXED); /* other threads read it */
}

START_TEST(cancelled_tree)
{
	begin(_i);
	struct fcopy_tree_options o = plain;
	const char *src = "src";
	cancel = entries = 0;
	o.copy.cancel = &cancel;
	o.copy.notify = cancel_at_entry;
	o.report_entries = true;
	check(fcopy_tree(&src, 1, "dst", &o, &tree) == -1, "completed");
	check(tree.error.err == EINTR && !tree.committed, "%d", tree.error.err);
	check(names_in(".") == 1, "%d names", names_in("."));
	cancel = entries = 0;
	o.copy.resume = true;
	check(fcopy_tree(&src, 1, "dst", &o, &tree) == -1, "completed");
	check(!exists("dst") && strcmp(tree.part, "dst.fcopy-part") == 0, "part %s", tree.part);
	need(unlink("src/1/d1/4") == 0);
	make_directory("dst.fcopy-part/data/stale", 0755);
	make_file("dst.fcopy-part/data/stale/file", 10, DENSE, 7);
	o.copy.cancel = NULL;
	check(fcopy_tree(&src, 1, "dst", &o, &tree) == 0, "%s: %s", tree.error.path,
	      tree.error.call);
	check(tree.count[FCOPY_COUNT_REUSED] > 0, "nothing was reused");
	same_trees("src", "dst", false);
	check(names_in(".") == 2, "%d names", names_in("."));
	leave();
}
END_TEST

START_TEST(full_disk)
{
	begin(0);
	make_directory("small", 0755);
	if (mount("tmpfs", "small", "tmpfs", 0, "size=1M") < 0) {
		leave();
		skip_test("tmpfs cannot be mounted");
	}
	check(copy_tree("src", "small/dst", plain) == -1, "completed");
	check(tree.error.err == ENOSPC && !tree.committed, "%d", tree.error.err);
	check(names_in("small") == 0, "%d names", names_in("small"));
	need(umount("small") == 0);
	leave();
}
END_TEST

static void refused(const char *src, const char *dst, int err, int names)
{
	check(copy_tree(src, dst, plain) == -1, "%s to %s was accepted", src, dst);
	check(tree.error.err == err, "%s to %s: %d, not %d", src, dst, tree.error.err, err);
	check(names_in(".") == names, "%d names", names_in("."));
}

START_TEST(refusals)
{
	begin(_i);
	struct fcopy_tree_options o = {.copy.api = FCOPY_API};
	need(symlink("src/1", "inside") == 0);
	make_file("file", 10, DENSE, 1);
	refused("src", "src", EINVAL, 3);
	refused("src", "src/1/new", EINVAL, 3);
	refused("src", "inside", EINVAL, 3);
	refused("src", "inside/new", EINVAL, 3);
	refused("src", "file", ENOTDIR, 3);
	refused("src", "none/new", ENOENT, 3);
	refused("none", "new", ENOENT, 3);
	check(copy_tree("src", "new", o) == -1 && tree.error.advice == FCOPY_ADVICE_RECURSIVE, "%d",
	      tree.error.advice);
	o = plain;
	o.copy.scratch = true;
	check(copy_tree("src", "new", o) == -1 && tree.error.err == EINVAL, "scratch");
	check(!exists("new") && names_in("src/1") == 10, "created");
	if (geteuid() == 0) {
		make_directory("bound", 0755);
		need(mount("src/1", "bound", "none", MS_BIND, NULL) == 0);
		refused("src", "bound", EINVAL, 4);
		refused("src", "bound/new", EINVAL, 4);
		check(names_in("src/1") == 10, "created");
		need(umount("bound") == 0);
	}
	leave();
}
END_TEST

/* The mount point is copied, and nothing below it. */
START_TEST(one_file_system)
{
	begin(_i);
	struct fcopy_tree_options o = plain;
	o.one_file_system = true;
	make_directory("src/other", 0755);
	if (mount("tmpfs", "src/other", "tmpfs", 0, NULL) < 0) {
		leave();
		skip_test("tmpfs cannot be mounted");
	}
	make_file("src/other/file", 10, DENSE, 1);
	check(copy_tree("src", "dst", o) == 0, "%s", tree.error.call);
	check(exists("dst/other") && names_in("dst/other") == 0, "entered");
	check(copy_tree("src", "all", plain) == 0, "%s", tree.error.call);
	check(same_bytes("src/other/file", "all/other/file"), "not entered");
	need(umount("src/other") == 0);
	leave();
}
END_TEST

/* Several sources, one of them large; one fails, the others are copied. */
START_TEST(several_sources)
{
	begin(_i);
	const char *src[] = {"large", "none", "src", "small"};
	const char *twice[] = {"small", "src/small"};
	make_file("large", LARGE_SIZE, DENSE, 1);
	make_file("small", 10, DENSE, 2);
	make_directory("dst", 0755);
	check(fcopy_tree(src, 4, "dst", &plain, &tree) == -1, "a missing source");
	check(tree.error.err == ENOENT && tree.count[FCOPY_COUNT_FAILED] == 1, "%d",
	      tree.error.err);
	check(strcmp(tree.error.path, "none") == 0, "%s", tree.error.path);
	check(same_bytes("large", "dst/large") && same_bytes("small", "dst/small"), "bytes");
	same_trees("src", "dst/src", false);
	make_file("src/small", 10, DENSE, 3);
	check(fcopy_tree(twice, 2, "dst", &plain, &tree) == -1, "the same name");
	check(tree.error.err == EEXIST && same_bytes("small", "dst/small"), "%d", tree.error.err);
	check(fcopy_tree(src + 3, 1, "none", &plain, &tree) == 0, "%s", tree.error.call);
	check(same_bytes("small", "none"), "bytes");
	check(fcopy_tree(src, 2, "file", &plain, &tree) == -1, "not a directory");
	leave();
}
END_TEST

/* Large files, holes and clones inside a tree are copied as single files are. */
START_TEST(large_files)
{
	enter(&dirs[_i]);
	set_label("on %s", dirs[_i].name);
	make_directory("src", 0755);
	make_file("src/sparse", MAPPED_SIZE, SPARSE, 1);
	make_file("src/unwritten", MAPPED_SIZE, UNWRITTEN, 2);
	make_file("src/dense", LARGE_SIZE, DENSE, 3);
	check(copy_tree("src", "dst", plain) == 0, "%s", tree.error.call);
	same_trees("src", "dst", false);
	check(!dirs[_i].holes || tree.count[FCOPY_COUNT_HOLES] > 0 ||
		  tree.count[FCOPY_COUNT_CLONED] == 3,
	      "%ju", (uintmax_t)tree.count[FCOPY_COUNT_HOLES]);
	check(!dirs[_i].reflink || tree.count[FCOPY_COUNT_CLONED] == 3, "%ju cloned",
	      (uintmax_t)tree.count[FCOPY_COUNT_CLONED]);
	struct stat st;
	need(stat("dst/sparse", &st) == 0);
	check(!dirs[_i].holes || st.st_blocks * 512 < MAPPED_SIZE, "no holes");
	struct fcopy_tree_options o = plain;
	o.copy.verify = o.copy.fsync = true;
	check(copy_tree("src", "verified", o) == 0, "%s", tree.error.call);
	same_trees("src", "verified", false);
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	int n = (int)dir_count;
	Suite *s = suite_create("tree");
	TCase *c = add_case(s, "tree");
	tcase_add_loop_test(c, new_tree, 0, n);
	tcase_add_loop_test(c, archived_tree, 0, n);
	tcase_add_loop_test(c, many_hard_links, 0, n);
	tcase_add_loop_test(c, merged_tree, 0, n);
	tcase_add_loop_test(c, one_directory, 0, 2 * n);
	tcase_add_loop_test(c, reported_entries, 0, 2 * n);
	tcase_add_loop_test(c, merge_conflicts, 0, n);
	tcase_add_loop_test(c, cancelled_tree, 0, n);
	tcase_add_test(c, full_disk);
	tcase_add_loop_test(c, refusals, 0, n);
	tcase_add_loop_test(c, one_file_system, 0, n);
	tcase_add_loop_test(c, several_sources, 0, n);
	tcase_add_loop_test(c, large_files, 0, n);
	return run_suite(s);
}
