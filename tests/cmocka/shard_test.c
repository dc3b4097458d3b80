/* SPDX-License-Identifier: MIT
 * Every system call of a shard fails, at each time that it is made. Afterwards DST is absent, old
 * or whole, success means that the marker or DST is there, and a retry of the shards completes the
 * copy, with nothing left beside it but the receipt.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "copy/shard.h"

#include "fcopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE  ((3 << 20) + 5)
#define FILES 9

enum scene {
	FIRST,   /* the first of two shards */
	LAST,    /* the second one, which commits */
	REPLACE, /* the same where DST exists */
	RETRY,   /* after the commit */
	NEXT,    /* another source begins after a commit */
	STALE,   /* the same source, after DST was removed */
	TREE_FIRST,
	TREE_LAST,
	TREE_RETRY,
	SCENES
};

static const char *const scene_names[SCENES] = {"first",      "last",      "replacing",
						"retry",      "next job",  "stale receipt",
						"tree first", "tree last", "tree retry"};

static const int storage[] = {EIO, ENOSPC, -1};
static const int denied[] = {EACCES, EIO, EMFILE, -1};
static const int input_output[] = {EIO, -1};
static const int no_locks[] = {ENOLCK, ENOSYS, EOPNOTSUPP, EIO, -1};
static const int no_flush[] = {EINVAL, EIO, -1};
static const int no_memory[] = {ENOMEM, -1};

#define ANY     ((1 << SCENES) - 1)
#define COPIES  (1 << FIRST | 1 << LAST | 1 << REPLACE | 1 << NEXT | 1 << STALE)
#define COMMITS (1 << LAST | 1 << REPLACE)
#define TREES   (1 << TREE_FIRST | 1 << TREE_LAST)

static const struct row {
	const char *call;
	const int *errs;
	unsigned scenes;
} rows[] = {
    {"openat64", denied, ANY},
    {"open64", denied, ANY & ~(1 << TREE_RETRY)},
    {"fstat64", input_output, ANY},
    {"fstatat64", input_output, ANY},
    {"getdents64", input_output, ANY},
    {"mkdirat", storage, 1 << FIRST | TREES},
    {"ftruncate64", storage, 1 << FIRST | 1 << NEXT | 1 << STALE},
    {"pwrite64", storage, TREES},
    {"close", storage, COPIES | TREES},
    {"flock", no_locks, COPIES | TREES},
    {"fsync", no_flush, COPIES | TREES},
    {"syncfs", storage, TREES},
    {"renameat", storage, COMMITS},
    {"renameat2", storage, 1 << TREE_LAST},
    {"fchmod", input_output, COMMITS},
    {"unlinkat", input_output, COMMITS | 1 << NEXT | 1 << STALE | 1 << TREE_LAST},
    {"calloc", no_memory, ANY},
};

struct run {
	const struct row *row;
	int err;
	enum scene scene;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_all(const char *path)
{
	if (exists(path))
		need(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

static bool is_tree(enum scene scene)
{
	return scene >= TREE_FIRST;
}

/* Copies a share; returns the result, and whether DST is committed. */
static int copy_share(bool tree, unsigned index, bool *committed)
{
	static struct fcopy_report report;
	static struct fcopy_tree_report tree_report;
	const char *const src = "src";
	struct fcopy_tree_options o = {.recursive = true};
	o.copy = (struct fcopy_options){.api = FCOPY_API, .threads = 1};
	o.copy.shard = (struct fcopy_shard){.index = index, .count = 2};
	int r = tree ? fcopy_tree(&src, 1, "dst", &o, &tree_report)
		     : fcopy_copy(src, "dst", &o.copy, &report);
	*committed = tree ? tree_report.committed : report.committed;
	int err = tree ? tree_report.error.err : report.error.err;
	if ((r == 0) != (err == 0))
		fail_msg("returned %d with errno %s", r, errno_name(err));
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
}

/* What was done before the calls that fail. */
static void prepare(enum scene scene)
{
	bool tree = is_tree(scene);
	remove_all("dst");
	remove_all("dst.fcopy-part");
	remove_all("dst.fcopy-shards");
	make_source(tree);
	if (scene == REPLACE)
		make_file("dst", 100, DENSE, 9);
	if (scene != FIRST && scene != TREE_FIRST)
		must_copy(tree, 0);
	if (scene == RETRY || scene == NEXT || scene == STALE || scene == TREE_RETRY)
		must_copy(tree, 1);
	if (scene == STALE)
		remove_all("dst");
	if (scene == NEXT)
		make_file("src", SIZE, DENSE, 2);
}

static bool is_whole(bool tree)
{
	char a[32], b[32];
	if (!tree)
		return exists("dst") && same_bytes("src", "dst");
	if (!exists("dst"))
		return false;
	for (int f = 0; f < FILES; f++) {
		snprintf(a, sizeof(a), "src/%s%d", f % 2 ? "d/" : "", f);
		snprintf(b, sizeof(b), "dst/%s%d", f % 2 ? "d/" : "", f);
		if (!same_bytes(a, b))
			return false;
	}
	return true;
}

/* The names in dst.fcopy-shards, or what begins like prefix. */
static unsigned count_records(const char *prefix)
{
	unsigned n = 0;
	DIR *d = opendir("dst.fcopy-shards");
	const struct dirent *e;
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	if (d)
		closedir(d);
	return n;
}

static void once(void *arg)
{
	const struct run *run = arg;
	const enum scene scene = run->scene;
	bool tree = is_tree(scene), committed;
	bool last = scene == LAST || scene == REPLACE || scene == TREE_LAST;
	prepare(scene);
	fault_on();
	int r = copy_share(tree, last ? 1 : 0, &committed);
	fault_off();
	bool old = scene == REPLACE || scene == NEXT;
	if (committed && !is_whole(tree))
		fail_msg("reported as committed, and DST is not whole");
	if (exists("dst") && !is_whole(tree) && !old)
		fail_msg("DST is torn");
	if (r == 0 && !committed && (last || count_records("share.") == 0))
		fail_msg("success without a %s", last ? "commit" : "marker");
	must_copy(tree, 0);
	must_copy(tree, 1);
	if (!is_whole(tree) || exists("dst.fcopy-part"))
		fail_msg("after a retry DST is not whole, or the part is left");
	if (count_records("") != 1 || count_records("receipt.") != 1)
		fail_msg("%u records are left", count_records(""));
}

static void sweep(void **state)
{
	const struct errno_case *c = *state;
	const struct row *row = c->row;
	for (enum scene scene = FIRST; scene < SCENES; scene++) {
		struct run run = {row, c->err, scene};
		if (!(row->scenes & 1u << scene))
			continue;
		print_message("# %s\n", scene_names[scene]);
		fault_sweep(row->call, c->err, once, &run);
	}
}

static int held;

static void release_lock(void)
{
	close(held);
}

/* Opens the record of the job, and locks it as another process would. */
static void hold_lock(int lock)
{
	glob_t found;
	need(glob("dst.fcopy-shards/job.*", 0, NULL, &found) == 0);
	held = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	globfree(&found);
	need(held >= 0 && flock(held, lock | LOCK_NB) == 0);
}

/* Another process had the exclusive lock at all 126 tries. It releases the lock just before this
 * one looks whether it still has it. */
static void lock_is_released_after_last_try(void **state)
{
	bool committed;
	(void)state;
	prepare(LAST);
	hold_lock(LOCK_SH);
	must_copy(false, 1);
	release_lock();
	hold_lock(LOCK_EX);
	fault_before(release_lock);
	fault_set("flock", 127, 0);
	fault_on();
	int r = copy_share(false, 0, &committed);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	assert_true(committed && is_whole(false));
}

static void ranges_cover_the_largest_files(void **state)
{
	(void)state;
	for (off_t size = INT64_MAX - ((off_t)2 << 20); size > 0 && size < INT64_MAX - 400000;
	     size += 400000)
		for (unsigned n = 1; n <= FCOPY_SHARDS_MAX; n = 2 * n + 1) {
			const struct fcopy_shard shard = {.count = n};
			off_t at = 0, start, end;
			for (unsigned i = 0; i < n; i++, at = end) {
				shard_range(&shard, i, size, &start, &end);
				assert_int_equal(start, at);
				assert_true(end > start);
			}
			assert_int_equal(at, size);
		}
}

int main(void)
{
	cases_enter("ext4");
	case_add(ranges_cover_the_largest_files, NULL, "shards: ranges near 2^63 bytes");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		case_add_errnos(sweep, &rows[i], rows[i].errs, "shards", rows[i].call);
	case_add(lock_is_released_after_last_try, NULL, "shards: the lock is free after all tries");
	return cases_run("shards");
}
