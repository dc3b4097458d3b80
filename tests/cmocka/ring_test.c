/* SPDX-License-Identifier: MIT
 * The engine direct on a ring of our own (fake_ring.h) in place of io_uring's: completions in any
 * order, short ones, failing ones, and a ring that fails itself.
 */
#define _GNU_SOURCE
#include "cases.h"

#include <stdio.h>

#ifdef HAVE_LIBURING

#include "engines/engine.h"
#include "engines/pieces.h"
#include "fake_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE ((off_t)(5 << 20) + 1234)

/* Copies with the ring as it is set; the answer and the offset are for the caller. */
static int copy(struct transfer *t, off_t size)
{
	make_file("src", size, DENSE, 1);
	*t = (struct transfer){.src = open("src", O_RDONLY | O_CLOEXEC),
			       .dst = open("dst", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
			       .src_positional = true,
			       .dst_positional = true,
			       .end = TRANSFER_TO_EOF};
	int r = engine_direct.copy(t);
	assert_int_equal(fake.open, 0);
	assert_int_equal(fcntl(t->src, F_GETFL) & O_DIRECT, 0);
	assert_int_equal(fcntl(t->dst, F_GETFL) & O_DIRECT, 0);
	assert_in_range(t->offset, 0, size);
	assert_true(same_range("src", "dst", 0, t->offset));
	return r;
}

static void done(struct transfer *t)
{
	close(t->src);
	close(t->dst);
}

/* Each test begins with a ring without faults. */
static void reset(void)
{
	memset(&fake, 0, sizeof(fake));
}

static void copies_all(void **state)
{
	reset();
	static const off_t sizes[] = {0, 1, 511, 512, 4096, 4097, 1 << 20, SIZE};
	for (size_t i = 0; i < 16; i++) {
		struct transfer t;
		fake.backwards = i % 2;
		fake.most = *(const size_t *)*state;
		assert_int_equal(copy(&t, sizes[i / 2]), 0);
		assert_int_equal(t.offset, sizes[i / 2]);
		/* only the last block may be longer */
		assert_in_range(size_of("dst"), t.offset, t.offset + 4095);
		done(&t);
	}
}

struct fault {
	bool writes;
	int err;
	int answer; /* 0: goes on */
};

/* The Nth operation fails, for each N. */
static void sweep(void **state)
{
	const struct fault *f = *state;
	reset();
	for (int nth = 1;; nth++) {
		struct transfer t;
		fake.backwards = nth % 2;
		fake.most = 512 << 10;
		fake.only_writes = f->writes;
		fake.nth = nth;
		fake.err = f->err;
		fake.ever = f->answer < 0 &&
			    nth % 2; /* the first failure is the one that is reported */
		fake.zero = f->err == FAULT_ZERO;
		fake.operations = 0;
		fake.seen = false;
		int r = copy(&t, SIZE);
		done(&t);
		if (!fake.seen) {
			assert_true(nth > 10);
			assert_int_equal(r, 0);
			assert_int_equal(t.offset, SIZE);
			return;
		}
		assert_int_equal(r, f->answer);
		if (f->answer == 0 && f->err != FAULT_ZERO)
			assert_int_equal(t.offset, SIZE);
		if (f->answer == RESULT_NEXT)
			assert_int_equal(t.refusal, f->err);
		if (f->answer == 0)
			continue;
		assert_string_equal(t.call, "io_uring_enter");
		assert_string_equal(t.operation, f->writes ? "io_uring write" : "io_uring read");
	}
}

/* Then readwrite takes over: nothing is in flight, and the prefix is right. */
static void ring_itself_fails(void **state)
{
	const int err = *(const int *)*state;
	reset();
	for (int nth = 1;; nth++) {
		struct transfer t;
		fake.waits = 0;
		fake.seen = false;
		fake.wait_nth = nth;
		fake.wait_err = err;
		fake.drained = 0;
		int r = copy(&t, SIZE);
		if (!fake.seen) {
			done(&t);
			break;
		}
		assert_int_equal(r, RESULT_NEXT);
		assert_int_equal(t.refusal, err);
		assert_int_equal(fake.drained, 1);
		assert_string_equal(t.call, "io_uring_enter");
		assert_int_equal(engine_readwrite.copy(&t), 0);
		assert_int_equal(t.offset, SIZE);
		assert_true(same_bytes("src", "dst"));
		done(&t);
	}
	assert_true(fake.waits >= 12);
}

static void ring_is_refused(void **state)
{
	struct transfer t;
	reset();
	fake.open_err = *(const int *)*state;
	assert_int_equal(copy(&t, 4096), RESULT_NEXT);
	assert_int_equal(t.refusal, fake.open_err);
	assert_int_equal(t.offset, 0);
	assert_non_null(engine_direct.probe());
	done(&t);
}

/* A call of the engine's own, before any piece is on its way. */
static const struct call {
	const char *name;
	int nth;
} calls[] = {{"lseek64", 1},
	     {"fcntl64", 1},
	     {"fcntl64", 2},
	     {"fcntl64 of flags", 1},
	     {"fcntl64 of flags", 2}};

static void call_fails(void **state)
{
	const struct call *call = *state;
	struct transfer t;
	reset();
	fault_set(call->name, call->nth, EIO);
	fault_on();
	int r = copy(&t, 4096);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, -EIO);
	assert_non_null(t.call);
	assert_int_equal(t.offset, 0);
	done(&t);
}

/* Others need less of it. */
static void has_no_memory(void **state)
{
	struct transfer t;
	(void)state;
	reset();
	fault_set("mmap64 of memory", 1, ENOMEM);
	fault_on();
	assert_int_equal(copy(&t, 4096), RESULT_NEXT);
	fault_off();
	assert_int_equal(t.refusal, ENOMEM);
	assert_string_equal(t.call, "mmap");
	assert_int_equal(t.offset, 0);
	done(&t);
}

/* Reads never give a whole block: not a file for direct I/O. */
static void ragged_reads(void **state)
{
	struct transfer t;
	(void)state;
	reset();
	fake.most = 100;
	assert_int_equal(copy(&t, SIZE), RESULT_NEXT);
	assert_int_equal(t.refusal, EINVAL);
	assert_int_equal(t.offset, 0);
	done(&t);
}

static off_t shrunk; /* the size of the source while its middle is read */

static void change_source(off_t at)
{
	if (at == 0)
		need(truncate("src", shrunk) == 0);
	else if (at == 5 << 20)
		write_at("src", shrunk, (size_t)(SIZE - shrunk), 1);
}

/* The last block is not padded on a device. The source is truncated, and then extended before its
 * last piece is read: the tail is that of the first piece that ended early, or there is none. */
static void tail_belongs_to_the_prefix(void **state)
{
	char *memory = io_alloc(PIECES_DEPTH * PIECE_SIZE), bytes[512];
	shrunk = *(const off_t *)*state;
	make_file("whole", SIZE, DENSE, 1);
	int whole = open("whole", O_RDONLY | O_CLOEXEC);
	for (int backwards = 0; backwards < 2; backwards++) {
		reset();
		fake.backwards = backwards;
		fake.before_read = change_source;
		make_file("src", SIZE, DENSE, 1);
		struct transfer t = {.src = open("src", O_RDONLY | O_CLOEXEC),
				     .dst = open("dst", O_RDWR | O_CREAT | O_CLOEXEC, 0600),
				     .end = TRANSFER_TO_EOF};
		struct pieces d = {.t = &t, .align = 512, .size = SIZE};
		for (unsigned i = 0; i < PIECES_DEPTH; i++)
			d.piece[i].buffer = memory + i * PIECE_SIZE;
		d.ring = ring_open(PIECES_DEPTH, memory, PIECES_DEPTH * PIECE_SIZE);
		assert_int_equal(pieces_run(&d), 0);
		ring_close(d.ring);
		off_t end = backwards ? SIZE : shrunk; /* backwards, the change comes last */
		assert_int_equal(t.offset, end / 512 * 512);
		assert_int_equal(d.tail_size, end % 512);
		need(pread(whole, bytes, d.tail_size, t.offset) == (ssize_t)d.tail_size);
		assert_memory_equal(d.tail, bytes, d.tail_size);
		assert_true(same_range("whole", "dst", 0, t.offset));
		done(&t);
	}
	close(whole);
	io_free(memory, PIECES_DEPTH * PIECE_SIZE);
}

static void add(void (*test)(void **), const void *state, const char *name, int err)
{
	case_add(test, state, "%s%s%s", name, err < 0 ? "" : ": ", err < 0 ? "" : errno_name(err));
}

int main(void)
{
	static const size_t mosts[] = {0, 4096, 65536, 10000};
	static const int refused[] = {EPERM, ENOSYS, ENOMEM, EMFILE};
	static const struct fault faults[] = {{false, EIO, -EIO},
					      {true, EIO, -EIO},
					      {true, ENOSPC, -ENOSPC},
					      {true, EDQUOT, -EDQUOT},
					      {false, EINTR, 0},
					      {true, EINTR, 0},
					      {false, EAGAIN, RESULT_NEXT},
					      {true, EAGAIN, RESULT_NEXT},
					      {false, ECANCELED, RESULT_NEXT},
					      {true, ECANCELED, RESULT_NEXT},
					      {false, EPERM, RESULT_NEXT},
					      {true, EPERM, RESULT_NEXT},
					      {false, EINVAL, RESULT_NEXT},
					      {true, EINVAL, RESULT_NEXT},
					      {true, EOPNOTSUPP, RESULT_NEXT},
					      {false, FAULT_ZERO, 0},
					      {true, FAULT_ZERO, -EIO}};
	cases_enter("xfs");
	for (int i = 0; i < 4; i++)
		case_add(copies_all, &mosts[i], "completions of %zu bytes", mosts[i]);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		add(sweep, &faults[i], faults[i].writes ? "write" : "read", faults[i].err);
	for (int i = 0; i < 4; i++)
		add(ring_itself_fails, &refused[i], "the ring fails", refused[i]);
	for (int i = 0; i < 4; i++)
		add(ring_is_refused, &refused[i], "no ring", refused[i]);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		case_add(call_fails, &calls[i], "%s fails, time %d", calls[i].name, calls[i].nth);
	add(has_no_memory, NULL, "no memory", -1);
	add(ragged_reads, NULL, "reads of less than a block", -1);
	static const off_t sizes[] = {(2 << 20) + 700, (2 << 20) + 4096, 2 << 20};
	for (int i = 0; i < 3; i++)
		case_add(tail_belongs_to_the_prefix, &sizes[i],
			 "a device gets no bytes of another offset: source truncated to %jd",
			 (intmax_t)sizes[i]);
	return cases_run("ring");
}

#else

int main(void)
{
	puts("1..0\n# left out: built without liburing");
	return 0;
}

#endif
