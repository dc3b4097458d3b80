/* SPDX-License-Identifier: MIT
 * What moves the bytes in whole copies: splice and threads, those of the copy and of a tree, of
 * which any call may fail. The clock, the number of CPUs and the other tasks are the test's own, so
 * that the result does not depend on the machine.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "copy/move.h"
#include "endpoints/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define MIB    ((off_t)1 << 20)
#define SIZE   (40 * MIB + 4099)
#define PIECES (33 * MIB + 5) /* large enough to try threads */

static struct fcopy_report report;
static unsigned cpus = 2, idle = 2;
static uint64_t clock_ns; /* 0: the real clock */

unsigned __wrap_cpus_allowed(void);
unsigned __wrap_cpus_allowed(void)
{
	return cpus;
}

unsigned __wrap_cpus_idle(void);
unsigned __wrap_cpus_idle(void)
{
	return idle;
}

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t now = __atomic_load_n(&clock_ns, __ATOMIC_SEQ_CST);
	if (now == 0)
		return __real_clock_gettime(id, t);
	now = __atomic_add_fetch(&clock_ns, 1000000, __ATOMIC_SEQ_CST);
	*t = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
	return 0;
}

static void pass_time(void)
{
	__atomic_add_fetch(&clock_ns, 50000000, __ATOMIC_SEQ_CST);
}

static struct fcopy_step step_of(const char *engine)
{
	for (size_t i = 0; i < report.steps; i++)
		if (strcmp(report.step[i].engine, engine) == 0)
			return report.step[i];
	return (struct fcopy_step){0};
}

static uint64_t bytes_of(const char *engine)
{
	return step_of(engine).bytes;
}

static int copy_file_with(const struct fcopy_options *options)
{
	fault_on();
	int r = fcopy_copy("src", "dst", options, &report);
	fault_off();
	return r;
}

/* Whole copies: each call of one kind takes 50 ms more of the test's clock. */
static void slow_way_is_left(void **state)
{
	const char *slow = *state;
	const struct fcopy_options options = {.api = FCOPY_API};
	struct statfs fs;
	need(statfs(".", &fs) == 0);
	if (fs.f_type == TMPFS_MAGIC)
		skip(); /* auto makes no trial on tmpfs */
	make_file("src", SIZE, DENSE, 1);
	cpus = idle = 2;
	clock_ns = 1000000000;
	fault_set(slow, FAULT_EVERY + 1, 0);
	fault_before(pass_time);
	int r = copy_file_with(&options);
	clock_ns = 0;
	assert_int_equal(r, 0);
	assert_true(same_bytes("src", "dst"));
	bool splice = strcmp(slow, "splice") == 0;
	assert_int_equal(bytes_of("splice") + bytes_of("readwrite"), SIZE);
	assert_in_range(bytes_of(splice ? "splice" : "readwrite"), 2 * MIB, 8 * MIB);
}

/* Without a second CPU, and with --threads=1, no thread starts and splice moves every byte. */
static void one_thread_starts_none(void **state)
{
	const struct fcopy_options options = {.api = FCOPY_API,
					      .threads = *(const unsigned *)*state};
	make_file("src", SIZE, DENSE, 1);
	cpus = options.threads ? 8 : 1;
	idle = 8;
	fault_set("pthread_create", 1, EAGAIN);
	assert_int_equal(copy_file_with(&options), 0);
	assert_int_equal(fault_calls(), 0);
	assert_int_equal(bytes_of("splice"), SIZE);
	assert_int_equal(step_of("splice").threads, 1);
	assert_int_equal(bytes_of("readwrite"), 0);
	assert_true(same_bytes("src", "dst"));
}

/* Threads that were asked for are used for every byte, on a busy machine too. */
static void asked_threads_are_used(void **state)
{
	(void)state;
	const struct fcopy_options options = {.api = FCOPY_API, .threads = 3};
	make_file("src", SIZE, DENSE, 1);
	cpus = 1;
	idle = 0;
	fault_set("pthread_create", FAULT_EVERY, 0);
	assert_int_equal(copy_file_with(&options), 0);
	assert_int_equal(fault_calls(), 2);
	assert_int_equal(step_of("readwrite").threads, 3);
	assert_int_equal(bytes_of("readwrite"), SIZE);
	assert_true(same_bytes("src", "dst"));
}

/* The other threads of a tree: `present` of them are idle, and join each range. */
#define HELPERS 2
static unsigned present;
static unsigned joined; /* that help now */
static pthread_t helping[HELPERS];

static void helpers_come(void)
{
	__atomic_store_n(&present, HELPERS, __ATOMIC_SEQ_CST);
}

static void helpers_leave(void)
{
	__atomic_store_n(&present, 0, __ATOMIC_SEQ_CST);
}

static void *help(void *ranges)
{
	void *buffer = malloc(ranges_buffer_size(ranges));
	if (buffer)
		ranges_help(ranges, buffer);
	free(buffer);
	return NULL;
}

static void invite(void *user, struct ranges *ranges)
{
	need(user == helping && joined == 0);
	for (unsigned i = 0; i < __atomic_load_n(&present, __ATOMIC_SEQ_CST); i++)
		if (pthread_create(&helping[i], NULL, help, ranges) == 0)
			joined++;
}

static void dismiss(void *user, struct ranges *ranges)
{
	need(user == helping && ranges);
	while (joined > 0)
		pthread_join(helping[--joined], NULL);
}

/* Copies src as an entry of a tree. */
static int copy_entry(void)
{
	const struct fcopy_options options = {.api = FCOPY_API, .threads = 1};
	const struct helpers helpers = {helping, &present, invite, dismiss};
	struct monitor monitor = {.progress = NULL};
	struct copy c = {.options = &options,
			 .report = &report,
			 .mode = fcopy_modes(),
			 .shared = &monitor,
			 .skips_clone = true,
			 .helpers = &helpers};
	struct stat st;
	report = (struct fcopy_report){0};
	int fd = open("src", O_RDONLY | O_CLOEXEC);
	need(fd >= 0 && fstat(fd, &st) == 0);
	source_adopt(&c.src, fd, "src", &st);
	need(destination_create(&c.dst, AT_FDCWD, "dst", 0600, "dst", &report.error) == 0);
	fault_on();
	int r = copy_run(&c);
	fault_off();
	return r;
}

struct change {
	unsigned before;
	const char *call; /* during the first of these the helpers come or leave */
	void (*happen)(void);
	off_t splice; /* bytes by splice, with one thread; the others by readwrite, with all */
};

/* Returns how many threads have copied by readwrite. */
static unsigned copy_with_idle_threads(const struct change *change)
{
	unlink("dst");
	present = change->before;
	fault_set(change->call, 1, 0);
	fault_before(change->happen);
	assert_int_equal(copy_entry(), 0);
	assert_true(same_bytes("src", "dst"));
	assert_int_equal(bytes_of("splice"), change->splice);
	assert_int_equal(step_of("splice").threads, 1);
	assert_int_equal(bytes_of("readwrite"), 100 * MIB + 5 - change->splice);
	assert_int_equal(joined, 0);
	return step_of("readwrite").threads;
}

/* A large file in a tree: the threads that are idle when a segment begins help with it. A helper
 * that a busy machine starts late finds nothing left. */
static void idle_threads_help(void **state)
{
	unsigned threads = 1;
	make_file("src", 100 * MIB + 5, DENSE, 1);
	for (int tries = 0; tries < 10 && threads == 1; tries++)
		threads = copy_with_idle_threads(*state);
	assert_in_range(threads, 2, 1 + HELPERS);
}

/* The owner of the file, or a helper, fails. */
static void helped_once(void *arg)
{
	const char *call = arg;
	present = HELPERS;
	int r = copy_entry();
	assert_int_equal(joined, 0);
	assert_int_equal(r, fault_seen() ? -EIO : 0);
	if (!fault_seen()) {
		assert_true(same_bytes("src", "dst"));
		unlink("dst");
		return;
	}
	assert_int_equal(report.error.err, EIO);
	assert_non_null(report.error.call);
	assert_true(strncmp(report.error.call, call, strlen(report.error.call)) == 0);
	assert_false(exists("dst"));
}

static void helped_piece_fails(void **state)
{
	make_file("src", 18 * MIB + 5, DENSE, 1);
	fault_sweep(*state, EIO, helped_once, *state);
}

struct failing {
	const char *call;
	int err;
	bool next; /* another engine continues */
};

/* In place, so that the destination stays after a failure and its prefix can be compared. */
static void fail_once(void *arg)
{
	const struct failing *f = arg;
	const struct fcopy_options options = {.api = FCOPY_API, .in_place = FCOPY_WHEN_ALWAYS};
	make_file("dst", 100, DENSE, 2);
	cpus = idle = 2;
	fault_short(512 << 10);
	int r = copy_file_with(&options);
	bool fails = fault_seen() && !f->next;
	assert_int_equal(r, fails ? -1 : 0);
	assert_int_equal(report.error.err, fails ? f->err : 0);
	assert_in_range(report.bytes, 0, size_of("src"));
	assert_true(same_range("src", "dst", 0, (off_t)report.bytes));
	assert_true(fails || same_bytes("src", "dst"));
	assert_true(bytes_of("splice") + bytes_of("readwrite") >= report.bytes);
	if (!fails)
		assert_int_equal(bytes_of("splice") + bytes_of("readwrite"), report.bytes);
}

static void any_piece_may_fail(void **state)
{
	make_file("src", PIECES, DENSE, 1);
	fault_sweep(((const struct failing *)*state)->call, ((const struct failing *)*state)->err,
		    fail_once, *state);
}

#define SHRUNK (26 * MIB + 100)

static void shrink(void)
{
	need(truncate("src", SHRUNK) == 0);
}

/* The pipe may hold pages that the source has lost: no zeros of theirs get into the copy. */
static void shrink_once(void *arg)
{
	(void)arg;
	const struct fcopy_options options = {.api = FCOPY_API};
	write_at("src", SHRUNK, (size_t)(PIECES - SHRUNK), 1); /* what it has lost the last time */
	unlink("dst");
	cpus = idle = 2;
	fault_before(shrink);
	int r = copy_file_with(&options);
	assert_int_equal(r, 0);
	assert_int_equal(report.bytes, size_of("dst"));
	assert_true(same_range("whole", "dst", 0, size_of("dst")));
	assert_true(size_of("dst") >= SHRUNK || !fault_seen());
	assert_int_equal(report.source_changed, fault_seen());
}

static void shrinking_source(void **state)
{
	make_file("src", PIECES, DENSE, 1);
	make_file("whole", PIECES, DENSE, 1);
	fault_sweep(*state, 0, shrink_once, NULL);
}

int main(void)
{
	static const unsigned one[] = {0, 1};
	static const struct failing failures[] = {
	    {"splice", EIO, false},           {"splice", ENOSPC, false},   {"splice", EINVAL, true},
	    {"pread64", EIO, false},          {"pwrite64", ENOSPC, false}, {"pipe2", EMFILE, true},
	    {"pthread_create", EAGAIN, true},
	};
	static const struct change changes[] = {
	    {0, "splice", helpers_come, 2 * MIB},
	    {HELPERS, "pread64", helpers_leave, 36 * MIB + 5},
	};
	static const char *const calls[] = {"splice", "pread64", "pwrite64"};
	cases_enter("ext4");
	for (size_t i = 0; i < 2; i++) {
		case_add(slow_way_is_left, calls[i], "%s is slow: the other way moves the rest",
			 calls[i]);
		case_add(shrinking_source, calls[i], "the source shrinks before any %s", calls[i]);
		case_add(one_thread_starts_none, &one[i], "%s: no thread starts",
			 one[i] ? "--threads=1" : "one CPU");
	}
	case_add(asked_threads_are_used, NULL, "--threads=3 uses three threads");
	case_add(idle_threads_help, &changes[0], "idle threads join a large file of a tree");
	case_add(idle_threads_help, &changes[1], "busy threads leave a large file of a tree");
	for (size_t i = 1; i < 3; i++)
		case_add(helped_piece_fails, calls[i], "%s fails in any piece of a large file",
			 calls[i]);
	for (size_t i = 0; i < sizeof(failures) / sizeof(*failures); i++)
		case_add(any_piece_may_fail, &failures[i], "%s fails with %s in any piece",
			 failures[i].call, errno_name(failures[i].err));
	return cases_run("moving");
}
