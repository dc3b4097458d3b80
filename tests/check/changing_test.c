/* SPDX-License-Identifier: MIT
 * Beyond 2 and 4 GiB, and sources that grow or shrink while they are copied.
 */
#define _GNU_SOURCE
#include "copy/move.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MiB ((off_t)1 << 20)

struct cell {
	const struct engine *engine;
	const struct dir *dir;
};

static struct cell cells[TABLE_MAX * DIRS_MAX];
static int cell_count;

/* A clone is one call: nothing can change while it runs. */
static void find_cells(void)
{
	for (size_t d = 0; d < dir_count; d++)
		for (int e = 0; e < engine_count; e++)
			if (engines[e] == &engine_reflink)
				continue;
			else if (engine_runs(engines[e], &dirs[d]))
				cells[cell_count++] = (struct cell){engines[e], &dirs[d]};
			else
				left_out("engine %s on %s", engines[e]->name, dirs[d].name);
}

static void begin(int i)
{
	enter(cells[i].dir);
	set_label("%s on %s", cells[i].engine->name, cells[i].dir->name);
}

/* A range across the boundary, out of a file that is a hole elsewhere. */
START_TEST(crosses)
{
	const struct engine *e = cells[_i / 2].engine;
	off_t boundary = _i % 2 ? 4096 * MiB : 2048 * MiB;
	begin(_i / 2);
	make_file("src", 0, DENSE, 1);
	write_at("src", boundary - 65536, 131072, 1);
	need(truncate("src", 5120 * MiB) == 0);
	struct transfer t = transfer_of("src", "dst");
	t.offset = boundary - 65536;
	t.end = boundary + 65536;
	int r = e->copy(&t);
	transfer_done(&t);
	check(r == 0 && t.offset == boundary + 65536, "%d, %lld", r, (long long)t.offset);
	check(size_of("dst") == boundary + 65536, "%lld", (long long)size_of("dst"));
	check(same_range("src", "dst", boundary - 65536, boundary + 65536), "bytes differ");
	check(same_range("src", "dst", boundary - 2 * MiB, boundary - 65536), "before");
	leave();
}
END_TEST

/* Threads across it. */
START_TEST(threads_cross)
{
	enter(&dirs[_i]);
	set_label("threads on %s", dirs[_i].name);
	off_t start = 4096 * MiB - 5 * MiB / 2, end = 4096 * MiB + 5 * MiB / 2;
	make_file("src", 0, DENSE, 1);
	write_at("src", start, (size_t)(end - start), 1);
	struct transfer t = transfer_of("src", "dst");
	t.offset = start;
	t.end = end;
	int r = ranges_run(&engine_readwrite, &t, 4, false, NULL);
	transfer_done(&t);
	check(r == 0 && t.offset == end, "%d, %lld", r, (long long)t.offset);
	check(same_range("src", "dst", start, end), "bytes differ");
	leave();
}
END_TEST

/* Changes the source once, when the monitor says that the first bytes have moved. */
struct change {
	struct fcopy_progress progress;
	pthread_t thread;
	off_t size;   /* the new one */
	bool in_time; /* before anything beyond the new size was read */
};

/* Slow enough for the change to come in the middle; slower on a busy machine. What a tenth of a
 * second takes is moved at a time: two of them end before 3 MiB, and as they divide 4 MiB, direct
 * does not look beyond the old end early. */
#define FIRST_RATE (10 << 20)
#define LAST_RATE  (1 << 20)

static void *change(void *arg)
{
	struct change *c = arg;
	while (__atomic_load_n(&c->progress.bytes, __ATOMIC_RELAXED) < 65536 &&
	       __atomic_load_n(&c->progress.phase, __ATOMIC_RELAXED) <= FCOPY_PHASE_COPY)
		usleep(100);
	if (c->size > 4 * MiB)
		write_at("src", 4 * MiB, (size_t)(c->size - 4 * MiB), 1);
	else
		need(truncate("src", c->size) == 0);
	uint64_t moved = __atomic_load_n(&c->progress.bytes, __ATOMIC_RELAXED);
	c->in_time = moved >= 65536 && moved < 2 * (uint64_t)MiB; /* 0: it is being committed */
	return NULL;
}

static int transfer_with(const struct engine *e, struct change *c, struct transfer *t)
{
	int r = -1;
	for (uint64_t rate = FIRST_RATE; rate > LAST_RATE; rate /= 2) {
		struct monitor m = {.progress = &c->progress, .limit_rate = rate};
		make_file("src", 4 * MiB, DENSE, 1);
		*t = transfer_of("src", "dst");
		t->monitor = &m;
		c->progress = (struct fcopy_progress){0};
		need(pthread_create(&c->thread, NULL, change, c) == 0);
		m.start = io_now();
		r = e->copy(t);
		pthread_join(c->thread, NULL);
		t->monitor = NULL;
		if (c->in_time)
			return r;
		transfer_done(t);
		need(unlink("dst") == 0);
	}
	check(false, "too fast for the change, or too slow a machine");
	return r;
}

START_TEST(source_grows)
{
	struct change c = {.size = 5 * MiB + 77};
	struct transfer t;
	begin(_i);
	int r = transfer_with(cells[_i].engine, &c, &t);
	check(r == 0 && t.offset == c.size, "%d, %lld", r, (long long)t.offset);
	need(ftruncate(t.dst, t.offset) == 0);
	transfer_done(&t);
	check(same_bytes("src", "dst"), "bytes differ");
	leave();
}
END_TEST

/* direct has all of so small a file in flight by then, and what it has read it may keep. */
START_TEST(source_shrinks)
{
	const struct engine *e = cells[_i].engine;
	struct change c = {.size = 3 * MiB + 77};
	struct transfer t;
	begin(_i);
	int r = transfer_with(e, &c, &t);
	check(r == 0, "%d", r);
	check(t.offset == c.size || (e == &engine_direct && t.offset == 4 * MiB), "%lld",
	      (long long)t.offset);
	transfer_done(&t);
	check(same_range("src", "dst", 0, c.size), "bytes differ");
	leave();
}
END_TEST

/* A mapping goes on to the end of its page, with zeros: those that were copied before the source
 * was seen to be shorter are none of its bytes. */
START_TEST(mapped_zeros_do_not_count)
{
	enter(&dirs[0]);
	set_label("mmap");
	make_file("src", 303104, DENSE, 1);
	struct transfer t = transfer_of("src", "dst");
	t.end = 303104;
	check(engine_mmap.copy(&t) == 0 && t.offset == 303104, "%lld", (long long)t.offset);
	need(truncate("src", 300000) == 0);
	t.end = TRANSFER_TO_EOF;
	check(engine_mmap.copy(&t) == 0 && t.offset == 300000, "%lld", (long long)t.offset);
	transfer_done(&t);
	leave();
}
END_TEST

/* The same as a whole copy: a warning, or with strict a failure that leaves the old file. */
struct notes {
	int warnings;
};

static void note(void *user, const struct fcopy_event *event)
{
	struct notes *n = user;
	n->warnings += event->kind == FCOPY_EVENT_WARNING && event->error->err == EBUSY;
}

static int copy_with(struct fcopy_options *o, struct change *c)
{
	int r = -1;
	struct notes *notes = o->user;
	for (o->limit_rate = FIRST_RATE; o->limit_rate > LAST_RATE; o->limit_rate /= 2) {
		make_file("src", 4 * MiB, DENSE, 1);
		make_file("dst", 1000, DENSE, 2);
		c->progress = (struct fcopy_progress){0};
		notes->warnings = 0;
		need(pthread_create(&c->thread, NULL, change, c) == 0);
		r = fcopy_copy("src", "dst", o, &report);
		pthread_join(c->thread, NULL);
		if (c->in_time)
			return r;
	}
	check(false, "too fast for the change, or too slow a machine");
	return r;
}

START_TEST(copy_says_so)
{
	const struct fcopy_mode *m = moving_modes[_i / 4];
	struct change c = {.size = _i % 2 ? 5 * MiB + 77 : 3 * MiB + 77};
	struct notes notes = {0};
	struct fcopy_options o = {.api = FCOPY_API,
				  .mode = m,
				  .progress = &c.progress,
				  .strict = _i / 2 % 2,
				  .reflink = no_clone(m),
				  .notify = note,
				  .user = &notes};
	if (!mode_runs(m, &dirs[0]))
		skip_test("no %s on %s", m->name, dirs[0].name);
	enter(&dirs[0]);
	set_label("mode %s, %s%s", m->name, _i % 2 ? "grows" : "shrinks",
		  o.strict ? ", strict" : "");
	make_file("old", 1000, DENSE, 2);
	int r = copy_with(&o, &c);
	check(report.source_changed, "not seen");
	check(r == (o.strict ? -1 : 0), "%d", r);
	check(notes.warnings == !o.strict, "%d warnings", notes.warnings);
	check(!o.strict || report.error.err == EBUSY, "%d", report.error.err);
	if (o.strict)
		check(same_bytes("old", "dst"), "the old file is gone");
	else if (_i % 2 || strcmp(m->name, "direct") != 0)
		check(same_bytes("src", "dst"), "bytes differ");
	check(names_in(".") == 3, "%d names", names_in("."));
	leave();
}
END_TEST

/* Between the first look at the size and the first byte: what is gone is no hole. */
static void shrink(void *user, const struct fcopy_event *event)
{
	const off_t *size = user;
	if (event->kind == FCOPY_EVENT_PLAN)
		need(truncate("src", *size) == 0);
}

START_TEST(shrinks_before_its_extents_are_known)
{
	static const off_t left[] = {0, 100, MiB / 2, 2 * MiB};
	off_t size = left[_i % 4];
	struct fcopy_options o = {
	    .api = FCOPY_API, .reflink = FCOPY_WHEN_NEVER, .notify = shrink, .user = &size};
	enter(&dirs[_i / 4]);
	set_label("to %lld on %s", (long long)size, dirs[_i / 4].name);
	make_file("src", MiB, DENSE, 1);
	need(truncate("src", 4 * MiB) == 0);
	check(fcopy_copy("src", "dst", &o, &report) == 0, "%s", report.error.call);
	check(report.source_changed, "not seen");
	check(size_of("dst") == size, "%lld", (long long)size_of("dst"));
	check(same_bytes("src", "dst"), "bytes differ");
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	find_cells();
	int n = cell_count;
	Suite *s = suite_create("changing");
	TCase *c = add_case(s, "changing");
	tcase_add_loop_test(c, crosses, 0, n * 2);
	tcase_add_loop_test(c, threads_cross, 0, (int)dir_count);
	tcase_add_loop_test(c, source_grows, 0, n);
	tcase_add_loop_test(c, source_shrinks, 0, n);
	tcase_add_test(c, mapped_zeros_do_not_count);
	tcase_add_loop_test(c, copy_says_so, 0, moving_count * 4);
	tcase_add_loop_test(c, shrinks_before_its_extents_are_known, 0, (int)dir_count * 4);
	return run_suite(s);
}
