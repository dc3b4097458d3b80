/* SPDX-License-Identifier: MIT
 * The library's face: the table of modes, options one by one, what the report and the progress say.
 */
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE ((off_t)(2 << 20) + 5)

static void begin(void)
{
	enter(&dirs[0]);
	set_label("on %s", dirs[0].name);
	make_file("src", SIZE, DENSE, 1);
	make_file("old", 20000, DENSE, 2);
}

START_TEST(modes_table)
{
	int n = 0;
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++, n++) {
		char number[16];
		snprintf(number, sizeof(number), "%d", m->number);
		ck_assert_int_eq(m->number, n);
		ck_assert_ptr_eq(fcopy_mode_find(number), m);
		ck_assert_ptr_eq(fcopy_mode_find(m->name), m);
		ck_assert(!m->alias || fcopy_mode_find(m->alias) == m);
		ck_assert(m->summary && strlen(m->summary) < 80);
		ck_assert(!m->engine || engine_find(m->engine));
		const char *missing = fcopy_mode_missing(m);
		ck_assert(!missing || strlen(missing) > 5);
	}
	ck_assert_str_eq(fcopy_modes()[0].name, "auto");
	ck_assert_ptr_null(fcopy_modes()[0].engine);
	static const char *const wrong[] = {"",   "99", "-1",   "+1",   " 1",
					    "1 ", "1x", "AUTO", "read", "0x1"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(!fcopy_mode_find(wrong[i]), "'%s' is a mode", wrong[i]);
}
END_TEST

/* NULL for options is all default. */
START_TEST(no_options)
{
	begin();
	check(fcopy_copy("src", "dst", NULL, &report) == 0, "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	check(report.error.err == 0 && report.steps > 0, "%zu steps", report.steps);
	leave();
}
END_TEST

/* A flag that is set before the first byte, with every mode: the old file stays. */
START_TEST(cancelled_at_once)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i / 3];
	static const volatile int cancel = 1;
	int kind = _i % 3;
	if (!mode_runs(m, &dirs[0]))
		skip_test("no %s on %s", m->name, dirs[0].name);
	begin();
	set_label("mode %s, destination %d", m->name, kind);
	if (kind > 0)
		make_file("dst", 20000, DENSE, 2);
	struct fcopy_options o = {.api = FCOPY_API,
				  .mode = m,
				  .cancel = &cancel,
				  .in_place = kind == 2 ? FCOPY_WHEN_ALWAYS : FCOPY_WHEN_NEVER};
	check(fcopy_copy("src", "dst", &o, &report) == -1, "went on");
	check(report.error.err == EINTR, "%d", report.error.err);
	check(exists("dst") == (kind > 0), "dst");
	check(kind == 0 || same_bytes("old", "dst"), "the old file is gone");
	check(report.bytes == 0 && !report.in_place, "%ju bytes, in place: %d",
	      (uintmax_t)report.bytes, report.in_place);
	check(names_in(".") == 2 + (kind > 0), "%d names", names_in("."));
	leave();
}
END_TEST

/* The reader of a FIFO gets no byte. */
START_TEST(cancelled_before_a_fifo)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i];
	static const volatile int cancel = 1;
	char got;
	if (!(m->takes & FCOPY_TAKES_STREAM_DST))
		skip_test("%s does not write to streams", m->name);
	begin();
	set_label("mode %s", m->name);
	need(mkfifo("fifo", 0600) == 0);
	int fd = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct fcopy_options o = {.api = FCOPY_API, .mode = m, .cancel = &cancel};
	check(fcopy_copy("src", "fifo", &o, &report) == -1, "went on");
	check(report.error.err == EINTR, "%d", report.error.err);
	check(read(fd, &got, 1) == 0, "a byte was written");
	close(fd);
	leave();
}
END_TEST

struct stop {
	struct fcopy_progress progress;
	volatile int cancel;
	pthread_t thread;
};

static void *stop_later(void *arg)
{
	struct stop *s = arg;
	while (__atomic_load_n(&s->progress.bytes, __ATOMIC_RELAXED) < 65536)
		usleep(100);
	__atomic_store_n(&s->cancel, 1, __ATOMIC_RELAXED);
	return NULL;
}

START_TEST(cancelled_in_the_middle)
{
	const struct fcopy_mode *m = moving_modes[_i];
	struct stop s = {.cancel = 0};
	if (!mode_runs(m, &dirs[0]))
		skip_test("no %s on %s", m->name, dirs[0].name);
	begin();
	set_label("mode %s", m->name);
	make_file("dst", 20000, DENSE, 2);
	struct fcopy_options o = {.api = FCOPY_API,
				  .mode = m,
				  .reflink = no_clone(m),
				  .progress = &s.progress,
				  .cancel = &s.cancel,
				  .limit_rate = 256 << 10};
	need(pthread_create(&s.thread, NULL, stop_later, &s) == 0);
	double start = io_now();
	int r = fcopy_copy("src", "dst", &o, &report);
	check(io_now() - start < 4, "%.2f s", io_now() - start);
	pthread_join(s.thread, NULL);
	check(r == -1 && report.error.err == EINTR, "%d, %d", r, report.error.err);
	/* direct may have had all of so small a file in flight */
	check(strcmp(m->name, "direct") == 0 || report.bytes < (uint64_t)SIZE, "%llu",
	      (unsigned long long)report.bytes);
	check(same_bytes("old", "dst"), "the old file is gone");
	check(names_in(".") == 3, "%d names", names_in("."));
	leave();
}
END_TEST

/* 2 MiB at 8 MiB a second, and bytes counted on the way. */
START_TEST(keeps_the_rate)
{
	const struct fcopy_mode *m = moving_modes[_i];
	struct fcopy_progress progress = {0};
	if (!mode_runs(m, &dirs[0]))
		skip_test("no %s on %s", m->name, dirs[0].name);
	begin();
	set_label("mode %s", m->name);
	struct fcopy_options o = {.api = FCOPY_API,
				  .mode = m,
				  .reflink = no_clone(m),
				  .limit_rate = 8 << 20,
				  .threads = m->takes & FCOPY_TAKES_THREADS ? 2 : 0,
				  .progress = &progress};
	double start = io_now();
	check(fcopy_copy("src", "dst", &o, &report) == 0, "%s", report.error.call);
	double took = io_now() - start;
	check(took > 0.24 && took < 5, "%.3f s", took);
	check(same_bytes("src", "dst"), "bytes differ");
	check(progress.phase == FCOPY_PHASE_REPLACE, "%d", progress.phase);
	check(report.seconds[FCOPY_PHASE_COPY] > 0.24, "%f", report.seconds[FCOPY_PHASE_COPY]);
	leave();
}
END_TEST

struct seen {
	struct fcopy_progress progress;
	uint64_t most, total;
	int steps, refusals, plans;
	bool stop;
	pthread_t thread;
};

static void *watch(void *arg)
{
	struct seen *s = arg;
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint64_t now = __atomic_load_n(&s->progress.bytes, __ATOMIC_RELAXED);
		if (__atomic_load_n(&s->progress.phase, __ATOMIC_RELAXED) == FCOPY_PHASE_COPY) {
			uint64_t total = __atomic_load_n(&s->progress.total, __ATOMIC_RELAXED);
			s->most = now > s->most ? now : s->most;
			s->total = total > 0 ? total : s->total; /* 0: the next phase begins */
		}
		usleep(1000);
	}
	return NULL;
}

static void note(void *user, const struct fcopy_event *event)
{
	struct seen *s = user;
	s->steps += event->kind == FCOPY_EVENT_STEP;
	s->refusals += event->kind == FCOPY_EVENT_REFUSAL;
	s->plans += event->kind == FCOPY_EVENT_PLAN;
}

/* Progress grows up to the total; events and report agree. */
START_TEST(reports)
{
	const struct fcopy_mode *m = moving_modes[_i];
	struct seen s = {.steps = 0};
	if (!mode_runs(m, &dirs[0]))
		skip_test("no %s on %s", m->name, dirs[0].name);
	begin();
	set_label("mode %s", m->name);
	struct fcopy_options o = {.api = FCOPY_API,
				  .mode = m,
				  .reflink = no_clone(m),
				  .limit_rate = 8 << 20,
				  .progress = &s.progress,
				  .notify = note,
				  .user = &s};
	need(pthread_create(&s.thread, NULL, watch, &s) == 0);
	int r = fcopy_copy("src", "dst", &o, &report);
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(s.thread, NULL);
	check(r == 0, "%s", report.error.call);
	check(s.total == (uint64_t)SIZE, "%llu", (unsigned long long)s.total);
	check(s.most > 0 && s.most <= s.total, "%llu", (unsigned long long)s.most);
	check(s.steps > 0 && s.refusals == 0, "%d steps, %d refusals", s.steps, s.refusals);
	uint64_t bytes = 0, calls = 0;
	for (size_t i = 0; i < report.steps; i++) {
		bytes += report.step[i].bytes;
		calls += report.step[i].calls;
		check(!m->engine || strcmp(report.step[i].engine, m->engine) == 0, "%s",
		      report.step[i].engine);
	}
	check(bytes == (uint64_t)SIZE && report.data == bytes, "%llu", (unsigned long long)bytes);
	check(calls > 0 && report.bytes == (uint64_t)SIZE && report.holes == 0, "%llu calls",
	      (unsigned long long)calls);
	leave();
}
END_TEST

/* Nothing gets a name, and nothing that has one is touched. */
START_TEST(scratch_leaves_nothing)
{
	begin();
	make_file("dst", 20000, DENSE, 2);
	struct fcopy_options o = {.api = FCOPY_API,
				  .scratch = true,
				  .in_place = _i % 2 ? FCOPY_WHEN_ALWAYS : FCOPY_WHEN_NEVER,
				  .fsync = _i / 2};
	check(fcopy_copy("src", "dst", &o, &report) == 0, "%s", report.error.call);
	check(same_bytes("old", "dst"), "touched");
	check(fcopy_copy("src", "new", &o, &report) == 0, "%s", report.error.call);
	check(report.data == (uint64_t)SIZE && names_in(".") == 3, "%d names", names_in("."));
	check(report.seconds[FCOPY_PHASE_REMOVE] > 0, "the removal was not timed");
	o.scratch = false;
	check(fcopy_copy("src", "new", &o, &report) == 0, "%s", report.error.call);
	check(report.seconds[FCOPY_PHASE_REMOVE] == 0, "%g s for a removal",
	      report.seconds[FCOPY_PHASE_REMOVE]);
	leave();
}
END_TEST

static off_t blocks_of(const char *name)
{
	struct stat st;
	need(stat(name, &st) == 0);
	return st.st_blocks;
}

/* Nothing stays allocated beyond the last byte. */
START_TEST(preallocates)
{
	const struct fcopy_mode *m = moving_modes[_i / 2];
	if (!mode_runs(m, &dirs[0]))
		skip_test("no %s on %s", m->name, dirs[0].name);
	if (!dirs[0].fallocate)
		skip_test("%s has no fallocate", dirs[0].name);
	begin();
	set_label("mode %s, %d", m->name, _i % 2);
	struct fcopy_options o = {.api = FCOPY_API,
				  .mode = m,
				  .preallocate = _i % 2 ? FCOPY_WHEN_ALWAYS : FCOPY_WHEN_NEVER};
	int r = fcopy_copy("src", "dst", &o, &report);
	if (_i % 2 && strcmp(m->name, "copy_file_range") == 0) {
		check(r < 0 && report.error.err == EINVAL &&
			  strcmp(report.error.option, "preallocate") == 0,
		      "%d", r);
		leave();
		return;
	}
	check(r == 0, "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	map_of("dst"); /* waits until the blocks are there */
	check(blocks_of("dst") <= blocks_of("src") + 16, "%lld", (long long)blocks_of("dst"));
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	Suite *s = suite_create("options");
	TCase *c = add_case(s, "options");
	tcase_add_test(c, modes_table);
	tcase_add_test(c, no_options);
	tcase_add_loop_test(c, cancelled_at_once, 0, mode_count * 3);
	tcase_add_loop_test(c, cancelled_before_a_fifo, 0, mode_count);
	tcase_add_loop_test(c, cancelled_in_the_middle, 0, moving_count);
	tcase_add_loop_test(c, keeps_the_rate, 0, moving_count);
	tcase_add_loop_test(c, reports, 0, moving_count);
	tcase_add_loop_test(c, scratch_leaves_nothing, 0, 4);
	tcase_add_loop_test(c, preallocates, 0, moving_count * 2);
	return run_suite(s);
}
