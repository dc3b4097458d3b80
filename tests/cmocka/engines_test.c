/* SPDX-License-Identifier: MIT
 * Every system call of every engine fails, at the first and at each later time, with each errno of
 * interest: the answer, the offset, and the bytes before it.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "engines/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SIZE  20001
#define SHORT 4096 /* bytes that a call moves at most, so that there are several */

enum outcome { GOES_ON, NEXT, FAILS };

static const int real[] = {EIO, ENOSPC, EDQUOT, ENOMEM, EPIPE, ECONNRESET, -1};
static const int storage[] = {EIO, ENOSPC, EDQUOT, ENOMEM, EPERM, -1};
static const int not_cloneable[] = {EIO, ENOSPC, EDQUOT, ENOMEM, -1};
static const int all_real[] = {EIO,    ENOSPC, EDQUOT, EFBIG,      ENOMEM, EPERM,
			       EINVAL, EBADF,  ENOSYS, EOPNOTSUPP, EROFS,  -1};
static const int refusals[] = {ENOSYS, EOPNOTSUPP, EXDEV,   EINVAL, EBADF, EPERM,
			       EACCES, ENOENT,     ETXTBSY, EFBIG,  -1};
static const int interrupted[] = {EINTR, -1};
static const int not_ready[] = {EAGAIN, -1}; /* of a regular file: poll(2) could only spin */
static const int exhausted[] = {EMFILE, ENFILE, ENOMEM, -1};
static const int not_mapped[] = {EFAULT, -1};
static const int no_memory[] = {ENOMEM, -1};
static const int not_mappable[] = {ENODEV, EACCES, EPERM, EINVAL, -1};
static const int not_allowed[] = {EPERM, EBUSY, -1};
static const int not_cloned[] = {EOPNOTSUPP, EXDEV,  EINVAL,  ENOTTY, EPERM,
				 EBADF,      EISDIR, ETXTBSY, ESPIPE, -1};

static const struct row {
	const struct engine *engine;
	const char *call;
	const int *errs;
	enum outcome outcome;
	bool stream; /* by the descriptors' own positions */
} rows[] = {
    {&engine_readwrite, "pread64", all_real, FAILS, false},
    {&engine_readwrite, "pread64", interrupted, GOES_ON, false},
    {&engine_readwrite, "pread64", not_ready, FAILS, false},
    {&engine_readwrite, "pwrite64", all_real, FAILS, false},
    {&engine_readwrite, "pwrite64", interrupted, GOES_ON, false},
    {&engine_readwrite, "pwrite64", not_ready, FAILS, false},
    {&engine_readwrite, "read", all_real, FAILS, true},
    {&engine_readwrite, "read", interrupted, GOES_ON, true},
    {&engine_readwrite, "read", not_ready, FAILS, true},
    {&engine_readwrite, "write", all_real, FAILS, true},
    {&engine_readwrite, "write", interrupted, GOES_ON, true},
    {&engine_readwrite, "write", not_ready, FAILS, true},
    {&engine_readwrite, "mmap64 of memory", no_memory, FAILS, false},
    {&engine_sendfile, "sendfile64", real, FAILS, false},
    {&engine_sendfile, "sendfile64", interrupted, GOES_ON, false},
    {&engine_sendfile, "sendfile64", not_ready, FAILS, false},
    {&engine_sendfile, "sendfile64", refusals, NEXT, false},
    {&engine_sendfile, "sendfile64", real, FAILS, true},
    {&engine_sendfile, "sendfile64", interrupted, GOES_ON, true},
    {&engine_sendfile, "sendfile64", not_ready, FAILS, true},
    {&engine_sendfile, "sendfile64", refusals, NEXT, true},
    {&engine_sendfile, "lseek64", storage, FAILS, false},
    {&engine_sendfile, "pread64", storage, FAILS, false},
    {&engine_splice, "splice", real, FAILS, false},
    {&engine_splice, "splice", interrupted, GOES_ON, false},
    {&engine_splice, "splice", not_ready, FAILS, false},
    {&engine_splice, "splice", refusals, NEXT, false},
    {&engine_splice, "splice", interrupted, GOES_ON, true},
    {&engine_splice, "splice", not_ready, FAILS, true},
    {&engine_splice, "splice", refusals, NEXT, true},
    {&engine_splice, "pread64", storage, FAILS, false},
    {&engine_splice, "pread64", storage, FAILS, true},
    {&engine_splice, "pipe2", exhausted, NEXT, false},
    {&engine_splice, "fcntl64", not_allowed, GOES_ON, false},
    {&engine_copy_file_range, "copy_file_range", real, FAILS, false},
    {&engine_copy_file_range, "copy_file_range", interrupted, GOES_ON, false},
    {&engine_copy_file_range, "copy_file_range", not_ready, FAILS, false},
    {&engine_copy_file_range, "copy_file_range", refusals, NEXT, false},
    {&engine_copy_file_range, "pread64", storage, FAILS, false},
    {&engine_mmap, "mmap64", no_memory, FAILS, false},
    {&engine_mmap, "mmap64", interrupted, GOES_ON, false},
    {&engine_mmap, "mmap64", not_ready, FAILS, false},
    {&engine_mmap, "mmap64", not_mappable, NEXT, false},
    {&engine_mmap, "pwrite64", all_real, FAILS, false},
    {&engine_mmap, "pwrite64", not_mapped, FAILS, false},
    {&engine_mmap, "pwrite64", interrupted, GOES_ON, false},
    {&engine_mmap, "pwrite64", not_ready, FAILS, false},
    {&engine_mmap, "write", all_real, FAILS, true},
    {&engine_mmap, "fstat64", storage, FAILS, false},
    {&engine_mmap, "pread64", storage, FAILS, false},
    {&engine_reflink, "ioctl", not_cloneable, FAILS, false},
    {&engine_reflink, "ioctl", not_cloned, NEXT, false},
    {&engine_reflink, "ioctl", interrupted, GOES_ON, false},
    {&engine_reflink, "fstat64", storage, FAILS, false},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	int err;
	bool clones; /* the file system can */
};

static struct transfer open_both(bool stream)
{
	struct transfer t = {.src = open("src", O_RDONLY | O_CLOEXEC),
			     .dst = open("dst", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
			     .src_positional = !stream,
			     .dst_positional = !stream,
			     .end = TRANSFER_TO_EOF,
			     .buffer_size = SHORT};
	need(t.src >= 0 && t.dst >= 0);
	return t;
}

static void check_answer(const struct run *run, const struct transfer *t, int answer)
{
	enum outcome want = fault_seen() ? run->row->outcome : GOES_ON;
	if (want == GOES_ON && run->row->engine == &engine_reflink && !run->clones)
		want = NEXT;
	if (want == GOES_ON) {
		assert_int_equal(answer, 0);
		assert_int_equal(t->offset, SIZE);
		return;
	}
	assert_int_equal(answer, want == NEXT ? RESULT_NEXT : -run->err);
	assert_non_null(t->call);
	if (want == NEXT)
		assert_int_not_equal(t->refusal, 0);
	if (fault_seen() && run->row->outcome == NEXT)
		assert_int_equal(t->refusal, run->err);
}

/* One copy with one fault. What is there up to the offset is right, and the copy can go on. */
static void once(void *arg)
{
	const struct run *run = arg;
	struct transfer t = open_both(run->row->stream);
	/* an engine for mappings has a source with offsets at least */
	t.src_positional |= run->row->engine == &engine_mmap;
	fault_short(SHORT);
	fault_on();
	int r = run->row->engine->copy(&t);
	fault_off();
	check_answer(run, &t, r);
	assert_in_range(t.offset, 0, SIZE);
	assert_true(same_range("src", "dst", 0, t.offset));
	if (r == RESULT_NEXT || t.dst_positional) {
		assert_int_equal(engine_readwrite.copy(&t), 0);
		assert_int_equal(t.offset, SIZE);
		assert_true(same_bytes("src", "dst"));
	}
	close(t.src);
	close(t.dst);
}

static void sweep(void **state)
{
	struct run *run = *state;
	make_file("src", SIZE, DENSE, 1);
	struct transfer t = open_both(false);
	run->clones = engine_reflink.copy(&t) == 0;
	close(t.src);
	close(t.dst);
	fault_sweep(run->row->call, run->err, once, run);
}

/* Every call moves one byte: slow, but right. */
static void one_byte_at_a_time(void **state)
{
	const struct engine *engine = *state;
	make_file("src", 300, DENSE, 1);
	struct transfer t = open_both(false);
	t.buffer_size = 0;
	fault_short(1);
	fault_on();
	int r = engine->copy(&t);
	fault_off();
	assert_int_equal(r, 0);
	assert_int_equal(t.offset, 300);
	assert_in_range(t.io.calls, engine == &engine_splice ? 600 : 300, 1000);
	assert_true(same_bytes("src", "dst"));
	close(t.src);
	close(t.dst);
}

/* A call that answers 0 although there is more: the end for read, which has to be believed, and a
 * refusal of the others. The bytes before are right in any case. */
static void sees_a_zero(void **state)
{
	const struct row *row = *state;
	make_file("src", SIZE, DENSE, 1);
	for (int nth = 1; nth <= 3; nth++) {
		struct transfer t = open_both(false);
		fault_short(SHORT);
		fault_set(row->call, nth + FAULT_EVERY, FAULT_ZERO);
		fault_on();
		int r = row->engine->copy(&t);
		fault_off();
		assert_true(fault_seen());
		/* each second splice empties the pipe, in which there are bytes */
		bool emptying = row->engine == &engine_splice && nth % 2 == 0;
		enum outcome want = emptying ? FAILS : row->outcome;
		assert_int_equal(r, want == NEXT ? RESULT_NEXT : want == FAILS ? -EIO : 0);
		assert_true(want != NEXT || t.refusal != 0);
		assert_true(t.offset < SIZE);
		assert_true(same_range("src", "dst", 0, t.offset));
		close(t.src);
		close(t.dst);
	}
}

static const struct row zeros[] = {
    {&engine_readwrite, "pread64", NULL, GOES_ON, false},
    {&engine_readwrite, "pwrite64", NULL, FAILS, false},
    {&engine_copy_file_range, "copy_file_range", NULL, NEXT, false},
    {&engine_sendfile, "sendfile64", NULL, NEXT, false},
    {&engine_splice, "splice", NULL, NEXT, false},
};

/* The call returns 0 too early, and the read that checks the end fails: never a successful prefix.
 */
static void end_cannot_be_checked(void **state)
{
	const struct row *row = *state;
	make_file("src", SIZE, DENSE, 1);
	for (const int *err = all_real; *err >= 0; err++) {
		struct transfer t = open_both(false);
		fault_short(SHORT);
		fault_set(row->call, 3, FAULT_ZERO);
		fault_also("pread64", *err);
		fault_on();
		int r = row->engine->copy(&t);
		fault_off();
		assert_true(fault_seen());
		assert_int_equal(r, -*err);
		assert_string_equal(t.call, "pread");
		assert_true(same_range("src", "dst", 0, t.offset));
		close(t.src);
		close(t.dst);
	}
}

/* The cancel flag turns an interruption into the end, with the bytes until then. */
static void is_cancelled(void **state)
{
	const struct row *row = *state;
	static const volatile int cancel = 1;
	make_file("src", SIZE, DENSE, 1);
	struct transfer t = open_both(row->stream);
	t.io.cancel = &cancel;
	fault_short(SHORT);
	fault_set(row->call, 1, EINTR);
	fault_on();
	int r = row->engine->copy(&t);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, -EINTR);
	assert_int_equal(t.offset, 0);
	close(t.src);
	close(t.dst);
}

/* The destination refuses what is in splice's pipe already, and then it cannot be rescued, or the
 * copy is cancelled. */
static void rescue_fails(void **state)
{
	static const volatile int cancel = 1;
	const char *call = *state;
	make_file("src", SIZE, DENSE, 1);
	struct transfer t = open_both(true);
	t.dst_positional = strcmp(call, "pwrite64") == 0;
	t.io.cancel = *call ? NULL : &cancel;
	fault_set("splice", FAULT_EVERY + 2, EINVAL);
	fault_also(call, EIO);
	fault_on();
	int r = engine_splice.copy(&t);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, *call ? -EIO : -EINTR);
	assert_int_equal(t.offset, *call ? 0 : SHORT);
	if (*call)
		assert_string_equal(t.call, t.dst_positional ? "pwrite" : call);
	close(t.src);
	close(t.dst);
}

/* Half a window is written when the mapping fails: the rest is mapped again. */
static void mapping_fails_for_a_moment(void **state)
{
	(void)state;
	make_file("src", SIZE, DENSE, 1);
	struct transfer t = open_both(false);
	fault_short(SHORT / 4);
	fault_set("pwrite64", 3, EFAULT);
	fault_on();
	int r = engine_mmap.copy(&t);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	assert_int_equal(t.offset, SIZE);
	assert_true(same_bytes("src", "dst"));
	close(t.src);
	close(t.dst);
}

/* An engine without a row would pass untested. */
static void has_rows(void **state)
{
	const struct engine *engine = *state;
	size_t count = 0;
	for (size_t i = 0; i < ROWS; i++)
		count += rows[i].engine == engine;
	if (count == 0)
		fail_msg("engine %s has 0 rows, not 1 or more: add its calls to rows[]",
			 engine->name);
}

int main(void)
{
	static struct run runs[ROWS * 16];
	cases_enter("xfs");
	for (const struct engine *const *e = engine_table; *e; e++)
		if (*e != &engine_direct) /* uring_test.c fails its completions */
			case_add(has_rows, *e, "%s: has rows", (*e)->name);
	size_t n = 0;
	for (size_t i = 0; i < ROWS; i++)
		for (const int *err = rows[i].errs; *err >= 0; err++) {
			runs[n] = (struct run){.row = &rows[i], .err = *err};
			case_add(sweep, &runs[n++], "%s: %s fails with %s%s", rows[i].engine->name,
				 rows[i].call, errno_name(*err), rows[i].stream ? ", stream" : "");
		}
	for (size_t i = 0; i < sizeof(zeros) / sizeof(*zeros); i++) {
		case_add(sees_a_zero, &zeros[i], "%s: %s answers 0", zeros[i].engine->name,
			 zeros[i].call);
		if (zeros[i].outcome == NEXT)
			case_add(end_cannot_be_checked, &zeros[i], "%s: the end cannot be checked",
				 zeros[i].engine->name);
	}
	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].errs == interrupted)
			case_add(is_cancelled, &rows[i], "%s: cancelled in %s%s",
				 rows[i].engine->name, rows[i].call,
				 rows[i].stream ? ", stream" : "");
		if (i == 0 || rows[i].engine != rows[i - 1].engine)
			if (rows[i].engine != &engine_reflink && rows[i].engine != &engine_mmap)
				case_add(one_byte_at_a_time, rows[i].engine, "%s: byte by byte",
					 rows[i].engine->name);
	}
	case_add(rescue_fails, "read", "splice: the pipe cannot be read");
	case_add(rescue_fails, "", "splice: cancelled while the pipe is emptied");
	case_add(rescue_fails, "write", "splice: what was in the pipe cannot be written");
	case_add(rescue_fails, "pwrite64", "splice: nor at an offset");
	case_add(mapping_fails_for_a_moment, NULL, "mmap: the mapping fails for a moment");
	return cases_run("engines");
}
