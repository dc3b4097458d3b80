/* SPDX-License-Identifier: MIT
 * A maker makes a private directory while a remover removes what dead processes have left. The
 * maker stops before one of its calls. The remover then runs until one of its calls, and
 * finishes after the maker. All pairs of calls are tried. The maker's directory is never removed.
 * And what becomes of a part whose process has ended, or that another machine has just made.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "part/left.h"
#include "part/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SWEEPS, CLEANS, SHARED };

static struct scene {
	int how;
	bool shared;
	const char *call; /* of the process that removes */
	int nth;          /* before which of them it stops */
	int stopped[2], go[2];
	pid_t child;
	unsigned paused; /* how often it did stop */
} scene;

static void remove_stops(void)
{
	char byte = 0;
	need(write(scene.stopped[1], &byte, 1) == 1);
	need(read(scene.go[0], &byte, 1) == 1);
}

static void remove_left(int here, const char *name)
{
	struct left l;
	if (scene.how == SWEEPS) {
		left_sweep(here, name, 0);
		return;
	}
	if (part_examine(&l, here, name, true) && l.state == FCOPY_LEFT_DEAD && left_remove(&l) < 0)
		_exit(1);
	left_close(&l);
}

/* Without the descriptors of the other process, whose locks would live on in this one. */
static _Noreturn void remove_each(void)
{
	for (int fd = 3; fd < 256; fd++)
		if (fd != scene.stopped[1] && fd != scene.go[0])
			close(fd);
	int here = open(".", O_RDONLY | O_DIRECTORY);
	DIR *d = opendir(".");
	fault_before(remove_stops);
	fault_set(scene.call, scene.nth, 0);
	for (const struct dirent *e; here >= 0 && d && (e = readdir(d));)
		if (temporary_is_drawn(e->d_name)) {
			fault_on();
			remove_left(here, e->d_name);
			fault_off();
		}
	_exit(0);
}

static void start_removing(void)
{
	char byte;
	need(pipe2(scene.stopped, O_CLOEXEC) == 0 && pipe2(scene.go, O_CLOEXEC) == 0);
	scene.child = fork();
	need(scene.child >= 0);
	if (scene.child == 0)
		remove_each();
	close(scene.stopped[1]);
	scene.paused += read(scene.stopped[0], &byte, 1) == 1;
}

static void end_removing(void)
{
	int status = -1;
	(void)!write(scene.go[1], "", 1); /* it may have ended */
	need(waitpid(scene.child, &status, 0) == scene.child);
	close(scene.stopped[0]);
	close(scene.go[0]); /* open until now: a write to the ended one is no error */
	close(scene.go[1]);
	scene.child = 0;
	assert_int_equal(status, 0);
}

static void once(void *arg)
{
	struct failure fail;
	struct private_directory p;
	int here = open(".", O_RDONLY | O_DIRECTORY);
	(void)arg;
	need(here >= 0);
	fault_on();
	int r = private_make(&p, here, &fail);
	fault_off();
	if (scene.child > 0)
		end_removing();
	assert_int_equal(r, 0);
	assert_true(private_has_name(p.fd, here, p.name));
	assert_true(private_has_name(p.lock, p.fd, PRIVATE_LOCK));
	private_end(&p);
	close(here);
	assert_int_equal(names_in("."), 0);
}

/* Sharing a lock releases it for a moment. Then the part may go, and the maker knows it. */
static void once_shared(void *arg)
{
	struct part p;
	struct stat st;
	int here = open(".", O_RDONLY | O_DIRECTORY);
	(void)arg;
	part_init(&p, here, "dst");
	fault_on();
	int r = part_make(&p);
	assert_int_equal(r, 0);
	int data = openat(p.fd, PART_DATA, O_RDWR | O_CREAT | O_EXCL, 0600);
	need(data >= 0 && fstat(data, &st) == 0);
	const struct journal_fact source = part_source(-1, &st);
	assert_int_equal(part_describe(&p, "dst", &source, 0, data, 0600), 0);
	r = part_share(&p);
	if (r == 0)
		r = part_publish(&p, &data);
	fault_off();
	if (scene.child > 0)
		end_removing();
	if (r == 0) {
		assert_true(part_is_named(&p) && part_is_data(&p, &st));
		assert_true(private_has_name(p.lock, p.fd, PRIVATE_LOCK));
		assert_true(private_has_name(data, p.fd, PART_DATA));
	} else {
		assert_errno(-r, EAGAIN);
	}
	unlinkat(p.fd, PART_DATA, 0);
	part_close(&p, true);
	close(data);
	close(here);
	assert_int_equal(names_in("."), 0);
}

static void interleave(void **state)
{
	static const char *const of_maker[] = {"openat64", "flock"};
	static const char *const of_other[] = {"openat64", "flock", "unlinkat"};
	scene.how = *(const int *)*state % 2;
	scene.shared = *(const int *)*state >= SHARED;
	fault_also("nanosleep", FAULT_ZERO); /* no waiting for a lock */
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < 3; k++) {
			scene.call = of_other[k];
			unsigned before = 0;
			scene.paused = 0;
			scene.nth = 1;
			do {
				before = scene.paused;
				fault_before(start_removing);
				fault_sweep(of_maker[i], 0, scene.shared ? once_shared : once,
					    NULL);
				scene.nth++;
			} while (scene.paused > before);
			assert_true(scene.nth < 200); /* a lock is tried 126 times */
		}
}

/* What happens to a part while its lock is waited for. */
static void ends(void)
{
	need(rename("dst" PART_SUFFIX "/" PART_DATA, "dst") == 0);
	need(unlink("dst" PART_SUFFIX "/" PRIVATE_LOCK) == 0);
	need(unlink("dst" PART_SUFFIX "/" PART_JOURNAL) == 0);
	need(rmdir("dst" PART_SUFFIX) == 0);
}

static void ends_and_another_begins(void)
{
	need(rename("dst" PART_SUFFIX, "old") == 0 && mkdir("dst" PART_SUFFIX, 0700) == 0);
}

static void gets_shards(void)
{
	int fd = open("dst" PART_SUFFIX "/" PART_SHARE "list", O_CREAT | O_EXCL, 0600);
	need(fd >= 0 && close(fd) == 0);
}

/* Makes a part with its data, a file with this stat. */
static void begin_part(struct part *p, int here, struct stat *st)
{
	part_init(p, here, "dst");
	need(part_make(p) == 0);
	int data = openat(p->fd, PART_DATA, O_RDWR | O_CREAT | O_EXCL, 0600);
	need(data >= 0 && fstat(data, st) == 0);
	const struct journal_fact source = part_source(-1, st);
	need(part_describe(p, "dst", &source, 0, data, 0600) == 0 && part_publish(p, &data) == 0);
	close(data);
}

/* Returns whether it is listed, and how. */
static bool find_after(void (*happens)(void), struct left *l)
{
	struct part p;
	struct stat st;
	int here = open(".", O_RDONLY | O_DIRECTORY);
	begin_part(&p, here, &st);
	part_close(&p, false);
	fault_set("flock", 1, 0);
	fault_before(happens);
	fault_on();
	const bool found = part_examine(l, here, "dst" PART_SUFFIX, true);
	fault_off();
	assert_true(fault_seen());
	if (found)
		left_close(l);
	close(here);
	return found;
}

static void used_meanwhile(void **state)
{
	struct left l;
	(void)state;
	assert_false(find_after(ends, &l));
	assert_true(find_after(ends_and_another_begins, &l));
	assert_int_equal(l.state, FCOPY_LEFT_LIVE);
	need(rmdir("dst" PART_SUFFIX) == 0);
	assert_true(find_after(gets_shards, &l));
	assert_int_equal(l.state, FCOPY_LEFT_UNKNOWN);
}

/* The part is hidden before its lock is released. If that fails, it stays, unless it is on storage
 * that may rename no directory with open files. */
static void hiding_fails(void **state)
{
	static const struct {
		int err;
		bool local, removed;
	} rows[] = {
	    {EACCES, true, false}, {EBUSY, true, false},  {EIO, true, false},
	    {EACCES, false, true}, {EBUSY, false, true},  {EIO, false, false},
	    {EPERM, false, false}, {EROFS, false, false},
	};
	int here = open(".", O_RDONLY | O_DIRECTORY);
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct part p;
		struct stat st;
		begin_part(&p, here, &st);
		need(unlinkat(p.fd, PART_DATA, 0) == 0);
		fault_set("renameat2", 1, rows[i].err);
		fault_also(rows[i].local ? "" : "fstatfs64", ENOSYS);
		fault_on();
		int r = part_discard(&p, false);
		fault_off();
		assert_true(fault_seen());
		assert_errno(-r, rows[i].removed ? 0 : rows[i].err);
		assert_int_equal(exists("dst" PART_SUFFIX "/" PRIVATE_LOCK), !rows[i].removed);
		assert_int_equal(exists("dst" PART_SUFFIX "/" PART_JOURNAL), !rows[i].removed);
		part_close(&p, true);
		assert_int_equal(names_in("."), 0);
	}
	close(here);
}

static enum part_state acquire(struct part *p, const char *dst, const struct stat *committed)
{
	const struct part_claim claim = {
	    .dst = dst, .of = PART_OF_FILE, .resumes = true, .committed = committed};
	return part_acquire(p, &claim);
}

enum { HAS_DATA = 1, HAS_NO_JOURNAL = 2, IN_USE = 4, OTHER_INODE = 8, OTHER_NAME = 16 };

/* A copy was killed after its commit, before it removed its part. */
static void part_was_to_be_removed(void **state)
{
	static const struct {
		const char *fails;
		unsigned is;
		bool found;
	} rows[] = {
	    {NULL, 0, true},
	    {NULL, IN_USE, false},
	    {NULL, HAS_DATA, false},
	    {NULL, HAS_NO_JOURNAL, false},
	    {NULL, OTHER_INODE, false},
	    {NULL, OTHER_NAME, false},
	    {"openat64", 0, false},
	    {"fstat64", 0, false},
	};
	int here = open(".", O_RDONLY | O_DIRECTORY);
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct part p;
		struct stat st;
		const unsigned is = rows[i].is;
		begin_part(&p, here, &st);
		if (!(is & HAS_DATA))
			need(unlinkat(p.fd, PART_DATA, 0) == 0);
		if (is & HAS_NO_JOURNAL)
			need(unlinkat(p.fd, PART_JOURNAL, 0) == 0);
		int used = is & IN_USE ? dup(p.lock) : -1;
		st.st_ino += is & OTHER_INODE ? 1 : 0;
		part_close(&p, false);
		part_init(&p, here, "dst");
		fault_set(rows[i].fails, 1, EIO);
		fault_also("nanosleep", FAULT_ZERO); /* no waiting for the lock */
		fault_on();
		const enum part_state state = acquire(&p, is & OTHER_NAME ? "other" : "dst", &st);
		fault_off();
		if ((state == PART_COMMITTED) != rows[i].found)
			fail_msg("row %zu: %d", i, state);
		part_close(&p, false);
		if (used >= 0)
			close(used);
		unlink("dst" PART_SUFFIX "/" PART_DATA);
		unlink("dst" PART_SUFFIX "/" PRIVATE_LOCK);
		unlink("dst" PART_SUFFIX "/" PART_JOURNAL);
		need(rmdir("dst" PART_SUFFIX) == 0);
	}
	close(here);
}

static void journal_appears(void)
{
	need(rename("journal", "dst" PART_SUFFIX "/" PART_JOURNAL) == 0);
}

/* Another machine has just made the part: a client of NFS sees its journal after some time. On
 * local storage a part without a journal is refused at once. */
static void new_journal_is_waited_for(void **state)
{
	struct part p;
	struct stat st;
	int here = open(".", O_RDONLY | O_DIRECTORY);
	(void)state;
	begin_part(&p, here, &st);
	part_close(&p, false);
	for (int wait = 0; wait <= 7; wait += wait ? 6 : 1) {
		need(rename("dst" PART_SUFFIX "/" PART_JOURNAL, "journal") == 0);
		fault_also(wait ? "fstatfs64" : "", ENOSYS);
		fault_before(journal_appears);
		fault_set("nanosleep", wait ? wait : 1, 0);
		part_init(&p, here, "dst");
		fault_on();
		const enum part_state state = acquire(&p, "dst", NULL);
		fault_off();
		assert_int_equal(state, wait ? PART_CONTINUED : PART_REFUSED);
		assert_errno(p.err, wait ? 0 : EPERM);
		assert_int_equal(fault_seen(), wait > 0);
		part_close(&p, false);
		if (wait == 0)
			journal_appears();
	}
	need(acquire(&p, "dst", NULL) == PART_CONTINUED);
	need(part_retire(&p) == 0 && names_in(".") == 0);
	close(here);
}

int main(void)
{
	static const int how[] = {SWEEPS, CLEANS, SHARED + SWEEPS, SHARED + CLEANS};
	cases_enter("ext4");
	case_add(interleave, &how[0], "a copy sweeps what another one is making");
	case_add(interleave, &how[1], "--clean removes what a copy is making");
	case_add(interleave, &how[2], "a copy sweeps the part that shards are making");
	case_add(interleave, &how[3], "--clean removes the part that shards are making");
	case_add(used_meanwhile, NULL, "--clean waits for a lock: the copy ends, or shards begin");
	case_add(hiding_fails, NULL, "a part that cannot be renamed");
	case_add(part_was_to_be_removed, NULL, "a part that a killed copy did not remove");
	case_add(new_journal_is_waited_for, NULL, "the journal of a new part is seen late");
	return cases_run("cleaning");
}
