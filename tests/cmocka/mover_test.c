/* SPDX-License-Identifier: MIT
 * What moves the next bytes: the choice as a table, and between splice and threads in whole copies.
 * The clock, the number of CPUs and the other tasks are the test's own, so that the result does not
 * depend on the machine.
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
#include <sys/param.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define MIB    ((off_t)1 << 20)
#define CHANGE (1300 * MIB) /* between two trials */
#define SIZE   (40 * MIB + 4099)

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
	enum mover kind;
	unsigned threads;
	off_t size, buffer;
	bool piece, trial;
};

static const struct row rows[] = {
    /* A mode that the user selected. */
    {"a mode", {.mode = true, FILE}, {0}, {.size = 9, .left = 9}, {0}, MOVER_MODE, 0, 9, 0, 0, 0},
    {"a mode, refused",
     {.mode = true, FILE},
     {.refused = ~0u},
     {.size = 9, .left = 9},
     {0},
     MOVER_MODE,
     0,
     9,
     0,
     0,
     0},
    {"a mode with a buffer",
     {.mode = true, .mode_buffer = 8192, FILE},
     {0},
     {.rest = true, .size = 9, .left = 5},
     {0},
     MOVER_MODE,
     0,
     5,
     8192,
     0,
     0},
    {"a mode in threads: the data",
     {.mode = true, .mode_threads = true, .threads = 3},
     {0},
     {.size = 9, .left = 9},
     {0},
     MOVER_MODE,
     3,
     9,
     0,
     0,
     0},
    {"a mode in threads: the rest",
     {.mode = true, .mode_threads = true, .threads = 3},
     {0},
     {.rest = true, .size = 9, .left = 9},
     {0},
     MOVER_MODE,
     0,
     9,
     0,
     0,
     0},
    /* Streams, and what follows the data. */
    {"the rest of a file",
     {FILE},
     {0},
     {.rest = true, .size = 9, .left = 9},
     {0},
     MOVER_READWRITE,
     0,
     9,
     0,
     0,
     0},
    {"a stream to a stream",
     {0},
     {0},
     {.rest = true, .size = MIB, .left = MIB},
     {0},
     MOVER_SPLICE,
     0,
     MIB,
     0,
     0,
     0},
    {"... splice refused",
     {0},
     {.refused = NO(SPLICE)},
     {.rest = true, .size = 9, .left = 9},
     {0},
     MOVER_SENDFILE,
     0,
     9,
     0,
     0,
     0},
    {"... and sendfile",
     {0},
     {.refused = NO(SPLICE) | NO(SENDFILE)},
     {.rest = true, .size = 9, .left = 9},
     {0},
     MOVER_READWRITE,
     0,
     9,
     0,
     0,
     0},
    {"a file to a connection",
     {.to_socket = true},
     {0},
     {.rest = true, .size = 9, .left = 9},
     {0},
     MOVER_SENDFILE,
     0,
     9,
     0,
     0,
     0},
    {"... sendfile refused",
     {.to_socket = true},
     {.refused = NO(SENDFILE)},
     {.rest = true, .size = 9, .left = 9},
     {0},
     MOVER_READWRITE,
     0,
     9,
     0,
     0,
     0},
    {"a stream to a file, its start",
     {.stored = true},
     {0},
     {.rest = true, .size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     64 * KIB,
     0,
     0,
     0},
    {"... and more",
     {.stored = true},
     {0},
     {.rest = true, .size = 99 * MIB, .left = 98 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     16 * MIB,
     0,
     0,
     0},
    {"... and its end",
     {.stored = true},
     {0},
     {.rest = true, .size = 99 * MIB, .left = MIB},
     {0},
     MOVER_SPLICE,
     0,
     MIB,
     0,
     0,
     0},
    {"a stream that is summed",
     {.stored = true, .sums = true},
     {0},
     {.rest = true, .size = 9 * MIB, .left = 9 * MIB},
     {0},
     MOVER_READWRITE,
     0,
     9 * MIB,
     0,
     0,
     0},
    {"a stream with zeros",
     {.stored = true, .zeros = true},
     {0},
     {.rest = true, .size = 9 * MIB, .left = 9 * MIB},
     {0},
     MOVER_READWRITE,
     0,
     9 * MIB,
     0,
     0,
     0},
    /* Past the page cache, and by the server. */
    {"direct",
     {FILE, .direct = true},
     {0},
     {.size = 16 * MIB, .left = 16 * MIB},
     {0},
     MOVER_DIRECT,
     0,
     16 * MIB,
     0,
     0,
     0},
    {"direct, a small range",
     {FILE, .direct = true, .threads = 2},
     {0},
     {.size = 16 * MIB - 1, .left = 16 * MIB - 1},
     {0},
     MOVER_SPLICE,
     0,
     16 * MIB - 1,
     256 * KIB,
     1,
     0},
    {"direct, a small range of --no-cache",
     {FILE, .direct = true, .uncached = true},
     {0},
     {.size = 1, .left = 1},
     {0},
     MOVER_DIRECT,
     0,
     1,
     0,
     0,
     0},
    {"--no-cache, direct refused",
     {FILE, .direct = true, .uncached = true, .threads = 2},
     {.refused = NO(DIRECT)},
     {.size = 16 * MIB, .left = 16 * MIB},
     {0},
     MOVER_READWRITE,
     2,
     16 * MIB,
     512 * KIB,
     0,
     0},
    {"direct before the server",
     {FILE, .direct = true, .remote = true},
     {0},
     {.size = 16 * MIB, .left = 16 * MIB},
     {0},
     MOVER_DIRECT,
     0,
     16 * MIB,
     0,
     0,
     0},
    {"the server",
     {FILE, .remote = true},
     {0},
     {.size = 9, .left = 9},
     {0},
     MOVER_REMOTE,
     0,
     9,
     0,
     0,
     0},
    {"the server cannot",
     {FILE, .remote = true},
     {.refused = NO(REMOTE)},
     {.size = 9, .left = 9},
     {0},
     MOVER_READWRITE,
     0,
     9,
     256 * KIB,
     0,
     0},
    /* Through the page cache. */
    {"below 2 MiB",
     {FILE, .threads = 2},
     {.threads = 2},
     {.size = 2 * MIB - 1, .left = 2 * MIB - 1},
     {0},
     MOVER_READWRITE,
     0,
     2 * MIB - 1,
     256 * KIB,
     0,
     0},
    {"from 2 MiB",
     {FILE, .threads = 2},
     {.threads = 2},
     {.size = 2 * MIB, .left = 2 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     2 * MIB,
     256 * KIB,
     1,
     0},
    {"the tail of a large range",
     {FILE, .threads = 2},
     {.threads = 2},
     {.size = 99 * MIB, .left = 9},
     {0},
     MOVER_SPLICE,
     0,
     9,
     256 * KIB,
     1,
     0},
    {"no trial: one thread",
     {FILE, .threads = 1},
     {.threads = 1},
     {.size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     64 * MIB,
     256 * KIB,
     1,
     0},
    {"a trial begins",
     {FILE, .threads = 2},
     {.threads = 2},
     {.size = 32 * MIB, .left = 32 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     2 * MIB,
     256 * KIB,
     1,
     1},
    {"no trial below 32 MiB",
     {FILE, .threads = 2},
     {.threads = 2},
     {.size = 32 * MIB, .left = 32 * MIB - 1},
     {0},
     MOVER_SPLICE,
     0,
     32 * MIB - 1,
     256 * KIB,
     1,
     0},
    {"the threads' turn",
     {FILE, .threads = 2},
     {.threads = 2, .pieces = 1, .piece = 2 * MIB},
     {.size = 32 * MIB, .left = 30 * MIB},
     {.idle_cpus = 2},
     MOVER_READWRITE,
     2,
     8 * MIB,
     512 * KIB,
     1,
     1},
    {"... but one CPU is busy",
     {FILE, .threads = 2},
     {.threads = 2, .pieces = 1, .piece = 2 * MIB},
     {.size = 32 * MIB, .left = 30 * MIB},
     {.idle_cpus = 1},
     MOVER_SPLICE,
     0,
     4 * MIB,
     256 * KIB,
     1,
     0},
    {"... and was before",
     {FILE, .threads = 2},
     {.threads = 2, .pieces = 1, .piece = 2 * MIB, .busy = true},
     {.size = 99 * MIB, .left = 90 * MIB},
     {.idle_cpus = 1},
     MOVER_SPLICE,
     0,
     32 * MIB,
     256 * KIB,
     1,
     0},
    {"threads have won",
     {FILE, .threads = 2},
     {.threads = 2, .way = WAY_THREADS, .settled = MIB},
     {.size = 999 * MIB, .left = 999 * MIB},
     {.idle_cpus = 2},
     MOVER_READWRITE,
     2,
     128 * MIB,
     512 * KIB,
     1,
     0},
    {"the reader waits: CPUs do not matter",
     {FILE, .threads = 2},
     {.threads = 4, .way = WAY_THREADS, .settled = MIB, .waits = true},
     {.size = 999 * MIB, .left = 999 * MIB},
     {0},
     MOVER_READWRITE,
     4,
     128 * MIB,
     512 * KIB,
     1,
     0},
    {"the reader waits: a trial of 8 MiB",
     {FILE, .threads = 2},
     {.threads = 4, .waits = true},
     {.size = 99 * MIB, .left = 8 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     2 * MIB,
     256 * KIB,
     1,
     1},
    {"splice refused",
     {FILE, .threads = 2},
     {.threads = 2, .refused = NO(SPLICE)},
     {.size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_READWRITE,
     2,
     99 * MIB,
     512 * KIB,
     0,
     0},
    {"splice refused, little is left",
     {FILE, .threads = 2},
     {.threads = 2, .refused = NO(SPLICE)},
     {.size = 99 * MIB, .left = 16 * MIB - 1},
     {0},
     MOVER_READWRITE,
     0,
     16 * MIB - 1,
     256 * KIB,
     0,
     0},
    {"zeros, large",
     {FILE, .zeros = true, .threads = 2},
     {.threads = 2},
     {.size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_READWRITE,
     2,
     99 * MIB,
     512 * KIB,
     0,
     0},
    {"zeros, one writer",
     {FILE, .zeros = true, .threads = 1, .one_writer = true},
     {.threads = 1},
     {.size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_READWRITE,
     1,
     99 * MIB,
     256 * KIB,
     0,
     0},
    {"--threads=3",
     {FILE, .asked = true, .threads = 3},
     {.threads = 1},
     {.size = 16 * MIB, .left = 16 * MIB},
     {0},
     MOVER_READWRITE,
     3,
     16 * MIB,
     512 * KIB,
     0,
     0},
    {"--threads=3, too small",
     {FILE, .asked = true, .threads = 3},
     {0},
     {.size = 16 * MIB - 1, .left = 16 * MIB - 1},
     {0},
     MOVER_SPLICE,
     0,
     16 * MIB - 1,
     256 * KIB,
     1,
     0},
    {"does the reader wait?",
     {FILE, .looks = true, .threads = 1},
     {.threads = 1},
     {.first = true, .size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     2 * MIB,
     256 * KIB,
     1,
     0},
    {"asked once",
     {FILE, .looks = true, .threads = 1},
     {.threads = 1},
     {.size = 99 * MIB, .left = 97 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     64 * MIB,
     256 * KIB,
     1,
     0},
    {"the progress follows the device",
     {FILE, .paced = true, .threads = 1},
     {.threads = 1},
     {.size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     16 * MIB,
     256 * KIB,
     1,
     0},
    /* A large file of a tree. */
    {"no thread is idle",
     {FILE, .helped = true, .threads = 1},
     {.threads = 1},
     {.size = 99 * MIB, .left = 99 * MIB},
     {0},
     MOVER_SPLICE,
     0,
     16 * MIB,
     256 * KIB,
     1,
     0},
    {"a thread is idle",
     {FILE, .helped = true, .threads = 1},
     {.threads = 1},
     {.size = 99 * MIB, .left = 99 * MIB},
     {.idle_threads = true},
     MOVER_READWRITE,
     1,
     64 * MIB,
     512 * KIB,
     1,
     0},
    {"a thread is idle, little is left",
     {FILE, .helped = true, .threads = 1},
     {.threads = 1},
     {.size = 99 * MIB, .left = 16 * MIB - 1},
     {.idle_threads = true},
     MOVER_SPLICE,
     0,
     16 * MIB - 1,
     256 * KIB,
     1,
     0},
    {"threads that wait help whenever they come",
     {FILE, .helped = true, .threads = 1},
     {.threads = 1},
     {.size = 99 * MIB, .left = 99 * MIB},
     {.waits = true},
     MOVER_READWRITE,
     1,
     99 * MIB,
     512 * KIB,
     1,
     0},
    {"... also with 4 MiB",
     {FILE, .helped = true, .threads = 1},
     {.threads = 1},
     {.size = 4 * MIB, .left = 4 * MIB},
     {.waits = true},
     MOVER_READWRITE,
     1,
     4 * MIB,
     512 * KIB,
     1,
     0},
    {"the reader waits, and reads a little at a time",
     {FILE, .threads = 2},
     {.threads = 1},
     {.size = 999 * MIB, .left = 999 * MIB},
     {.waits = true},
     MOVER_SPLICE,
     0,
     64 * MIB,
     128 * KIB,
     1,
     0},
};

static void row_is_chosen(void **state)
{
	const struct row *row = *state;
	const struct move m = mover_next(&row->f, &row->s, &row->x, &row->now);
	assert_int_equal(m.kind, row->kind);
	assert_int_equal(m.size, row->size);
	assert_int_equal(m.threads, row->threads);
	assert_int_equal(m.buffer, row->buffer);
	assert_int_equal(m.piece, row->piece);
	assert_int_equal(m.trial, row->trial);
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
	if (x->rest && f->sums && !f->mode)
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
					      .sums = bits & 64,
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
			 .no_clone = true,
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
	make_file("src", 40 * MIB + 5, DENSE, 1);
	fault_sweep(((const struct failing *)*state)->call, ((const struct failing *)*state)->err,
		    fail_once, *state);
}

static void shrink(void)
{
	need(truncate("src", 26 * MIB + 100) == 0);
}

/* The pipe may hold pages that the source has lost: no zeros of theirs get into the copy. */
static void shrink_once(void *arg)
{
	(void)arg;
	const struct fcopy_options options = {.api = FCOPY_API};
	make_file("src", 40 * MIB + 5, DENSE, 1);
	make_file("whole", 40 * MIB + 5, DENSE, 1);
	unlink("dst");
	cpus = idle = 2;
	fault_before(shrink);
	int r = copy_file_with(&options);
	assert_int_equal(r, 0);
	assert_int_equal(report.bytes, size_of("dst"));
	assert_true(same_range("whole", "dst", 0, size_of("dst")));
	assert_true(size_of("dst") >= 26 * MIB + 100 || !fault_seen());
	assert_int_equal(report.source_changed, fault_seen());
}

static void shrinking_source(void **state)
{
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
	return cases_run("mover");
}
