/* SPDX-License-Identifier: MIT
 * The loops around read and write: interruptions, descriptors that are not ready, short counts.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "io/io.h"
#include "io/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(void)
{
	static const int errs[] = {EIO, ENOSPC, EINTR, EAGAIN, EPIPE, FAULT_ZERO};
	cases_enter("tmpfs");
	for (size_t i = 0; i < sizeof(errs) / sizeof(*errs); i++) {
		case_add(writes_all, &errs[i], "write: %s", errno_name(errs[i]));
		case_add(reads_once, &errs[i], "read: %s", errno_name(errs[i]));
	}
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
