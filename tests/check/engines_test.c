/* SPDX-License-Identifier: MIT
 * Every engine, size and shape on every file system: bytes, offset, what lies around a range, and
 * what an engine answers to descriptors that it cannot serve.
 */
#define _GNU_SOURCE
#include "copy/move.h"
#include "engines/engine.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct cell {
	const struct engine *engine;
	const struct dir *dir;
};

static struct cell cells[TABLE_MAX * DIRS_MAX];
static int cell_count;

static void find_cells(void)
{
	for (size_t d = 0; d < dir_count; d++) {
		if (!dirs[d].fallocate)
			left_out("unwritten files on %s", dirs[d].name);
		for (int e = 0; e < engine_count; e++)
			if (engine_runs(engines[e], &dirs[d]))
				cells[cell_count++] = (struct cell){engines[e], &dirs[d]};
			else
				left_out("engine %s on %s", engines[e]->name, dirs[d].name);
	}
}

/* The whole of a source, with the end known or not. */
static void copy_all(const struct cell *c, const char *dst, off_t size, enum shape shape,
		     bool known)
{
	set_label("%s on %s, %s %lld, end %s", c->engine->name, c->dir->name, shape_names[shape],
		  (long long)size, known ? "known" : "unknown");
	struct transfer t = transfer_of("src", dst);
	/* direct wants whole blocks: a known end is for it the block's */
	if (known && c->engine != &engine_direct)
		t.end = size;
	int r = c->engine->copy(&t);
	check(r == 0, "%d, %s", r, t.call);
	check(t.offset == size, "%lld", (long long)t.offset);
	check(c->engine == &engine_direct || lseek(t.dst, 0, SEEK_END) == size, "longer");
	need(ftruncate(t.dst, t.offset) == 0);
	check(same_bytes("src", dst), "bytes differ");
	transfer_done(&t);
	need(unlink(dst) == 0);
}

START_TEST(copies_all)
{
	const struct cell *c = &cells[_i / SIZES];
	const off_t size = sizes[_i % SIZES];
	enter(c->dir);
	for (enum shape shape = DENSE; shape < SHAPES; shape++) {
		if (!has_shape(c->dir, shape, size))
			continue;
		make_file("src", size, shape, 1);
		copy_all(c, "dst0", size, shape, false);
		copy_all(c, "dst1", size, shape, true);
	}
	leave();
}
END_TEST

/* Threads share a file through every positional engine, and through no other. */
START_TEST(is_shared_by_threads)
{
	const struct cell *c = &cells[_i];
	enter(c->dir);
	set_label("%s on %s", c->engine->name, c->dir->name);
	make_file("src", (5 << 20) + 7, DENSE, 1);
	struct transfer t = transfer_of("src", "dst");
	t.end = (5 << 20) + 7;
	int r = ranges_run(c->engine, &t, 3, false, NULL);
	check(r == (c->engine->positional ? 0 : RESULT_NEXT), "%d, %s", r, t.call);
	check(r == 0 || t.refusal != 0, "no errno");
	check(t.offset == (r ? 0 : t.end), "%lld", (long long)t.offset);
	check(r || same_bytes("src", "dst"), "bytes differ");
	transfer_done(&t);
	leave();
}
END_TEST

/* A range in the middle, which ends with a single byte: nothing before it and nothing after it
 * changes. */
START_TEST(copies_a_range)
{
	const struct cell *c = &cells[_i];
	const off_t start = 1 << 19, size = 1 << 20;
	const off_t end = start + (1 << 18) + (c->engine != &engine_direct); /* it pads a block */
	enter(c->dir);
	set_label("%s on %s", c->engine->name, c->dir->name);
	make_file("src", size, DENSE, 1);
	make_file("dst", size, DENSE, 2);
	make_file("old", size, DENSE, 2);
	struct transfer t = transfer_of("src", "dst");
	t.offset = start;
	t.end = end;
	int r = c->engine->copy(&t);
	transfer_done(&t);
	if (c->engine == &engine_reflink) { /* clones whole files only */
		check(r == RESULT_NEXT, "%d", r);
		check(t.offset == start, "%lld", (long long)t.offset);
		check(same_bytes("old", "dst"), "touched");
	} else {
		check(r == 0, "%d, %s", r, t.call);
		check(t.offset == end, "%lld", (long long)t.offset);
		check(same_range("src", "dst", start, end), "bytes differ");
		check(same_range("old", "dst", 0, start), "before");
		check(same_range("old", "dst", end, size), "after the range");
	}
	leave();
}
END_TEST

/* A transfer that begins at 0 and stops before the source does. */
START_TEST(stops_at_the_end)
{
	const struct cell *c = &cells[_i];
	enter(c->dir);
	set_label("%s on %s", c->engine->name, c->dir->name);
	make_file("src", 65536, DENSE, 1);
	struct transfer t = transfer_of("src", "dst");
	t.end = 16384;
	int r = c->engine->copy(&t);
	transfer_done(&t);
	check(r == (c->engine == &engine_reflink ? RESULT_NEXT : 0), "%d", r);
	check(t.offset == (r ? 0 : 16384), "%lld", (long long)t.offset);
	check(size_of("dst") == (r ? 0 : 16384), "%lld", (long long)size_of("dst"));
	leave();
}
END_TEST

/* A range that starts where the source has already ended. */
START_TEST(sees_the_end)
{
	const struct cell *c = &cells[_i];
	enter(c->dir);
	set_label("%s on %s", c->engine->name, c->dir->name);
	make_file("src", 8192, DENSE, 1);
	make_file("dst", 8192, DENSE, 2);
	struct transfer t = transfer_of("src", "dst");
	t.offset = 8192;
	int r = c->engine->copy(&t);
	transfer_done(&t);
	check(r == (c->engine == &engine_reflink ? RESULT_NEXT : 0), "%d", r);
	check(t.offset == 8192, "%lld", (long long)t.offset);
	check(size_of("dst") == 8192, "grown");
	leave();
}
END_TEST

/* No engine takes t.size for the end. A clone reports at most t.size bytes, even if the source has
 * grown or dst was longer. */
START_TEST(trusts_no_size)
{
	static const off_t wrong[] = {0, 8192, -4096};
	const struct cell *c = &cells[_i];
	const bool clones = c->engine == &engine_reflink;
	enter(c->dir);
	make_file("src", 16384, DENSE, 1);
	for (int i = 0; i < 3; i++) {
		bool old = clones && i == 0;
		set_label("%s on %s, size wrong by %lld", c->engine->name, c->dir->name,
			  (long long)wrong[i]);
		make_file("dst", old ? 20000 : 0, DENSE, 2);
		struct transfer t = transfer_of("src", "dst");
		t.size = 16384 - wrong[i];
		t.fresh = !old;
		int r = c->engine->copy(&t);
		bool part = clones && wrong[i] > 0;
		check(r == 0, "%d, %s", r, t.call);
		check(t.offset == (part ? t.size : 16384), "%lld", (long long)t.offset);
		check(same_range("src", "dst", 0, t.offset), "bytes differ");
		check(!t.ended || t.offset == 16384, "a wrong end");
		if (clones)
			check(t.ended == (wrong[i] == 0 && !old), "ended %d", t.ended);
		transfer_done(&t);
		need(unlink("dst") == 0);
	}
	make_file("dst", 0, DENSE, 2);
	struct transfer t = transfer_of("src", "dst");
	t.size = 16384;
	t.fresh = true;
	check(c->engine->copy(&t) == 0 && (t.ended || !clones), "a clone of all");
	transfer_done(&t);
	leave();
}
END_TEST

/* A buffer size of the caller's, odd and small, and a buffer of the caller's. */
START_TEST(takes_any_buffer_size)
{
	const struct cell *c = &cells[_i];
	static const size_t buffer_sizes[] = {1, 511, 4097, 65536};
	static char own[65536];
	enter(c->dir);
	make_file("src", 5001, DENSE, 1);
	for (size_t i = 0; i < 8; i++) {
		set_label("%s on %s, %s buffer of %zu", c->engine->name, c->dir->name,
			  i % 2 ? "the caller's" : "its own", buffer_sizes[i / 2]);
		struct transfer t = transfer_of("src", "dst");
		t.buffer_size = buffer_sizes[i / 2];
		t.buffer = i % 2 ? own : NULL;
		need(ftruncate(t.dst, 0) == 0);
		int r = c->engine->copy(&t);
		check(r == 0 && t.offset == 5001, "returned %d, not 0; offset %lld, not 5001", r,
		      (long long)t.offset);
		need(ftruncate(t.dst, t.offset) == 0);
		check(same_bytes("src", "dst"), "differs at byte %lld of 5001",
		      (long long)first_difference("src", "dst"));
		transfer_done(&t);
	}
	leave();
}
END_TEST

/* The destination fails with the first byte: the offset says that nothing was done. */
START_TEST(fails_on_a_closed_side)
{
	const struct cell *c = &cells[_i / 2];
	bool source = _i % 2;
	enter(c->dir);
	set_label("%s on %s, %s of the wrong kind", c->engine->name, c->dir->name,
		  source ? "source" : "destination");
	make_file("src", 20000, DENSE, 1);
	make_file("dst", 20000, DENSE, 2);
	make_file("old", 20000, DENSE, 2);
	struct transfer t = transfer_of("src", "dst");
	/* a source only for writing, a destination only for reading */
	int *side = source ? &t.src : &t.dst;
	need(close(*side) == 0);
	*side = open(source ? "src" : "dst", (source ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	int r = c->engine->copy(&t);
	/* Other engines leave it to readwrite to report EBADF; mmap itself writes by pwrite(2). */
	bool final = c->engine == &engine_readwrite || (c->engine == &engine_mmap && !source);
	check(r == (final ? -EBADF : RESULT_NEXT), "%d", r);
	check(r != RESULT_NEXT || t.refusal != 0, "no errno says why");
	check(t.offset == 0, "%lld", (long long)t.offset);
	check(t.call, "no call is named");
	check(same_bytes("old", "dst"), "touched");
	transfer_done(&t);
	leave();
}
END_TEST

static void *read_slowly(void *arg)
{
	static char buffer[65536];
	while (read(*(int *)arg, buffer, sizeof(buffer)) > 0)
		usleep(1000);
	return NULL;
}

/* Without this, a slow receiver would look like slow storage, and cost a call for each 128 KiB. */
START_TEST(waits_for_a_receiver_without_reading_ahead)
{
	const struct engine *const senders[] = {&engine_sendfile, &engine_splice,
						&engine_readwrite};
	const struct engine *engine = senders[_i];
	const off_t size = 8 << 20;
	struct ahead ahead = {.most = size};
	pthread_t reader;
	int end[2];
	enter(&dirs[0]);
	set_label("%s to a slow receiver", engine->name);
	make_file("src", size, DENSE, 1);
	need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) == 0);
	need(fcntl(end[0], F_SETFL, O_NONBLOCK) == 0);
	need(pthread_create(&reader, NULL, read_slowly, &end[1]) == 0);
	struct transfer t = transfer_of("src", "dst");
	need(close(t.dst) == 0);
	t.dst = end[0];
	t.dst_positional = false;
	t.end = t.size = size;
	t.ahead = &ahead;
	ahead_start(&ahead, 0);
	int r = engine->copy(&t);
	check(r == 0 && t.offset == size, "%d, %lld bytes", r, (long long)t.offset);
	check(ahead.window == 0, "a window of %lld bytes", (long long)ahead.window);
	transfer_done(&t);
	need(pthread_join(reader, NULL) == 0);
	close(end[1]);
	leave();
}
END_TEST

/* On a busy machine a look may see more time without a CPU than time asleep: look again. */
START_TEST(reads_ahead_of_a_storage_that_waits)
{
	struct ahead ahead = {.most = 8 << 20};
	enter(&dirs[0]);
	make_file("src", 8 << 20, DENSE, 1);
	int fd = open("src", O_RDONLY | O_CLOEXEC);
	need(fd >= 0);
	ahead_start(&ahead, 0);
	for (int i = 0; i < 1000 && ahead.window == 0; i++) {
		usleep(5000);
		ahead_look(&ahead, 0, fd, 0, 8 << 20);
	}
	check(ahead.window > 0 && ahead.done == ahead.window, "%lld, asked for %lld",
	      (long long)ahead.window, (long long)ahead.done);
	need(close(fd) == 0);
	leave();
}
END_TEST

START_TEST(is_found_by_name)
{
	for (int i = 0; i < engine_count; i++)
		ck_assert_ptr_eq(engine_find(engines[i]->name), engines[i]);
	ck_assert_ptr_null(engine_find("teleport"));
}
END_TEST

int main(void)
{
	dirs_find();
	find_cells();
	Suite *s = suite_create("engines");
	TCase *c = add_case(s, "engines");
	tcase_add_loop_test(c, copies_all, 0, cell_count * SIZES);
	tcase_add_loop_test(c, is_shared_by_threads, 0, cell_count);
	tcase_add_loop_test(c, copies_a_range, 0, cell_count);
	tcase_add_loop_test(c, stops_at_the_end, 0, cell_count);
	tcase_add_loop_test(c, sees_the_end, 0, cell_count);
	tcase_add_loop_test(c, trusts_no_size, 0, cell_count);
	tcase_add_loop_test(c, takes_any_buffer_size, 0, cell_count);
	tcase_add_loop_test(c, fails_on_a_closed_side, 0, cell_count * 2);
	tcase_add_loop_test(c, waits_for_a_receiver_without_reading_ahead, 0, 3);
	tcase_add_test(c, reads_ahead_of_a_storage_that_waits);
	tcase_add_test(c, is_found_by_name);
	return run_suite(s);
}
