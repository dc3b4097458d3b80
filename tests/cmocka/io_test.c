/* SPDX-License-Identifier: MIT
 * The loops around read and write: interruptions, descriptors that are not ready, short counts.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "io/hash.h"
#include "io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define SIZE 1000

static char data[SIZE], back[SIZE];

static int open_file(void)
{
	int fd = open("file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	need(fd >= 0);
	fill(data, SIZE, 0, 1);
	return fd;
}

/* What was written is in the file, and *done is its length. */
static void write_once(void *arg)
{
	int err = *(const int *)arg, fd = open_file();
	struct io io = {0};
	size_t done = 12345;
	fault_short(100);
	fault_on();
	int r = io_write_all(&io, fd, data, SIZE, 0, &done);
	fault_off();
	bool soft = err == EINTR;
	assert_errno(r, fault_seen() && !soft ? (err == FAULT_ZERO ? -EIO : -err) : 0);
	if (r == 0)
		assert_int_equal(done, SIZE);
	else
		assert_in_range(done, 0, SIZE - 100);
	assert_int_equal(done % 100, 0);
	assert_int_equal(pread(fd, back, SIZE, 0), done);
	assert_memory_equal(data, back, done);
	assert_in_range(io.calls, done / 100, 11);
	close(fd);
}

static void writes_all(void **state)
{
	assert_int_equal(fault_sweep("pwrite64", *(const int *)*state, write_once, *state), 10);
}

/* The same at the descriptor's position. */
static void writes_at_the_position(void **state)
{
	(void)state;
	struct io io = {0};
	size_t done;
	int fd = open_file();
	need(lseek(fd, 10, SEEK_SET) == 10);
	fault_short(7);
	fault_set("write", 3, EINTR);
	fault_on();
	assert_int_equal(io_write_all(&io, fd, data, SIZE, IO_AT_POSITION, &done), 0);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(done, SIZE);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), SIZE + 10);
	assert_int_equal(pread(fd, back, SIZE, 10), SIZE);
	assert_memory_equal(data, back, SIZE);
	close(fd);
}

static void reads_once(void **state)
{
	int err = *(const int *)*state, fd = open_file();
	bool soft = err == EINTR;
	struct io io = {0};
	need(write(fd, data, SIZE) == SIZE);
	fault_set("pread64", 1, err);
	fault_on();
	ssize_t got = io_read(&io, fd, back, SIZE, 500);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(got, soft ? 500 : err == FAULT_ZERO ? 0 : -err);
	assert_int_equal(io.calls, soft ? 2 : 1);
	if (soft)
		assert_memory_equal(data + 500, back, 500);
	close(fd);
}

static void reads_at_the_position(void **state)
{
	(void)state;
	struct io io = {0};
	int fd = open_file();
	need(write(fd, data, SIZE) == SIZE && lseek(fd, 900, SEEK_SET) == 900);
	assert_int_equal(io_read(&io, fd, back, SIZE, IO_AT_POSITION), 100);
	assert_memory_equal(data + 900, back, 100);
	assert_int_equal(io_read(&io, fd, back, SIZE, IO_AT_POSITION), 0);
	close(fd);
}

/* An interruption ends the loops only when the flag is set. */
static void cancels(void **state)
{
	const char *call = *state;
	const volatile int cancel = 1;
	struct io io = {.cancel = &cancel};
	size_t done = 1;
	int fd = open_file();
	fault_set(call, 1, EINTR);
	fault_on();
	int r = strcmp(call, "pread64") == 0 ? (int)io_read(&io, fd, back, SIZE, 0)
		: strcmp(call, "poll") == 0  ? io_wait(&io, fd, POLLIN)
					     : io_write_all(&io, fd, data, SIZE, 0, &done);
	fault_off();
	assert_int_equal(fault_seen(), strcmp(call, "poll") != 0); /* it does not even begin */
	assert_errno(r, -EINTR);
	assert_int_equal(io.calls, strcmp(call, "poll") == 0 ? 0 : 1);
	assert_true(io_cancelled(&io));
	close(fd);
}

static void waits(void **state)
{
	(void)state;
	int end[2];
	const volatile int cancel = 0;
	struct io io = {.timeout_ms = 20, .cancel = &cancel};
	need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end) == 0);
	double start = io_now();
	assert_errno(io_wait(&io, end[0], POLLIN), -ETIMEDOUT);
	assert_true(io_now() - start >= 0.019);
	assert_errno(io_read(&io, end[0], back, 1, IO_AT_POSITION), -ETIMEDOUT);
	fault_set("poll", 1, ENOMEM);
	fault_on();
	assert_errno(io_wait(&io, end[0], POLLIN), -ENOMEM);
	fault_off();
	need(write(end[1], "x", 1) == 1);
	fault_set("poll", 1, EINTR);
	fault_on();
	assert_int_equal(io_wait(&io, end[0], POLLIN), 0);
	fault_off();
	assert_int_equal(fault_calls(), 2);
	close(end[0]);
	close(end[1]);
}

/* A socket that poll(2) reports ready and that still returns EAGAIN: the timeout and the cancel
 * flag end the wait, and the processor rests. */
static void ready_but_not_readable(void **state)
{
	(void)state;
	int end[2];
	volatile int cancel = 0;
	struct io io = {.timeout_ms = 200, .cancel = &cancel};
	need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end) == 0);
	need(write(end[1], "x", 1) == 1);
	fault_set("read", 1 + FAULT_EVERY, EAGAIN);
	fault_on();
	double start = io_now();
	assert_errno(io_read(&io, end[0], back, 1, IO_AT_POSITION), -ETIMEDOUT);
	assert_true(io_now() - start >= 0.19);
	assert_in_range(io.calls, 2, 250);
	cancel = 1;
	assert_errno(io_read(&io, end[0], back, 1, IO_AT_POSITION), -EINTR);
	fault_off();
	cancel = 0;
	assert_int_equal(io_read(&io, end[0], back, 1, IO_AT_POSITION), 1);
	assert_int_equal(io.waits, 0);
	close(end[0]);
	close(end[1]);
}

/* The timeout starts over when bytes have moved. */
static void timeout_is_from_the_last_byte(void **state)
{
	(void)state;
	int end[2];
	struct io io = {.timeout_ms = 300};
	need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end) == 0);
	need(write(end[1], "xx", 2) == 2);
	for (int i = 0; i < 2; i++) {
		fault_set("read", 1, EAGAIN);
		fault_on();
		assert_int_equal(io_read(&io, end[0], back, 1, IO_AT_POSITION), 1);
		fault_off();
		usleep(200000);
	}
	close(end[0]);
	close(end[1]);
}

/* The timeout applies to connections: a nonblocking pipe has none either. */
static void pipe_has_no_timeout(void **state)
{
	(void)state;
	int pipe[2];
	struct io io = {.timeout_ms = 20};
	need(pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0);
	pid_t child = fork();
	need(child >= 0);
	if (child == 0) {
		usleep(200000);
		_exit(write(pipe[1], "x", 1) != 1);
	}
	assert_int_equal(io_read(&io, pipe[0], back, 1, IO_AT_POSITION), 1);
	need(waitpid(child, NULL, 0) == child);
	close(pipe[0]);
	close(pipe[1]);
}

static void has_aligned_memory(void **state)
{
	(void)state;
	char *p = io_alloc(12345);
	assert_non_null(p);
	assert_int_equal((uintptr_t)p % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	memset(p, 1, 12345);
	io_free(p, 12345);
	io_free(NULL, 1);
	fault_set("mmap64 of memory", 1, ENOMEM);
	fault_on();
	p = io_alloc(1);
	fault_off();
	assert_null(p);
	assert_errno(errno, ENOMEM);
}

static uint64_t mapped(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	need(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages;
}

/* In huge pages, of which none but the last is wasted, and all of it given back. */
static void has_huge_memory(void **state)
{
	static const size_t sizes[] = {(size_t)2 << 20, 5000001};
	(void)state;
	if (getenv("UNDER")) /* valgrind may map memory at any time */
		skip();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t before = mapped();
		char *p = io_alloc(sizes[i]);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % ((size_t)2 << 20), 0);
		assert_true((mapped() - before) * (uint64_t)sysconf(_SC_PAGESIZE) <
			    sizes[i] + ((size_t)2 << 20));
		memset(p, 1, sizes[i]);
		io_free(p, sizes[i]);
		assert_int_equal(mapped(), before);
	}
}

/* The check value of CRC-64/XZ, and the same from any pieces. */
static void sums_as_published(void **state)
{
	char bytes[300];
	(void)state;
	assert_true(sum_add(0, "123456789", 9) == 0x995dc9bbdf1939fau);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 37);
	const uint64_t whole = sum_add(0, bytes, sizeof(bytes));
	for (size_t n = 0; n <= sizeof(bytes); n++)
		assert_true(sum_add(sum_add(0, bytes, n), bytes + n, sizeof(bytes) - n) == whole);
	bytes[200] ^= 1;
	assert_true(sum_add(0, bytes, sizeof(bytes)) != whole);
}

/* What one call answers while another one, and perhaps every call of a second name, fails. */
struct answer {
	const char *what;
	int (*ask)(int fd, struct failure *);
	const char *call;
	int err;
	const char *also;
	int also_err, wanted;
	const char *reported; /* the call that the failure names; NULL: none is asked for */
};

static int ask_reopen(int fd, struct failure *fail)
{
	char buffer[4096];
	(void)fail;
	const int again = io_reopen_directory(fd);
	if (again < 0)
		return again;
	assert_int_not_equal(again, fd);
	assert_true(getdents64(again, buffer, sizeof(buffer)) > 0); /* from its start */
	close(again);
	return 0;
}

static int ask_close(int fd, struct failure *fail)
{
	return io_close_duplicate(fd, fail);
}

static int ask_written(int fd, struct failure *fail)
{
	return io_check_written(fd, false, fail);
}

static int ask_written_after_close(int fd, struct failure *fail)
{
	return io_check_written(fd, true, fail);
}

static int ask_flush(int fd, struct failure *fail)
{
	(void)fail;
	return io_flush_directory(fd);
}

static int ask_truncate(int fd, struct failure *fail)
{
	(void)fail;
	const int r = io_truncate(fd, 10);
	assert_int_equal(lseek(fd, 0, SEEK_END), r == 0 ? 10 : SIZE);
	return r;
}

static int ask_punch(int fd, struct failure *fail)
{
	(void)fail;
	const bool punched = io_punch(fd, 0, SIZE);
	need(pread(fd, back, SIZE, 0) == SIZE);
	assert_int_equal(back[0] == 0 && back[SIZE - 1] == 0, punched);
	return punched;
}

/* Mode and time are those of the descriptor's file if the answer is 0. */
static int ask_chmod(int fd, struct failure *fail)
{
	(void)fail;
	const int r = io_chmod(fd, 0640);
	const int err = errno;
	assert_int_equal(mode_of("file") == 0640, r == 0);
	return r < 0 ? -err : 0;
}

static int ask_times(int fd, struct failure *fail)
{
	const struct timespec times[2] = {{1000, 1}, {2000, 2}};
	struct stat st;
	(void)fail;
	const int r = io_set_times(fd, times), err = errno;
	need(fstat(fd, &st) == 0);
	assert_int_equal(st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 2, r == 0);
	return r < 0 ? -err : 0;
}

static const struct answer answers[] = {
    {"reopen", ask_reopen, "", 0, "", 0, 0, NULL},
    {"reopen", ask_reopen, "openat64", EMFILE, "", 0, -EMFILE, NULL},
    {"reopen", ask_reopen, "openat64", EACCES, "", 0, 0, NULL},
    {"reopen", ask_reopen, "openat64", EACCES, "fcntl64", EMFILE, -EMFILE, NULL},
    {"reopen", ask_reopen, "openat64", EACCES, "lseek64", EIO, -EIO, NULL},
    {"close", ask_close, "", 0, "", 0, 0, NULL},
    {"close", ask_close, "fcntl64", EMFILE, "", 0, -EMFILE, "fcntl(F_DUPFD)"},
    {"close", ask_close, "close", EIO, "", 0, -EIO, "close"},
    {"close", ask_close, "close", EINTR, "", 0, -EINTR, "close"},
    {"written", ask_written, "", 0, "close", EIO, 0, NULL},
    {"written", ask_written, "", 0, "fcntl64", EIO, 0, NULL},
    {"written after close", ask_written_after_close, "", 0, "", 0, 0, NULL},
    {"written after close", ask_written_after_close, "close", ENOSPC, "", 0, -ENOSPC, "close"},
    {"flush", ask_flush, "", 0, "", 0, 0, NULL},
    {"flush", ask_flush, "fsync", EINVAL, "", 0, 0, NULL},
    {"flush", ask_flush, "fsync", EOPNOTSUPP, "", 0, 0, NULL},
    {"flush", ask_flush, "fsync", EIO, "", 0, -EIO, NULL},
    {"truncate", ask_truncate, "", 0, "", 0, 0, NULL},
    {"truncate", ask_truncate, "ftruncate64", EINTR, "", 0, 0, NULL},
    {"truncate", ask_truncate, "ftruncate64", EIO, "", 0, -EIO, NULL},
    {"punch", ask_punch, "", 0, "", 0, 1, NULL},
    {"punch", ask_punch, "fallocate64 to punch", EINTR, "", 0, 1, NULL},
    {"punch", ask_punch, "fallocate64 to punch", EOPNOTSUPP, "", 0, 0, NULL},
    {"chmod", ask_chmod, "", 0, "", 0, 0, NULL},
    {"chmod", ask_chmod, "chmod", EPERM, "", 0, -EPERM, NULL},
    {"times", ask_times, "", 0, "", 0, 0, NULL},
    {"times", ask_times, "utimensat", ENOENT, "", 0, 0, NULL},
    {"times", ask_times, "utimensat", EPERM, "", 0, -EPERM, NULL},
    {"times", ask_times, "", 0, "utimensat", ENOENT, -ENOENT, NULL},
};

static void answers_as_the_contract_has_it(void **state)
{
	const struct answer *a = *state;
	struct failure fail = {.call = NULL};
	const bool directory = a->ask == ask_reopen || a->ask == ask_flush;
	int fd = open_file();
	need(write(fd, data, SIZE) == SIZE);
	if (directory) {
		close(fd);
		need((fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
	}
	fault_set(a->call, 1, a->err);
	fault_also(a->also, a->also_err);
	fault_on();
	const int r = a->ask(fd, &fail);
	fault_off();
	assert_int_equal(fault_seen(), a->call[0] != 0);
	assert_errno(r, a->wanted);
	if (a->reported)
		assert_string_equal(fail.call, a->reported);
	close(fd);
}

/* Without /proc, and a kernel that has the call or not. */
static void chmod_without_proc(void **state)
{
	int fd = open_file();
	(void)state;
	const bool has = syscall(SYS_fchmodat2, fd, "", 0600, AT_EMPTY_PATH) == 0;
	fault_set("chmod", 1, ENOENT);
	fault_on();
	const int r = io_chmod(fd, 0640), err = errno;
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, has ? 0 : -1);
	assert_true(has ? mode_of("file") == 0640 : err == ENOENT);
	close(fd);
}

/* What cannot be flushed so has nothing to flush; another failure is one. */
static void written_to_what_is_no_file(void **state)
{
	struct failure fail = {.call = NULL};
	int pipe[2];
	(void)state;
	need(pipe2(pipe, O_CLOEXEC) == 0);
	assert_int_equal(io_check_written(pipe[1], true, &fail), 0);
	assert_errno(io_check_written(-1, false, &fail), -EBADF);
	assert_string_equal(fail.call, "sync_file_range");
	close(pipe[0]);
	close(pipe[1]);
}

/* Where no hole can be punched, zeros are written: these bytes, and no others. */
static void zeros_are_written(void **state)
{
	enum { LENGTH = 200000, FROM = 1001, TO = 140003 };
	static char bytes[LENGTH], now[LENGTH];
	volatile int cancel = 0;
	struct io io = {.cancel = &cancel};
	const bool punches = *(const int *)*state;
	int fd = open_file();
	fill(bytes, LENGTH, 0, 1);
	need(pwrite(fd, bytes, LENGTH, 0) == LENGTH);
	if (!punches)
		fault_also("fallocate64 to punch", EOPNOTSUPP);
	fault_short(5000);
	fault_on();
	assert_int_equal(io_zero(&io, fd, FROM, TO), 0);
	fault_off();
	memset(bytes + FROM, 0, TO - FROM);
	need(pread(fd, now, LENGTH, 0) == LENGTH && lseek(fd, 0, SEEK_END) == LENGTH);
	assert_memory_equal(now, bytes, LENGTH);
	assert_int_equal(io.calls > 0, !punches);
	if (punches) {
		close(fd);
		return;
	}
	fault_set("pwrite64", 1, ENOSPC);
	fault_on();
	assert_errno(io_zero(&io, fd, FROM, TO), -ENOSPC);
	cancel = 1;
	io.calls = 0;
	assert_errno(io_zero(&io, fd, FROM, TO), -EINTR);
	fault_off();
	assert_in_range(io.calls, 1, 65536 / 5000 + 1);
	close(fd);
}

/* The alignment is what the one that needs more of it needs, and at least a sector. */
static void alignment_fits_both(void **state)
{
	int a = open_file(), b = open("other", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct statx sx;
	(void)state;
	need(b >= 0 && statx(a, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0);
	if (sx.stx_mask & STATX_DIOALIGN) {
		const size_t offset = sx.stx_dio_offset_align, memory = sx.stx_dio_mem_align;
		const size_t most = offset > memory ? offset : memory;
		assert_int_equal(io_direct_align(a, b), most > 0 && most < 512 ? 512 : most);
		const bool no = most == 0;
		for (int nth = 1; nth <= 2; nth++) { /* unknown of one of them */
			fault_set("statx", nth, ENOSYS);
			fault_on();
			const size_t align = io_direct_align(a, b);
			fault_off();
			assert_int_equal(align, no ? 0 : most > 4096 ? most : 4096);
		}
	}
	fault_also("statx", ENOSYS);
	fault_on();
	assert_int_equal(io_direct_align(a, b), 4096);
	fault_off();
	close(a);
	close(b);
}

/* Two clocks run forward, in seconds; the one of this thread stands still while it sleeps. */
static void clocks_count_seconds(void **state)
{
	(void)state;
	const double start = io_now(), used = io_thread_seconds();
	usleep(100000);
	assert_true(io_now() - start >= 0.1 && io_now() - start < 60);
	assert_true(io_thread_seconds() - used < 0.1);
	while (io_thread_seconds() - used < 0.02)
		;
	assert_true(io_now() - start >= 0.12);
}

/* Also without statx(2), as before Linux 5.8: then fdinfo has the number. */
static void mount_is_found(void **state)
{
	struct mount_list list;
	struct mount m;
	struct stat st;
	uint64_t id = 0;
	int fd = -1;
	bool found = false;
	(void)state;
	/* A root that chroot(2) has made of a directory is no mount; /proc is one. */
	for (int i = 0; i < 2 && !found; i++) {
		io_close(fd);
		fd = open(i == 0 ? "." : "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		need(fd >= 0 && fstat(fd, &st) == 0);
		id = mount_id(fd);
		fault_set("statx", 1 + FAULT_EVERY, ENOSYS);
		fault_on();
		found = mount_find(&list, fd, &m);
		fault_off();
		if (!found)
			mount_close(&list);
	}
	assert_true(found);
	assert_true(fault_seen() && m.id == id);
	/* The device numbers of btrfs are those of its subvolumes. */
	assert_true(m.dev == st.st_dev || strcmp(m.type, "btrfs") == 0);
	assert_true(m.root[0] == '/' && m.point[0] == '/');
	assert_true(m.type[0] && !strpbrk(m.type, " \n") && m.options[0] &&
		    !strpbrk(m.options, " \n"));
	mount_close(&list);
	close(fd);
	assert_false(mount_find(&list, -1, &m));
	mount_close(&list);
}

static void symlink_is_read(void **state)
{
	char text[PATH_MAX];
	struct stat st, link;
	(void)state;
	need(symlink("to/somewhere", "link") == 0 && lstat("link", &link) == 0);
	assert_int_equal(io_read_link(AT_FDCWD, "link", text, &st), 0);
	assert_string_equal(text, "to/somewhere");
	assert_true(same_inode(&st, &link) && !io_is_foreign(&st));
	assert_int_equal(io_read_link(AT_FDCWD, "none", text, &st), -ENOENT);
	close(open_file());
	assert_true(io_read_link(AT_FDCWD, "file", text, &st) < 0);
	st.st_uid = geteuid() + 1;
	assert_true(io_is_foreign(&st));
	st.st_uid = 0;
	assert_false(io_is_foreign(&st));
}

/* As file systems with 64 bits for a time can have them. */
static void times_are_far_apart(void **state)
{
	const struct timespec first = {.tv_sec = INT64_MIN}, last = {INT64_MAX, 999999999},
			      now = {1700000000, 5}, soon = {1700000002, 3};
	(void)state;
	assert_true(time_between(first.tv_sec, last.tv_sec) == INT64_MAX);
	assert_true(time_between(last.tv_sec, first.tv_sec) == INT64_MIN);
	assert_true(time_between(now.tv_sec, soon.tv_sec) == 2);
	assert_true(time_distance(first, last) == INT64_MAX &&
		    time_distance(last, now) == INT64_MAX);
	assert_true(time_distance(soon, now) == 1999999998 &&
		    time_distance(now, soon) == 1999999998);
	assert_true(time_is_before(first, last) && time_is_before(now, soon));
	assert_false(time_is_before(soon, now) || time_is_before(now, now));
}

int main(void)
{
	static const int errs[] = {EIO, ENOSPC, EINTR, EAGAIN, EPIPE, FAULT_ZERO};
	cases_enter("tmpfs");
	for (size_t i = 0; i < sizeof(errs) / sizeof(*errs); i++) {
		case_add(writes_all, &errs[i], "write: %s", errno_name(errs[i]));
		case_add(reads_once, &errs[i], "read: %s", errno_name(errs[i]));
	}
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		case_add(answers_as_the_contract_has_it, &answers[i], "%s: %s %s %s %s",
			 answers[i].what, answers[i].call, errno_name(answers[i].err),
			 answers[i].also, errno_name(answers[i].also_err));
	static const int no, yes = 1;
	case_add(zeros_are_written, &no, "zeros where no hole can be punched");
	case_add(zeros_are_written, &yes, "zeros as a hole");
	case_add(chmod_without_proc, NULL, "chmod: without /proc");
	case_add(written_to_what_is_no_file, NULL, "written: a pipe, and no file");
	case_add(alignment_fits_both, NULL, "alignment of direct I/O");
	case_add(clocks_count_seconds, NULL, "clocks");
	case_add(mount_is_found, NULL, "the mount of a directory");
	case_add(symlink_is_read, NULL, "a symlink is read");
	case_add(times_are_far_apart, NULL, "times");
	case_add(writes_at_the_position, NULL, "write at the position");
	case_add(reads_at_the_position, NULL, "read at the position");
	case_add(cancels, "pread64", "read: cancelled");
	case_add(cancels, "pwrite64", "write: cancelled");
	case_add(cancels, "poll", "wait: cancelled");
	case_add(waits, NULL, "wait");
	case_add(ready_but_not_readable, NULL, "wait: ready, but EAGAIN");
	case_add(timeout_is_from_the_last_byte, NULL, "wait: the timeout starts over");
	case_add(pipe_has_no_timeout, NULL, "wait: a pipe has no timeout");
	case_add(has_aligned_memory, NULL, "memory");
	case_add(sums_as_published, NULL, "checksum");
	case_add(has_huge_memory, NULL, "memory in huge pages");
	return cases_run("io");
}
