/* SPDX-License-Identifier: MIT
 * What moves the next bytes: the choice as a table, and what holds for every combination of facts.
 * moving_test.c makes whole copies.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "copy/move.h"

#include <stdint.h>
#include <sys/param.h>

#define MIB    ((off_t)1 << 20)
#define CHANGE (1300 * MIB) /* between two trials */

/* A copy of one large file in thought: seconds per MiB of each way, and what was moved by which. */
struct course {
	const char *name;
	double splice, threads; /* before CHANGE */
	double later;           /* threads after it */
	unsigned idle, idle_later;
	off_t least, most; /* MiB of 2048 that threads may move */
};

static const struct course courses[] = {
    {"threads save 20 %", 1, 0.80, 0.80, 2, 2, 1800, 2020},
    {"threads save 10 %", 1, 0.90, 0.90, 2, 2, 32, 160},
    {"threads lose", 1, 1.50, 1.50, 2, 2, 32, 160},
    {"no CPU is idle", 1, 0.50, 0.50, 1, 1, 0, 0},
    {"threads become slow", 1, 0.50, 2.00, 4, 4, 1000, 1576},
    {"threads become fast", 1, 2.00, 0.50, 4, 4, 450, 1100},
    {"the CPUs become busy", 1, 0.50, 0.50, 2, 0, 1200, 1404},
    {"the CPUs become idle", 1, 0.50, 0.50, 0, 2, 600, 748},
};

static const struct mover_facts large = {.files = true, .size = 2048 * MIB, .threads = 2};

/* Chooses, and notes seconds per byte of each way. Returns the move. */
static struct move move_once(struct mover_state *s, off_t size, off_t left, unsigned idle_cpus,
			     double splice, double threads)
{
	const struct mover_range x = {.size = size, .left = left};
	const struct mover_now now = {.idle_cpus = idle_cpus};
	struct move m = mover_next(&large, s, &x, &now);
	assert_in_range(m.size, 1, left);
	mover_note(s, &m, m.size, m.kind == MOVER_SPLICE ? splice : threads);
	return m;
}

static void measurement_decides(void **state)
{
	const struct course *course = *state;
	struct mover_state s = {.threads = 2};
	off_t by_threads = 0, size = 2048 * MIB;
	for (off_t at = 0; at < size;) {
		bool later = at >= CHANGE;
		struct move m = move_once(&s, size, size - at,
					  later ? course->idle_later : course->idle, course->splice,
					  later ? course->later : course->threads);
		by_threads += m.threads > 0 ? m.size : 0;
		at += m.size;
	}
	assert_in_range(by_threads / MIB, course->least, course->most);
}

/* A reader that waits for its storage: seconds per MiB with 4 and with 8 threads. */
struct waiting {
	const char *name;
	double four, eight;
	unsigned threads; /* that copy the rest; 0: splice */
};

static const struct waiting waitings[] = {
    {"the reader waits: 8 threads are faster than 4", 0.30, 0.16, 8},
    {"the reader waits: 8 threads are no faster than 4", 0.30, 0.29, 4},
    {"the reader waits: threads gain nothing", 1.00, 1.00, 0},
};

static void waiting_reader_gets_threads(void **state)
{
	const struct waiting *w = *state;
	struct mover_state s = {.threads = 2};
	off_t size = 256 * MIB;
	unsigned threads = 0;
	mover_note_waiting(&s, 64 * MIB);
	for (off_t at = 0; at < size;) {
		const bool eight = s.threads == 8;
		struct move m = move_once(&s, size, size - at, 0 /* no CPU is idle */, 1.0,
					  eight ? w->eight : w->four);
		threads = m.threads;
		at += m.size;
		if (at >= 64 * MIB + m.size)
			assert_int_equal(threads, w->threads);
	}
	assert_int_equal(threads, w->threads);
}

static void memory_bounds_readers(void **state)
{
	(void)state;
	struct mover_state s = {.threads = 2};
	mover_note_waiting(&s, 3 * MIB / 2);
	assert_false(s.waits);
	assert_int_equal(s.threads, 2);
	mover_note_waiting(&s, 5 * MIB / 2);
	assert_true(s.waits);
	assert_int_equal(s.threads, 4);
	assert_int_equal(s.most, 5);
}

/* Extents: each is a separate range, and only the first ones pay for the trial. */
static void extents_share_a_trial(void **state)
{
	(void)state;
	struct mover_state s = {.threads = 2};
	off_t trials = 0, threads = 0;
	for (int extent = 0; extent < 10; extent++)
		for (off_t left = 40 * MIB; left > 0;) {
			struct move m = move_once(&s, 40 * MIB, left, 2, 1.0, 0.5);
			trials += m.trial ? m.size : 0;
			threads += m.threads > 0 ? m.size : 0;
			left -= m.size;
		}
	assert_int_equal(trials, 10 * MIB);
	assert_int_equal(threads, 398 * MIB);
	for (int extent = 0; extent < 1000; extent++) {
		struct move m = move_once(&s, 3 * MIB, 3 * MIB, 2, 1.0, 0.5);
		assert_false(m.trial);
		assert_int_equal(m.kind, MOVER_SPLICE);
		assert_int_equal(m.size, 3 * MIB);
	}
}

/* A single instant may look busy. */
static void a_moment_decides_nothing(void **state)
{
	(void)state;
	struct mover_state s = {.threads = 2};
	off_t threads = 0;
	for (off_t at = 0; at < 1024 * MIB;) {
		struct move m = move_once(&s, 1024 * MIB, 1024 * MIB - at,
					  at % (320 * MIB) == 0 ? 1 : 2, 1.0, 0.5);
		threads += m.threads > 0 ? m.size : 0;
		at += m.size;
	}
	assert_in_range(threads / MIB, 880, 1024);
}

#define KIB      ((off_t)1 << 10)
#define FILE     .files = true, .stored = true
#define NO(kind) (1u << MOVER_##kind)

/* Facts, what was refused and found, the range, the moment: the move. */
struct row {
	const char *name;
	struct mover_facts f;
	struct mover_state s;
	struct mover_range x;
	struct mover_now now;
	struct {
		enum mover kind;
		unsigned threads;
		off_t size, buffer;
		bool piece, trial;
	} wanted;
};

/* clang-format off */
#define DATA(of, to_come) {.size = (of), .left = (to_come)}
#define REST(of, to_come) {.rest = true, .size = (of), .left = (to_come)}

static const struct row rows[] = {
	/* A mode that the user selected. */
	{"a mode", {.mode = true, FILE}, {0}, DATA(9, 9), {0}, {MOVER_MODE, 0, 9, 0, 0, 0}},
	{"a mode, refused", {.mode = true, FILE}, {.refused = ~0u}, DATA(9, 9), {0},
	 {MOVER_MODE, 0, 9, 0, 0, 0}},
	{"a mode with a buffer", {.mode = true, .mode_buffer = 8192, FILE}, {0}, REST(9, 5), {0},
	 {MOVER_MODE, 0, 5, 8192, 0, 0}},
	{"a mode in threads: the data", {.mode = true, .mode_threads = true, .threads = 3}, {0},
	 DATA(9, 9), {0}, {MOVER_MODE, 3, 9, 0, 0, 0}},
	{"a mode in threads: the rest", {.mode = true, .mode_threads = true, .threads = 3}, {0},
	 REST(9, 9), {0}, {MOVER_MODE, 0, 9, 0, 0, 0}},
	/* Streams, and what follows the data. */
	{"the rest of a file", {FILE}, {0}, REST(9, 9), {0}, {MOVER_READWRITE, 0, 9, 0, 0, 0}},
	{"a stream to a stream", {0}, {0}, REST(MIB, MIB), {0}, {MOVER_SPLICE, 0, MIB, 0, 0, 0}},
	{"... splice refused", {0}, {.refused = NO(SPLICE)}, REST(9, 9), {0},
	 {MOVER_SENDFILE, 0, 9, 0, 0, 0}},
	{"... and sendfile", {0}, {.refused = NO(SPLICE) | NO(SENDFILE)}, REST(9, 9), {0},
	 {MOVER_READWRITE, 0, 9, 0, 0, 0}},
	{"a file to a connection", {.to_socket = true}, {0}, REST(9, 9), {0},
	 {MOVER_SENDFILE, 0, 9, 0, 0, 0}},
	{"... sendfile refused", {.to_socket = true}, {.refused = NO(SENDFILE)}, REST(9, 9), {0},
	 {MOVER_READWRITE, 0, 9, 0, 0, 0}},
	{"a stream to a file, its start", {.stored = true}, {0}, REST(99 * MIB, 99 * MIB), {0},
	 {MOVER_SPLICE, 0, 64 * KIB, 0, 0, 0}},
	{"... and more", {.stored = true}, {0}, REST(99 * MIB, 98 * MIB), {0},
	 {MOVER_SPLICE, 0, 16 * MIB, 0, 0, 0}},
	{"... and its end", {.stored = true}, {0}, REST(99 * MIB, MIB), {0},
	 {MOVER_SPLICE, 0, MIB, 0, 0, 0}},
	{"a stream that is summed", {.stored = true, .memory = true}, {0}, REST(9 * MIB, 9 * MIB),
	 {0}, {MOVER_READWRITE, 0, 9 * MIB, 0, 0, 0}},
	{"a stream with zeros", {.stored = true, .zeros = true}, {0}, REST(9 * MIB, 9 * MIB), {0},
	 {MOVER_READWRITE, 0, 9 * MIB, 0, 0, 0}},
	/* Past the page cache, and by the server. */
	{"direct", {FILE, .direct = true}, {0}, DATA(16 * MIB, 16 * MIB), {0},
	 {MOVER_DIRECT, 0, 16 * MIB, 0, 0, 0}},
	{"direct, a small range", {FILE, .direct = true, .threads = 2}, {0},
	 DATA(16 * MIB - 1, 16 * MIB - 1), {0}, {MOVER_SPLICE, 0, 16 * MIB - 1, 256 * KIB, 1, 0}},
	{"direct, a small range of --no-cache", {FILE, .direct = true, .uncached = true}, {0},
	 DATA(1, 1), {0}, {MOVER_DIRECT, 0, 1, 0, 0, 0}},
	{"--no-cache, direct refused", {FILE, .direct = true, .uncached = true, .threads = 2},
	 {.refused = NO(DIRECT)}, DATA(16 * MIB, 16 * MIB), {0},
	 {MOVER_READWRITE, 2, 16 * MIB, 512 * KIB, 0, 0}},
	{"direct before the server", {FILE, .direct = true, .remote = true}, {0},
	 DATA(16 * MIB, 16 * MIB), {0}, {MOVER_DIRECT, 0, 16 * MIB, 0, 0, 0}},
	{"the server", {FILE, .remote = true}, {0}, DATA(9, 9), {0}, {MOVER_REMOTE, 0, 9, 0, 0, 0}},
	{"the server cannot", {FILE, .remote = true}, {.refused = NO(REMOTE)}, DATA(9, 9), {0},
	 {MOVER_READWRITE, 0, 9, 256 * KIB, 0, 0}},
	/* Through the page cache. */
	{"below 2 MiB", {FILE, .threads = 2}, {.threads = 2}, DATA(2 * MIB - 1, 2 * MIB - 1), {0},
	 {MOVER_READWRITE, 0, 2 * MIB - 1, 256 * KIB, 0, 0}},
	{"from 2 MiB", {FILE, .threads = 2}, {.threads = 2}, DATA(2 * MIB, 2 * MIB), {0},
	 {MOVER_SPLICE, 0, 2 * MIB, 256 * KIB, 1, 0}},
	{"the tail of a large range", {FILE, .threads = 2}, {.threads = 2}, DATA(99 * MIB, 9), {0},
	 {MOVER_SPLICE, 0, 9, 256 * KIB, 1, 0}},
	{"no trial: one thread", {FILE, .threads = 1}, {.threads = 1}, DATA(99 * MIB, 99 * MIB),
	 {0}, {MOVER_SPLICE, 0, 64 * MIB, 256 * KIB, 1, 0}},
	{"a trial begins", {FILE, .threads = 2}, {.threads = 2}, DATA(32 * MIB, 32 * MIB), {0},
	 {MOVER_SPLICE, 0, 2 * MIB, 256 * KIB, 1, 1}},
	{"no trial below 32 MiB", {FILE, .threads = 2}, {.threads = 2},
	 DATA(32 * MIB, 32 * MIB - 1), {0}, {MOVER_SPLICE, 0, 32 * MIB - 1, 256 * KIB, 1, 0}},
	{"the threads' turn", {FILE, .threads = 2}, {.threads = 2, .pieces = 1, .piece = 2 * MIB},
	 DATA(32 * MIB, 30 * MIB), {.idle_cpus = 2},
	 {MOVER_READWRITE, 2, 8 * MIB, 512 * KIB, 1, 1}},
	{"... but one CPU is busy", {FILE, .threads = 2},
	 {.threads = 2, .pieces = 1, .piece = 2 * MIB}, DATA(32 * MIB, 30 * MIB), {.idle_cpus = 1},
	 {MOVER_SPLICE, 0, 4 * MIB, 256 * KIB, 1, 0}},
	{"... and was before", {FILE, .threads = 2},
	 {.threads = 2, .pieces = 1, .piece = 2 * MIB, .busy = true}, DATA(99 * MIB, 90 * MIB),
	 {.idle_cpus = 1}, {MOVER_SPLICE, 0, 32 * MIB, 256 * KIB, 1, 0}},
	{"threads have won", {FILE, .threads = 2},
	 {.threads = 2, .way = WAY_THREADS, .settled = MIB}, DATA(999 * MIB, 999 * MIB),
	 {.idle_cpus = 2}, {MOVER_READWRITE, 2, 128 * MIB, 512 * KIB, 1, 0}},
	{"the reader waits: CPUs do not matter", {FILE, .threads = 2},
	 {.threads = 4, .way = WAY_THREADS, .settled = MIB, .waits = true},
	 DATA(999 * MIB, 999 * MIB), {0}, {MOVER_READWRITE, 4, 128 * MIB, 512 * KIB, 1, 0}},
	{"the reader waits: a trial of 8 MiB", {FILE, .threads = 2}, {.threads = 4, .waits = true},
	 DATA(99 * MIB, 8 * MIB), {0}, {MOVER_SPLICE, 0, 2 * MIB, 256 * KIB, 1, 1}},
	{"splice refused", {FILE, .threads = 2}, {.threads = 2, .refused = NO(SPLICE)},
	 DATA(99 * MIB, 99 * MIB), {0}, {MOVER_READWRITE, 2, 99 * MIB, 512 * KIB, 0, 0}},
	{"splice refused, little is left", {FILE, .threads = 2},
	 {.threads = 2, .refused = NO(SPLICE)}, DATA(99 * MIB, 16 * MIB - 1), {0},
	 {MOVER_READWRITE, 0, 16 * MIB - 1, 256 * KIB, 0, 0}},
	{"zeros, large", {FILE, .zeros = true, .threads = 2}, {.threads = 2},
	 DATA(99 * MIB, 99 * MIB), {0}, {MOVER_READWRITE, 2, 99 * MIB, 512 * KIB, 0, 0}},
	{"zeros, one writer", {FILE, .zeros = true, .threads = 1, .one_writer = true},
	 {.threads = 1}, DATA(99 * MIB, 99 * MIB), {0},
	 {MOVER_READWRITE, 1, 99 * MIB, 256 * KIB, 0, 0}},
	{"--threads=3", {FILE, .asked = true, .threads = 3}, {.threads = 1},
	 DATA(16 * MIB, 16 * MIB), {0}, {MOVER_READWRITE, 3, 16 * MIB, 512 * KIB, 0, 0}},
	{"--threads=3, too small", {FILE, .asked = true, .threads = 3}, {0},
	 DATA(16 * MIB - 1, 16 * MIB - 1), {0}, {MOVER_SPLICE, 0, 16 * MIB - 1, 256 * KIB, 1, 0}},
	{"does the reader wait?", {FILE, .looks = true, .threads = 1}, {.threads = 1},
	 {.first = true, .size = 99 * MIB, .left = 99 * MIB}, {0},
	 {MOVER_SPLICE, 0, 2 * MIB, 256 * KIB, 1, 0}},
	{"asked once", {FILE, .looks = true, .threads = 1}, {.threads = 1},
	 DATA(99 * MIB, 97 * MIB), {0}, {MOVER_SPLICE, 0, 64 * MIB, 256 * KIB, 1, 0}},
	{"the progress follows the device", {FILE, .paced = true, .threads = 1}, {.threads = 1},
	 DATA(99 * MIB, 99 * MIB), {0}, {MOVER_SPLICE, 0, 16 * MIB, 256 * KIB, 1, 0}},
	/* A large file of a tree. */
	{"no thread is idle", {FILE, .helped = true, .threads = 1}, {.threads = 1},
	 DATA(99 * MIB, 99 * MIB), {0}, {MOVER_SPLICE, 0, 16 * MIB, 256 * KIB, 1, 0}},
	{"a thread is idle", {FILE, .helped = true, .threads = 1}, {.threads = 1},
	 DATA(99 * MIB, 99 * MIB), {.idle_threads = true},
	 {MOVER_READWRITE, 1, 64 * MIB, 512 * KIB, 1, 0}},
	{"a thread is idle, little is left", {FILE, .helped = true, .threads = 1}, {.threads = 1},
	 DATA(99 * MIB, 16 * MIB - 1), {.idle_threads = true},
	 {MOVER_SPLICE, 0, 16 * MIB - 1, 256 * KIB, 1, 0}},
	{"threads that wait help whenever they come", {FILE, .helped = true, .threads = 1},
	 {.threads = 1}, DATA(99 * MIB, 99 * MIB), {.waits = true},
	 {MOVER_READWRITE, 1, 99 * MIB, 512 * KIB, 1, 0}},
	{"... also with 4 MiB", {FILE, .helped = true, .threads = 1}, {.threads = 1},
	 DATA(4 * MIB, 4 * MIB), {.waits = true}, {MOVER_READWRITE, 1, 4 * MIB, 512 * KIB, 1, 0}},
	{"the reader waits, and reads a little at a time", {FILE, .threads = 2}, {.threads = 1},
	 DATA(999 * MIB, 999 * MIB), {.waits = true}, {MOVER_SPLICE, 0, 64 * MIB, 128 * KIB, 1, 0}},
};
/* clang-format on */

static void row_is_chosen(void **state)
{
	const struct row *row = *state;
	const struct move m = mover_next(&row->f, &row->s, &row->x, &row->now);
	assert_int_equal(m.kind, row->wanted.kind);
	assert_int_equal(m.size, row->wanted.size);
	assert_int_equal(m.threads, row->wanted.threads);
	assert_int_equal(m.buffer, row->wanted.buffer);
	assert_int_equal(m.piece, row->wanted.piece);
	assert_int_equal(m.trial, row->wanted.trial);
}

static const off_t sizes[] = {1,       64 * KIB, 2 * MIB,  4 * MIB,
			      8 * MIB, 16 * MIB, 32 * MIB, 999 * MIB};

/* What holds for each choice. */
static void check_choice(const struct mover_facts *f, const struct mover_state *s,
			 const struct mover_range *x, const struct mover_now *now)
{
	const struct move m = mover_next(f, s, x, now);
	const bool pages = f->zeros || f->uncached;
	assert_in_range(m.size, 1, x->left);
	assert_true((m.kind == MOVER_MODE) == f->mode);
	assert_true(m.kind == MOVER_MODE || m.kind == MOVER_READWRITE ||
		    !(s->refused & 1u << m.kind));
	if (pages && !f->mode)
		assert_true(m.kind == MOVER_READWRITE || (m.kind == MOVER_DIRECT && f->direct) ||
			    (m.kind == MOVER_REMOTE && f->remote));
	if (x->rest && f->memory && !f->mode)
		assert_int_equal(m.kind, MOVER_READWRITE);
	if (f->one_writer && !f->mode)
		assert_in_range(m.threads, 0, 1);
	assert_true(m.threads <= MAX(f->threads, s->threads));
	assert_true(!m.trial || m.piece);
	assert_true(m.starts == 0 || m.trial);
	if (!mover_asks(f, s, x)) { /* then the count of CPUs changes nothing */
		const struct mover_now other = {now->idle_cpus ^ 2, now->idle_threads, now->waits};
		const struct move n = mover_next(f, s, x, &other);
		assert_true(m.kind == n.kind && m.size == n.size && m.threads == n.threads &&
			    m.buffer == n.buffer && m.trial == n.trial && m.busy == n.busy);
	}
}

/* All combinations of facts, refusals, sizes and moments. */
static void every_choice_is_possible(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 1u << 15; bits++) {
		const bool one_writer = bits & 1, asked = bits & 2;
		const struct mover_facts f = {.mode = bits & 4,
					      .files = bits & 8,
					      .stored = bits & 8 || bits & 16,
					      .to_socket = bits & 32,
					      .memory = bits & 64,
					      .zeros = bits & 128,
					      .uncached = bits & 256,
					      .direct = bits & 512,
					      .remote = bits & 1024,
					      .one_writer = one_writer,
					      .asked = asked,
					      .helped = bits & 2048,
					      .looks = bits & 4096,
					      .paced = bits & 8192,
					      .threads = one_writer ? 1 : 4};
		const struct mover_state s = {.refused = bits * 7 % 64 & ~1u,
					      .threads = one_writer ? 1 : 4,
					      .way = bits % 3 ? WAY_THREADS : WAY_SPLICE,
					      .pieces = bits % 5,
					      .piece = bits % 5 ? 2 * MIB : 0,
					      .settled = bits % 7 * MIB};
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			for (size_t j = 0; j <= i; j++)
				check_choice(&f, &s,
					     &(struct mover_range){.rest = bits & 16384,
								   .first = i == j,
								   .size = sizes[i],
								   .left = sizes[j]},
					     &(struct mover_now){.idle_cpus = bits % 4,
								 .idle_threads = bits % 2,
								 .waits = bits % 3 == 0});
	}
}

int main(void)
{
	cases_enter("ext4");
	for (size_t i = 0; i < sizeof(courses) / sizeof(*courses); i++)
		case_add(measurement_decides, &courses[i], "%s", courses[i].name);
	for (size_t i = 0; i < sizeof(waitings) / sizeof(*waitings); i++)
		case_add(waiting_reader_gets_threads, &waitings[i], "%s", waitings[i].name);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		case_add(row_is_chosen, &rows[i], "%s", rows[i].name);
	case_add(every_choice_is_possible, NULL, "every choice is possible");
	case_add(memory_bounds_readers, NULL, "memory bounds the threads of a reader that waits");
	case_add(extents_share_a_trial, NULL, "extents share one trial");
	case_add(a_moment_decides_nothing, NULL, "one busy instant decides nothing");
	return cases_run("mover");
}
