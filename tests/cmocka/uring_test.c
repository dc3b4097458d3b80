/* SPDX-License-Identifier: MIT
 * The seam to io_uring itself: a ring that the kernel refuses, memory that it does not register,
 * waits that are interrupted or fail.
 */
#define _GNU_SOURCE
#include "cases.h"

#include <stdio.h>

#ifdef HAVE_LIBURING

#include "io/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK ((size_t)4096)

static bool submits_only; /* an interruption after the submission */

/* Those answer -errno and leave errno alone. */
#define WRAP(call, params, args)                                                                   \
	int __real_##call params;                                                                  \
	int __wrap_##call params;                                                                  \
	int __wrap_##call params                                                                   \
	{                                                                                          \
		return fault_strikes(#call) ? -errno : __real_##call args;                         \
	}

WRAP(io_uring_queue_init, (unsigned depth, struct io_uring *r, unsigned flags), (depth, r, flags))
WRAP(io_uring_register_buffers, (struct io_uring * r, const struct iovec *v, unsigned n), (r, v, n))
WRAP(io_uring_submit_and_wait, (struct io_uring * r, unsigned n), (r, submits_only ? 0 : n))
WRAP(__io_uring_get_cqe,
     (struct io_uring * r, struct io_uring_cqe **cqe, unsigned submit, unsigned n, sigset_t *mask),
     (r, cqe, submit, n, mask))

int __real_io_uring_enter(unsigned fd, unsigned submit, unsigned n, unsigned flags, sigset_t *mask);
int __wrap_io_uring_enter(unsigned fd, unsigned submit, unsigned n, unsigned flags, sigset_t *mask);
int __wrap_io_uring_enter(unsigned fd, unsigned submit, unsigned n, unsigned flags, sigset_t *mask)
{
	if (fault_strikes("io_uring_enter"))
		return -errno;
	return __real_io_uring_enter(fd, submit, n, flags, mask);
}

#undef WRAP

static char memory[2 * BLOCK] __attribute__((aligned(4096)));

static struct ring *open_ring(void)
{
	fault_on();
	struct ring *r = ring_open(2, memory, sizeof(memory));
	fault_off();
	return r;
}

static int wait_one(struct ring *r, unsigned id, int *result)
{
	unsigned seen = ~0u;
	fault_on();
	int answer = ring_wait(r, &seen, result);
	fault_off();
	if (answer == 0)
		assert_int_equal(seen, id);
	return answer;
}

static void cannot_be_opened(void **state)
{
	fault_set(*state, 1, ENOMEM);
	assert_null(open_ring());
	assert_int_equal(errno, ENOMEM);
	assert_true(fault_seen());
}

/* Memory that counts as locked is limited: the same bytes come without registration. */
static void moves_bytes(void **state)
{
	int n, fd = open("file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	need(fd >= 0);
	if (*state)
		fault_set("io_uring_register_buffers", 1, ENOMEM);
	struct ring *r = open_ring();
	assert_non_null(r);
	assert_int_equal(fault_seen(), *state != NULL);
	fill(memory, BLOCK, 0, 1);
	ring_write(r, fd, memory, BLOCK, 100, 7);
	assert_int_equal(wait_one(r, 7, &n), 0);
	assert_int_equal(n, BLOCK);
	ring_read(r, fd, memory + BLOCK, BLOCK, 100, 8);
	assert_int_equal(wait_one(r, 8, &n), 0);
	assert_int_equal(n, BLOCK);
	assert_memory_equal(memory, memory + BLOCK, BLOCK);
	assert_int_equal(size_of("file"), 100 + BLOCK);
	ring_read(r, -1, memory, BLOCK, 0, 9);
	assert_int_equal(wait_one(r, 9, &n), 0);
	assert_int_equal(n, -EBADF);
	ring_close(r);
	close(fd);
}

/* A process, because valgrind lets no other thread run while one waits in io_uring_enter. */
static pid_t write_later(int fd)
{
	pid_t child = fork();
	need(child >= 0);
	if (child > 0)
		return child;
	usleep(200000);
	_exit(write(fd, "x", 1) != 1);
}

/* An interruption, in the submission or in the wait after it, is no event; a failure is reported.
 */
static void waits(void **state)
{
	const char *call = *state;
	int n, status, pipe[2];
	struct ring *r = open_ring();
	assert_non_null(r);
	need(pipe2(pipe, O_CLOEXEC) == 0);
	submits_only = strcmp(call, "io_uring_submit_and_wait") != 0;
	ring_read(r, pipe[0], memory, 1, 0, 3);
	fault_set(call, 1, EBADR);
	assert_int_equal(wait_one(r, 3, &n), -EBADR);
	pid_t writer = write_later(pipe[1]);
	fault_set(call, 1, EINTR);
	assert_int_equal(wait_one(r, 3, &n), 0);
	assert_true(fault_seen());
	assert_int_equal(n, 1);
	assert_int_equal(memory[0], 'x');
	need(waitpid(writer, &status, 0) == writer && status == 0);
	submits_only = false;
	ring_close(r);
	close(pipe[0]);
	close(pipe[1]);
}

/* What is in flight is cancelled, also when io_uring_enter(2) is no longer allowed: afterwards the
 * kernel writes into no buffer, and the byte is for the next reader. */
static void drains(void **state)
{
	char byte = 0;
	int n, pipe[2];
	struct ring *r = open_ring();
	assert_non_null(r);
	need(pipe2(pipe, O_CLOEXEC) == 0);
	memory[0] = 'a';
	ring_read(r, pipe[0], memory, 1, 0, 3);
	if (*state) { /* it has been submitted */
		submits_only = true;
		fault_set("__io_uring_get_cqe", 1, EBADR);
	} else {
		fault_set("io_uring_submit_and_wait", 1, EPERM);
	}
	assert_true(wait_one(r, 3, &n) < 0);
	ring_drain(r);
	submits_only = false;
	need(write(pipe[1], "x", 1) == 1);
	ring_close(r);
	assert_int_equal(memory[0], 'a');
	need(read(pipe[0], &byte, 1) == 1);
	assert_int_equal(byte, 'x');
	close(pipe[0]);
	close(pipe[1]);
}

int main(void)
{
	static const char *const waiting[] = {"io_uring_submit_and_wait", "__io_uring_get_cqe"};
	cases_enter("tmpfs");
	case_add(cannot_be_opened, "malloc", "no memory for a ring");
	case_add(cannot_be_opened, "io_uring_queue_init", "no ring");
	case_add(cannot_be_opened, "io_uring_enter", "a ring that may not be entered");
	struct ring *r = ring_open(1, memory, sizeof(memory));
	if (r) {
		ring_close(r);
		case_add(moves_bytes, NULL, "registered memory");
		case_add(moves_bytes, "", "memory that is not registered");
		case_add(waits, waiting[0], "%s fails", waiting[0]);
		case_add(waits, waiting[1], "%s fails", waiting[1]);
		case_add(drains, "", "operations in flight are cancelled");
		case_add(drains, NULL, "operations not submitted are discarded");
	} else {
		printf("# left out: the kernel refuses io_uring\n");
	}
	return cases_run("uring");
}

#else

int main(void)
{
	puts("1..0\n# left out: built without liburing");
	return 0;
}

#endif
