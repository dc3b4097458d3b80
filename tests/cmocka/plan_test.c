/* SPDX-License-Identifier: MIT
 * Who goes on after whom: auto after each refusal, at any byte, gives the same bytes as without; a
 * mode asked for by name never does. And the threads that share one file, with one of them failing.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "copy/copy.h"
#include "copy/move.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE        ((off_t)(5 << 20) + 4099)
#define STREAM_SIZE 300007

static const int refusals[] = {ENOSYS, EOPNOTSUPP, EXDEV, EINVAL, EPERM, EACCES, EBADF};
#define REFUSALS (sizeof(refusals) / sizeof(*refusals))

struct run {
	const char *mode, *call;
	int err;
};

static struct fcopy_report report;

static const struct fcopy_step *step_of(const char *engine)
{
	for (size_t i = 0; i < report.steps; i++)
		if (strcmp(report.step[i].engine, engine) == 0)
			return &report.step[i];
	return NULL;
}

/* The far end of a socket: fed from src, or drained into dst, by a thread of the test's own. */
struct far_end {
	pthread_t thread;
	int fd;
};

/* The faults of the copy apply to this thread, too: they make a send short. */
static void send_all(int fd, const char *from, size_t n)
{
	for (ssize_t sent; n > 0; from += sent, n -= (size_t)sent)
		need((sent = send(fd, from, n, 0)) > 0);
}

static void *feed(void *arg)
{
	struct far_end *far = arg;
	static char buf[65536];
	int fd = open("src", O_RDONLY | O_CLOEXEC);
	for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0;)
		send_all(far->fd, buf, (size_t)n);
	close(fd);
	shutdown(far->fd, SHUT_WR);
	return NULL;
}

static void *drain(void *arg)
{
	struct far_end *far = arg;
	static char buf[65536];
	FILE *f = fopen("dst", "we"); /* stdio's writes are none of those that are cut short */
	need(f);
	for (ssize_t n; (n = recv(far->fd, buf, sizeof(buf), 0)) > 0;)
		need(fwrite(buf, 1, (size_t)n, f) == (size_t)n);
	fclose(f);
	return NULL;
}

/* From src to dst with a socket on one side. */
static int copy_by_socket(bool from)
{
	struct fcopy_options options = {.api = FCOPY_API, .mode = fcopy_mode_find("auto")};
	struct far_end far;
	char name[32];
	int fd[2];
	unlink("dst");
	need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	far.fd = fd[1];
	snprintf(name, sizeof(name), "/dev/fd/%d", fd[0]);
	need(pthread_create(&far.thread, NULL, from ? feed : drain, &far) == 0);
	fault_on();
	int r = fcopy_copy(from ? name : "src", from ? "dst" : name, &options, &report);
	fault_off();
	close(fd[0]);
	pthread_join(far.thread, NULL);
	close(fd[1]);
	return r;
}

/* The first refusal comes after N calls, with bytes on their way. */
static void stream_once(void *arg)
{
	const struct run *run = arg;
	if (strcmp(run->mode, "sendfile") == 0)
		fault_also("splice", EINVAL);
	fault_short(16384);
	for (int from = 0; from < (strcmp(run->mode, "splice") == 0 ? 2 : 1); from++) {
		if (from > 0 && fault_seen())
			fault_set(run->call, fault_calls(), run->err); /* the same again */
		assert_int_equal(copy_by_socket(from), 0);
		assert_int_equal(report.bytes, STREAM_SIZE);
		assert_int_equal(report.data, STREAM_SIZE);
		assert_true(same_bytes("src", "dst"));
		if (!fault_seen())
			continue;
		const struct fcopy_step *step = step_of(run->mode);
		assert_non_null(step);
		assert_int_equal(step->refusal, run->err);
		assert_non_null(step->refusal_call);
		assert_non_null(
		    step_of(strcmp(run->mode, "splice") == 0 ? "sendfile" : "readwrite"));
	}
}

static void stream_falls_back(void **state)
{
	const struct run *run = *state;
	make_file("src", STREAM_SIZE, DENSE, 1);
	assert_in_range(fault_sweep(run->call, run->err, stream_once, *state), 19, 400);
}

/* A mode by name: the refusal is the error, nothing else moves a byte, nothing is left. */
static void mode_once(void *arg)
{
	const struct run *run = arg;
	struct fcopy_options options = {.api = FCOPY_API, .mode = fcopy_mode_find(run->mode)};
	unlink("dst");
	fault_short(1 << 20);
	fault_on();
	int r = fcopy_copy("src", "dst", &options, &report);
	fault_off();
	assert_int_equal(report.steps, 1);
	assert_string_equal(report.step[0].engine, run->mode);
	if (!fault_seen()) {
		assert_int_equal(r, 0);
		assert_true(same_bytes("src", "dst"));
		return;
	}
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, run->err);
	assert_string_equal(report.error.engine, run->mode);
	assert_int_equal(report.error.advice, FCOPY_ADVICE_AUTO);
	assert_non_null(report.error.call);
	assert_int_equal(report.step[0].refusal, run->err);
	assert_false(exists("dst"));
}

static void mode_never_falls_back(void **state)
{
	const struct run *run = *state;
	make_file("src", SIZE, DENSE, 1);
	fault_sweep(run->call, run->err, mode_once, *state);
}

/* splice reports the end too early, and the read that checks it is not permitted: the old file
 * stays. */
static void prefix_is_no_success(void **state)
{
	const int err = *(const int *)*state;
	struct fcopy_options options = {.api = FCOPY_API, .mode = fcopy_mode_find("splice")};
	make_file("src", SIZE, DENSE, 1);
	make_file("dst", 100, DENSE, 2);
	make_file("old", 100, DENSE, 2);
	fault_set("splice", 3, FAULT_ZERO);
	fault_also("pread64", err);
	fault_on();
	int r = fcopy_copy("src", "dst", &options, &report);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, err);
	assert_true(same_bytes("old", "dst"));
}

/* A refusal without an errno is a failure, too. */
static void refusal_without_errno(void **state)
{
	const struct fcopy_options options = {0};
	struct copy c = {.options = &options, .report = &report, .mode = fcopy_modes()};
	const struct transfer t = {.refusal = 0};
	(void)state;
	memset(&report, 0, sizeof(report));
	assert_true(move_refused(&c, &engine_splice, &t) < 0);
	assert_int_not_equal(report.error.err, 0);
}

/* Calls that only save time: auto and the modes that make them go on without. */
static void optional_call_fails(void **state)
{
	const struct run *run = *state;
	struct fcopy_options options = {.api = FCOPY_API, .mode = fcopy_mode_find(run->mode)};
	make_file("src", SIZE, DENSE, 1);
	make_file("dst", 100, DENSE, 2);
	if (strcmp(run->call, "fallocate64") == 0)
		unlink("dst"); /* only a new file is preallocated */
	fault_set(run->call, 1 + FAULT_EVERY, run->err);
	fault_on();
	int r = fcopy_copy("src", "dst", &options, &report);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	assert_true(same_bytes("src", "dst"));
}

/* The limits of the public header. */
static void limits_are_checked(void **state)
{
	const struct {
		struct fcopy_options options;
		bool valid;
	} cases[] = {
	    {{.api = FCOPY_API, .threads = FCOPY_THREADS_MAX}, true},
	    {{.api = FCOPY_API, .threads = FCOPY_THREADS_MAX + 1}, false},
	    {{.api = FCOPY_API, .threads = UINT_MAX}, false},
	    {{.api = FCOPY_API, .buffer_size = 1}, true},
	    {{.api = FCOPY_API, .buffer_size = FCOPY_BUFFER_MAX + 1}, false},
	    {{.api = FCOPY_API, .buffer_size = (size_t)1 << 40}, false},
	};
	(void)state;
	make_file("src", 100, DENSE, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fcopy_options options = cases[i].options;
		options.mode = fcopy_mode_find("parallel");
		unlink("dst");
		int r = fcopy_copy("src", "dst", &options, &report);
		assert_int_equal(r, cases[i].valid ? 0 : -1);
		assert_int_equal(report.error.err, cases[i].valid ? 0 : EINVAL);
		assert_int_equal(exists("dst"), cases[i].valid);
	}
}

/* A clone that is refused is no failure for auto, and the copy is a copy. */
static void clone_is_refused(void **state)
{
	int err = *(const int *)*state;
	struct fcopy_options options = {.api = FCOPY_API};
	make_file("src", SIZE, DENSE, 1);
	fault_set("ioctl", FAULT_EVERY + 1, err);
	fault_on();
	int r = fcopy_copy("src", "dst", &options, &report);
	fault_off();
	assert_int_equal(r, 0);
	assert_false(report.cloned);
	assert_true(same_bytes("src", "dst"));
	assert_int_equal(step_of("reflink")->refusal, err);
	assert_string_equal(step_of("reflink")->refusal_call, "ioctl(FICLONE)");
	options.reflink = FCOPY_WHEN_ALWAYS;
	fault_on();
	r = fcopy_copy("src", "dst2", &options, &report);
	fault_off();
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, err);
	assert_false(exists("dst2"));
}

/* One of several threads fails: that error is the one, and what lies before the offset is right. */
static void threads_once(void *arg)
{
	const struct run *run = arg;
	unlink("dst");
	struct transfer t = {.src = open("src", O_RDONLY | O_CLOEXEC),
			     .dst = open("dst", O_RDWR | O_CREAT | O_CLOEXEC, 0600),
			     .src_positional = true,
			     .dst_positional = true,
			     .offset = 4096,
			     .end = SIZE,
			     .buffer_size = 100000};
	fault_on();
	int r = ranges_run(&engine_readwrite, &t, 4, false, NULL);
	fault_off();
	/* The caller's memory comes first; a thread without any leaves its work to the others. */
	bool soft = run->err == EINTR || strstr(run->call, "pthread") ||
		    (strstr(run->call, "memory") && fault_calls() > 1);
	assert_int_equal(r, fault_seen() && !soft ? -run->err : 0);
	assert_true(r ? t.offset >= 4096 && t.offset <= SIZE : t.offset == SIZE);
	assert_true(same_range("src", "dst", 4096, t.offset));
	if (r)
		assert_non_null(t.call);
	close(t.src);
	close(t.dst);
}

static void threads_fail(void **state)
{
	const struct run *run = *state;
	make_file("src", SIZE, DENSE, 1);
	fault_sweep(run->call, run->err, threads_once, *state);
}

/* A source that is shorter than the range: the threads stop there. */
static void threads_see_the_end(void **state)
{
	(void)state;
	make_file("src", 3000000, DENSE, 1);
	struct transfer t = {.src = open("src", O_RDONLY | O_CLOEXEC),
			     .dst = open("dst", O_RDWR | O_CREAT | O_CLOEXEC, 0600),
			     .src_positional = true,
			     .dst_positional = true,
			     .end = 10 << 20};
	assert_int_equal(ranges_run(&engine_readwrite, &t, 3, false, NULL), 0);
	assert_int_equal(t.offset, 3000000);
	assert_true(same_bytes("src", "dst"));
	close(t.src);
	close(t.dst);
}

int main(void)
{
	static struct run streams[2 * REFUSALS], modes[4 * REFUSALS];
	static const struct run threads[] = {{"", "pread64", EIO},
					     {"", "pwrite64", ENOSPC},
					     {"", "pread64", EINTR},
					     {"", "pwrite64", EAGAIN},
					     {"", "mmap64 of memory", ENOMEM},
					     {"", "pthread_create", EAGAIN}};
	static const struct run kinds[] = {{"sendfile", "sendfile64", 0},
					   {"splice", "splice", 0},
					   {"copy_file_range", "copy_file_range", 0},
					   {"mmap", "mmap64", 0}};
	cases_enter("tmpfs");
	for (size_t i = 0; i < 4 * REFUSALS; i++) {
		modes[i] = kinds[i / REFUSALS];
		modes[i].err = refusals[i % REFUSALS];
		case_add(mode_never_falls_back, &modes[i], "mode %s refused with %s", modes[i].mode,
			 errno_name(modes[i].err));
		if (i >= 2 * REFUSALS)
			continue;
		streams[i] = modes[i];
		case_add(stream_falls_back, &streams[i], "auto goes on after %s: %s",
			 streams[i].mode, errno_name(streams[i].err));
	}
	for (size_t i = 0; i < REFUSALS; i++)
		case_add(clone_is_refused, &refusals[i], "clone refused with %s",
			 errno_name(refusals[i]));
	static const int denied[] = {EPERM, EACCES, ENOSYS, EINVAL};
	for (int i = 0; i < 4; i++)
		case_add(prefix_is_no_success, &denied[i], "splice: a prefix is no success: %s",
			 errno_name(denied[i]));
	case_add(refusal_without_errno, NULL, "a refusal without an errno");
	case_add(limits_are_checked, NULL, "limits of threads and buffer_size");
	static struct run optional[6];
	for (int i = 0; i < 6; i++) {
		optional[i] = (struct run){i < 3 ? "parallel" : "auto",
					   i < 3 ? "fallocate64" : "statx", denied[i % 3]};
		case_add(optional_call_fails, &optional[i], "%s is optional: %s", optional[i].call,
			 errno_name(optional[i].err));
	}
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++)
		case_add(threads_fail, &threads[i], "threads: %s fails with %s", threads[i].call,
			 errno_name(threads[i].err));
	case_add(threads_see_the_end, NULL, "threads see the end");
	return cases_run("plan");
}
