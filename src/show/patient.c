/* SPDX-License-Identifier: MIT
 * Implements patient.h.
 */
#define _GNU_SOURCE
#include "patient.h"
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* Waits until fd takes more. Returns false if a signal is to end the program: a reader that has
 * stopped must not keep the copy from cleaning up. */
static bool patient_wait(int fd, int err)
{
	if (err == EAGAIN && poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1) < 0)
		err = errno;
	return err == EAGAIN || (err == EINTR && !signals_caught());
}

bool patient_write(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t wrote = write(fd, text, n);
		if (wrote < 0 && !patient_wait(fd, errno))
			return false;
		if (wrote > 0) {
			text += wrote;
			n -= (size_t)wrote;
		}
	}
	return true;
}

#ifdef __GLIBC__

static int number[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

static ssize_t patient_flush(void *fd, const char *text, size_t n)
{
	return patient_write(*(const int *)fd, text, n) ? (ssize_t)n : 0;
}

static FILE *patient_open(int fd, FILE *old, int buffering)
{
	static char line[2][BUFSIZ];
	const cookie_io_functions_t calls = {.write = patient_flush};
	FILE *f = fopencookie(&number[fd], "w", calls);
	if (!f)
		f = old;
	setvbuf(f, line[fd == STDERR_FILENO], buffering, BUFSIZ);
	return f;
}

void patient_begin(void)
{
	stdout = patient_open(STDOUT_FILENO, stdout, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
	stderr = patient_open(STDERR_FILENO, stderr, _IOLBF);
}

#else

void patient_begin(void)
{
	static char line[BUFSIZ];
	setvbuf(stderr, line, _IOLBF, sizeof(line));
}

#endif
