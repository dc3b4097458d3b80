/* SPDX-License-Identifier: MIT
 * After our half-close: the peer's close is the receipt. Until then it is looked at again and
 * again.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "io/io.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define RECEIPT_SECONDS 2.0 /* how long a peer that has everything may keep its side open */
#define LOOK_MS_MAX     100 /* the kernel has no event for "all acknowledged" */
#define LOOK_READS      64  /* a peer that floods is not to keep us from time and signals */

bool receipt_is_early(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	return poll(&p, 1, 0) > 0 && p.revents & POLLRDHUP;
}

/* What is known of the peer after the half-close. */
struct farewell {
	bool ended;   /* it has ended its side */
	int unsent;   /* bytes that it has not acknowledged, our end of stream included */
	double since; /* since when nothing of that has changed */
};

/* Reads what the peer has to say by now, and forgets it. Returns 0, or -errno. */
static int listen_for_end(int fd, struct farewell *f)
{
	char buffer[4096];
	ssize_t n = 1;
	for (int i = 0; i < LOOK_READS && !f->ended && n > 0; i++)
		n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	f->ended |= n == 0;
	/* Behind its end of stream a reset is no longer told by recv (SOCK_DONE in tcp_recvmsg). */
	int err = f->ended ? socket_get_option(fd, SO_ERROR) : 0;
	return err > 0 ? -err : err;
}

/* One look at the peer. Returns 1: it is done, 0: wait on, or -errno. */
static int look(int fd, struct farewell *f, const struct fcopy_options *options)
{
	int unsent, timeout_ms = socket_timeout_ms(options);
	double now = io_now();
	int r = listen_for_end(fd, f);
	if (r < 0)
		return r;
	if (ioctl(fd, SIOCOUTQ, &unsent) < 0)
		return -errno;
	if (unsent != f->unsent)
		f->since = now;
	f->unsent = unsent;
	if (unsent == 0)
		return f->ended || now - f->since >= RECEIPT_SECONDS;
	return timeout_ms > 0 && now - f->since >= timeout_ms / 1e3 ? -ETIMEDOUT : 0;
}

int receipt_await(struct endpoint *e, bool early, const struct fcopy_options *options)
{
	struct farewell f = {.unsent = -1};
	int r, pause_ms = 1;
	while ((r = look(e->fd, &f, options)) == 0) {
		if (options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED))
			return -EINTR;
		struct pollfd p = {.fd = f.ended ? -1 : e->fd, .events = POLLIN};
		poll(&p, 1, pause_ms);
		pause_ms = pause_ms < LOOK_MS_MAX / 2 ? pause_ms * 2 : LOOK_MS_MAX;
	}
	e->confirmed = r > 0 && f.ended && !early;
	return r < 0 ? r : 0;
}
