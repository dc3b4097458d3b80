/* SPDX-License-Identifier: MIT
 * Every system call of a shard fails, at each time that it is made. Afterwards DST is absent, old
 * or whole, success means that DST or a marker is there, and a retry of the shards completes the
 * copy, with nothing left beside it but the receipt. And another process acts before one of the
 * calls.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "shard/job.h"

#include "fcopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE      ((3 << 20) + 5)
#define FILES     5
#define TREE_SIZE (FILES * 100 + FILES * (FILES - 1) / 2)

enum scene {
	FIRST,   /* begins the job, and completes it */
	REPLACE, /* the same where DST exists */
	JOIN,    /* another process has begun, and failed */
	COMMIT,  /* everything is marked, but not committed */
	RETRY,   /* after the commit */
	NEXT,    /* another source begins after a commit */
	STALE,   /* the same source, after DST was removed */
	TREE_FIRST,
	TREE_JOIN,
	TREE_COMMIT,
	TREE_RETRY,
	SCENES
};

static const char *const scene_names[SCENES] = {
    "first", "replacing",  "joining",      "committing",      "retry",     "next job",
    "stale", "tree first", "tree joining", "tree committing", "tree retry"};

static const int full[] = {ENOSPC, -1};
static const int descriptors[] = {EMFILE, -1};
static const int input_output[] = {EIO, -1};
static const int no_locks[] = {ENOLCK, EIO, -1};
static const int no_memory[] = {ENOMEM, -1};

#define FILE_ENDS (1 << FIRST | 1 << COMMIT)
#define TREE_ENDS (1 << TREE_JOIN | 1 << TREE_COMMIT)
#define MOST      (FILE_ENDS | TREE_ENDS | 1 << RETRY | 1 << TREE_RETRY | 1 << NEXT)

static const struct row {
	const char *call;
	const int *errs;
	unsigned scenes;
} rows[] = {
    {"openat64", descriptors, MOST},
    {"open64", descriptors, 1 << FIRST | 1 << COMMIT},
    {"fstat64", input_output, FILE_ENDS | TREE_ENDS},
    {"fstatat64", input_output, FILE_ENDS | TREE_ENDS},
    {"getdents64", input_output, 1 << FIRST | TREE_ENDS},
    {"mkdirat", full, 1 << FIRST | 1 << TREE_FIRST},
    {"ftruncate64", full, 1 << FIRST | 1 << STALE},
    {"pwrite64", full, 1 << TREE_FIRST | 1 << TREE_JOIN},
    {"close", input_output, FILE_ENDS | TREE_ENDS},
    {"flock", no_locks, FILE_ENDS | TREE_ENDS | 1 << NEXT},
    {"fsync", input_output, FILE_ENDS | 1 << REPLACE | TREE_ENDS},
    {"fdatasync", input_output, 1 << TREE_FIRST},
    {"syncfs", input_output, 1 << TREE_FIRST | 1 << TREE_COMMIT},
    {"renameat", full, 1 << REPLACE | FILE_ENDS},
    {"renameat2", full, 1 << FIRST | 1 << TREE_FIRST | 1 << TREE_COMMIT},
    {"fchmod", input_output, FILE_ENDS | 1 << TREE_COMMIT},
    {"unlinkat", input_output, FILE_ENDS | 1 << NEXT | 1 << STALE | 1 << TREE_COMMIT},
    {"linkat", full, 1 << TREE_FIRST | 1 << TREE_COMMIT},
    {"calloc", no_memory, FILE_ENDS | 1 << TREE_FIRST | TREE_ENDS},
    {"malloc", no_memory, 1 << TREE_FIRST | 1 << TREE_COMMIT},
    {"realloc", no_memory, 1 << TREE_FIRST | 1 << TREE_COMMIT},
};

struct run {
	const struct row *row;
	int err;
	enum scene scene;
	int nth;
};

static bool is_tree(enum scene scene)
{
	return scene >= TREE_FIRST;
}

/* Of the report of copy_share. */
static int share_err;
static uint64_t share_data;

/* Copies a share; returns the result, and whether DST is committed. */
static int copy_share(bool tree, unsigned index, bool *committed)
{
	static struct fcopy_report report;
	static struct fcopy_tree_report tree_report;
	const char *const src = "src";
	struct fcopy_tree_options o = {.recursive = true, .hard_links = true};
	o.copy = (struct fcopy_options){.api = FCOPY_API, .threads = 1};
	o.copy.shard = (struct fcopy_shard){.index = index, .count = 2};
	int r = tree ? fcopy_tree(&src, 1, "dst", &o, &tree_report)
		     : fcopy_copy(src, "dst", &o.copy, &report);
	*committed = tree ? tree_report.committed : report.committed;
	share_data = tree ? tree_report.count[FCOPY_COUNT_DATA] : report.data;
	share_err = tree ? tree_report.error.err : report.error.err;
	if ((r == 0) != (share_err == 0))
		fail_msg("returned %d with errno %s", r, errno_name(share_err));
	return r;
}

static void must_copy(bool tree, unsigned index)
{
	bool committed;
	if (copy_share(tree, index, &committed) < 0)
		fail_msg("without a fault, share %u failed", index);
}

static void make_source(bool tree)
{
	char name[32];
	remove_all("src");
	if (!tree) {
		make_file("src", SIZE, DENSE, 1);
		return;
	}
	need(mkdir("src", 0755) == 0 && mkdir("src/d", 0755) == 0);
	for (int f = 0; f < FILES; f++) {
		snprintf(name, sizeof(name), "src/%s%d", f % 2 ? "d/" : "", f);
		make_file(name, 100 + f, DENSE, (unsigned)f);
	}
	need(link("src/0", "src/d/link") == 0);
}

/* Copies share 0, in which this call fails at its nth time. */
static void copy_faulty(bool tree, const char *call, unsigned n)
{
	bool committed;
	fault_set(call, n, EIO);
	fault_on();
	int r = copy_share(tree, 0, &committed);
	fault_off();
	if (r == 0 || committed || !fault_seen())
		fail_msg("with a fault in %s, share 0 did not fail", call);
}

/* What was done before the calls that fail. */
static void prepare(enum scene scene)
{
	bool tree = is_tree(scene);
	remove_all("dst");
	remove_all("dst.fcopy-part");
	make_source(tree);
	if (scene == REPLACE)
		make_file("dst", 100, DENSE, 9);
	if (scene == JOIN || scene == TREE_JOIN)
		copy_faulty(tree, tree ? "syncfs" : "fsync",
			    tree ? 1 : 2); /* the first fsync is of the part */
	if (scene == COMMIT)
		copy_faulty(tree, "renameat", 1);
	if (scene == TREE_COMMIT)
		copy_faulty(tree, "syncfs", 2);
	if (scene == RETRY || scene == NEXT || scene == STALE || scene == TREE_RETRY)
		must_copy(tree, 1);
	if (scene == STALE)
		remove_all("dst");
	if (scene == NEXT)
		make_file("src", SIZE, DENSE, 2);
}

static bool is_whole(bool tree)
{
	struct stat linked, link;
	char a[32], b[32];
	if (!tree)
		return exists("dst") && same_bytes("src", "dst");
	if (!exists("dst"))
		return false;
	for (int f = 0; f < FILES; f++) {
		snprintf(a, sizeof(a), "src/%s%d", f % 2 ? "d/" : "", f);
		snprintf(b, sizeof(b), "dst/%s%d", f % 2 ? "d/" : "", f);
		if (!exists(b) || !same_bytes(a, b))
			return false;
	}
	return lstat("dst/0", &linked) == 0 && lstat("dst/d/link", &link) == 0 &&
	       link.st_ino == linked.st_ino;
}

/* The names in dst.fcopy-part that begin like prefix. */
static unsigned count_names(const char *prefix)
{
	unsigned n = 0;
	DIR *d = opendir("dst.fcopy-part");
	const struct dirent *e;
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	if (d)
		closedir(d);
	return n;
}

static void once(void *arg)
{
	struct run *run = arg;
	const enum scene scene = run->scene;
	bool tree = is_tree(scene), committed;
	prepare(scene);
	fault_set(run->row->call, ++run->nth,
		  run->err); /* again: prepare may have set another one */
	fault_on();
	int r = copy_share(tree, 0, &committed);
	fault_off();
	if (r < 0 && (run->err == ENOMEM || run->err == EMFILE))
		assert_errno(share_err, run->err);
	bool old = scene == REPLACE || scene == NEXT;
	if (committed && !is_whole(tree))
		fail_msg("reported as committed, and DST is not whole");
	if (exists("dst") && !is_whole(tree) && !old)
		fail_msg("DST is torn");
	if (r == 0 && !committed && count_names("share.done.") == 0)
		fail_msg("success without a marker");
	must_copy(tree, 0);
	if (!is_whole(tree) || exists("dst.fcopy-part/data"))
		fail_msg("after a retry DST is not whole, or its part is left");
	if (count_names("") != 2 || count_names("journal") != 1 || count_names("lock") != 1)
		fail_msg("%u names are left in the part", count_names(""));
}

static void sweep(void **state)
{
	const struct errno_case *c = *state;
	const struct row *row = c->row;
	for (enum scene scene = FIRST; scene < SCENES; scene++) {
		struct run run = {row, c->err, scene, 0};
		if (!(row->scenes & 1u << scene))
			continue;
		print_message("# %s\n", scene_names[scene]);
		fault_sweep(row->call, c->err, once, &run);
	}
}

static bool other_tree;
static uint64_t *other_data; /* how much the other process copied; shared memory */

/* Another process copies all that it can get, and ends. */
static void other_copies(void)
{
	bool committed;
	int status = -1;
	const pid_t child = fork();
	if (child == 0) {
		fault_clear();
		fault_also("nanosleep", FAULT_ZERO); /* no waiting for this one */
		fault_on();
		int r = copy_share(other_tree, 1, &committed);
		*other_data = share_data;
		_exit(r == 0 ? 0 : 1);
	}
	need(child > 0 && waitpid(child, &status, 0) == child);
	assert_int_equal(status, 0);
}

/* What the other process has completed in between is not copied again. */
static void once_shared(void *arg)
{
	const char *hidden = arg;
	bool committed;
	prepare(other_tree ? TREE_FIRST : FIRST);
	*other_data = 0;
	if (hidden)
		fault_also(hidden, ENOENT);
	fault_on();
	int r = copy_share(other_tree, 0, &committed);
	fault_off();
	assert_int_equal(r, 0);
	assert_true(committed && is_whole(other_tree));
	assert_int_equal(share_data + *other_data, other_tree ? TREE_SIZE : SIZE);
}

/* hidden: a client of NFS does not see new names at once. Each lock asks the server. */
static void other_is_faster(bool tree, const char *hidden)
{
	other_data = mmap(NULL, sizeof(*other_data), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(other_data != MAP_FAILED);
	other_tree = tree;
	fault_before(other_copies);
	fault_sweep("flock", 0, once_shared, (void *)hidden);
	munmap(other_data, sizeof(*other_data));
}

static void nothing_is_copied_twice(void **state)
{
	(void)state;
	other_is_faster(false, NULL);
	other_is_faster(true, NULL);
}

static void new_markers_are_not_seen(void **state)
{
	(void)state;
	other_is_faster(false, "faccessat");
}

/* Not every client of a network file system knows when DST was created. */
static void time_of_creation_is_unknown(void **state)
{
	const bool at_commit = *(const bool *)*state;
	bool committed;
	for (int again = 0; again < 2; again++) {
		prepare(TREE_FIRST);
		fault_also("statx", ENOSYS);
		if (at_commit)
			fault_on();
		must_copy(true, 0);
		fault_off();
		if (again) /* another directory */
			need(rename("dst", "old") == 0 && mkdir("dst", 0755) == 0);
		if (!at_commit)
			fault_on();
		int r = copy_share(true, 1, &committed);
		fault_off();
		assert_int_equal(r, again ? -1 : 0);
		assert_int_equal(committed, !again);
	}
	remove_all("old");
}

static int held;

static void release_lock(void)
{
	close(held);
}

/* Another process commits, and had the exclusive lock at all 126 tries. It releases the lock just
 * before this one tries for the last time. */
static void lock_is_released_after_last_try(void **state)
{
	bool committed;
	(void)state;
	prepare(COMMIT);
	held = open("dst.fcopy-part/lock", O_RDONLY | O_CLOEXEC);
	need(held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0);
	fault_before(release_lock);
	fault_set("flock", 126, 0);
	fault_on();
	int r = copy_share(false, 0, &committed);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	assert_true(committed && is_whole(false));
}

/* The journal of a part ended early. No rename follows without the line of the commit, whatever
 * errno is by then. */
static void a_lost_journal_is_no_commit(void **state)
{
	struct fcopy_error error = {.err = 0};
	struct job j = {.path = "dst", .error = &error};
	struct stat st;
	(void)state;
	make_file("src", 100, DENSE, 1);
	j.part.log = open("src", O_RDONLY | O_CLOEXEC); /* write(2) fails */
	need(j.part.log >= 0 && fstat(j.part.log, &st) == 0);
	for (int i = 0; i < 2; i++) { /* the second time nothing is written */
		errno = 0;
		assert_errno(-job_note_commit(&j, &st), EBADF);
		assert_errno(error.err, EBADF);
	}
	close(j.part.log);
}

static void ranges_cover_the_largest_files(void **state)
{
	(void)state;
	for (off_t size = INT64_MAX - ((off_t)2 << 20); size > 0 && size < INT64_MAX - 400000;
	     size += 400000)
		for (unsigned shards = 1; shards <= FCOPY_SHARDS_MAX; shards = 2 * shards + 1) {
			const unsigned n = range_count(shards, size);
			off_t at = 0, start, end;
			assert_int_equal(n % shards, 0);
			assert_true(n < shards + RANGES_MOST + 2);
			for (unsigned i = 0; i < n; i++, at = end) {
				range_of(n, i, size, &start, &end);
				assert_int_equal(start, at);
				assert_true(end > start);
			}
			assert_int_equal(at, size);
		}
}

static void a_file_has_more_ranges_than_shards_if_it_is_large(void **state)
{
	const struct {
		off_t size;
		unsigned shards, ranges;
	} rows[] = {
	    {0, 1, 1},
	    {0, 3, 3},
	    {9000000, 4, 4},
	    {RANGE_SIZE, 1, 1},
	    {RANGE_SIZE + 1, 1, 2},
	    {2 * RANGE_SIZE, 2, 2},
	    {2 * RANGE_SIZE + 1, 2, 4},
	    {(off_t)300 << 20, 2, 4},
	    {(off_t)8 << 30, 32, 64},
	    {RANGES_MOST * RANGE_SIZE, 1, RANGES_MOST},
	    {(off_t)1 << 40, 1, RANGES_MOST},
	    {(off_t)1 << 40, FCOPY_SHARDS_MAX, FCOPY_SHARDS_MAX},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(range_count(rows[i].shards, rows[i].size), rows[i].ranges);
}

int main(void)
{
	cases_enter("ext4");
	case_add(ranges_cover_the_largest_files, NULL, "shards: ranges near 2^63 bytes");
	case_add(a_file_has_more_ranges_than_shards_if_it_is_large, NULL,
		 "shards: the number of ranges");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		case_add_errnos(sweep, &rows[i], rows[i].errs, "shards", rows[i].call);
	case_add(nothing_is_copied_twice, NULL, "shards: another process is faster");
	case_add(new_markers_are_not_seen, NULL,
		 "shards: another process is faster, and its markers are not seen");
	case_add(a_lost_journal_is_no_commit, NULL, "shards: the journal was lost before");
	static const bool yes = true, no = false;
	case_add(time_of_creation_is_unknown, &yes,
		 "shards: the time of creation is unknown at the commit");
	case_add(time_of_creation_is_unknown, &no,
		 "shards: the time of creation is unknown to a retry");
	case_add(lock_is_released_after_last_try, NULL, "shards: the lock is free after all tries");
	return cases_run("shards");
}
