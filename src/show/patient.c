/* SPDX-License-Identifier: MIT
 * Implements patient.h.
 */
#include "patient.h"
#include "show.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
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

static struct channel {
	int fd, err; /* errno of the first failure; a second thread may write: atomic */
	char line[BUFSIZ];
	size_t held; /* with musl: bytes of a line that has not ended */
	char hold[BUFSIZ];
} channel[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

#ifdef __GLIBC__

#define DEFAULT(fd) ((fd) == STDOUT_FILENO ? stdout : stderr)

static bool patient_pass(struct channel *c, const char *text, size_t n)
{
	return patient_write(c->fd, text, n);
}

#else

FILE *patient_stream[STDERR_FILENO + 1];

#define DEFAULT(fd) fdopen(fd, "w")

/* musl hands a line over in two pieces, what was buffered and the rest, and ends a flush with no
 * byte. */
static bool patient_pass(struct channel *c, const char *text, size_t n)
{
	const bool ends = n == 0 || text[n - 1] == '\n';
	if (n > 0 && n <= sizeof(c->hold) - c->held) {
		memcpy(c->hold + c->held, text, n);
		c->held += n;
		if (!ends)
			return true;
		n = 0;
	}
	const size_t held = c->held;
	c->held = 0;
	return patient_write(c->fd, c->hold, held) && patient_write(c->fd, text, n);
}

/* Before stdio writes what is still in its buffers. */
__attribute__((destructor)) static void patient_end(void)
{
	for (size_t i = 0; i < sizeof(channel) / sizeof(*channel); i++)
		patient_pass(&channel[i], "", 0);
}

#endif

static ssize_t patient_flush(void *to, const char *text, size_t n)
{
	struct channel *c = to;
	int none = 0;
	if (patient_pass(c, text, n))
		return (ssize_t)n;
	__atomic_compare_exchange_n(&c->err, &none, errno, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return PATIENT_FAILED;
}

static FILE *patient_open(struct channel *c, int buffering)
{
	const cookie_io_functions_t calls = {.write = patient_flush};
	FILE *f = fopencookie(c, "w", calls);
	if (!f)
		f = DEFAULT(c->fd);
	setvbuf(f, c->line, buffering, sizeof(c->line));
	return f;
}

void patient_begin(void)
{
	stdout = patient_open(&channel[0], isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
	stderr = patient_open(&channel[1], _IOLBF);
}

int patient_lost(void)
{
	return __atomic_load_n(&channel[0].err, __ATOMIC_RELAXED);
}
