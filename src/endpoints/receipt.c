/* SPDX-License-Identifier: MIT
 * The receipt of a stream that was sent: the peer closes its side after it has received our end.
 *
 *     we                                peer
 *     data ...          ----------->    reads
 *     shutdown(SHUT_WR) ----------->    reads the end of the stream, commits its file
 *     recv() == 0       <-----------    closes: the receipt, "confirmed"
 *     recv() fails      <-----------    resets: its commit failed, and so do we
 *     SIOCOUTQ == 0                     has every byte, but stays open (nc with an open stdin):
 *                                       after RECEIPT_SECONDS we succeed, "not confirmed"
 *
 * A peer that ended its side before we ended ours has sent no receipt. The kernel has no event for
 * "everything is acknowledged", so this file polls.
 */
#define _GNU_SOURCE
#include "io/io.h"
#include "socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define RECEIPT_SECONDS 2.0 /* how long a peer that has everything may keep its side open */
#define POLL_MS_MAX     100 /* longest pause between two polls */
#define POLL_READS      64  /* per poll: a flooding peer must not delay timeout and signals */

bool receipt_is_early(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	return poll(&p, 1, 0) > 0 && p.revents & POLLRDHUP;
}

/* What is known of the peer after the half-close. */
struct peer {
	bool ended;   /* it has ended its side */
	int unsent;   /* bytes that it has not acknowledged, our end of stream included */
	double since; /* io_now() of the last change of the two */
};

/* Reads and discards what the peer has sent. Returns 0, or -errno. */
static int discard_input(int fd, struct peer *p)
{
	char buffer[4096];
	ssize_t n = 1;
	for (int i = 0; i < POLL_READS && !p->ended && n > 0; i++)
		n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	p->ended |= n == 0;
	/* After its end of stream recv does not report a reset any more (SOCK_DONE in
	 * tcp_recvmsg). */
	int err = 0;
	socklen_t size = sizeof(err);
	if (p->ended && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0)
		return -errno;
	return -err;
}

/* Polls the peer once. Returns 1: it is done, 0: wait, or -errno. */
static int poll_peer(int fd, struct peer *p, int timeout_ms)
{
	int unsent;
	double now = io_now();
	int r = discard_input(fd, p);
	if (r < 0)
		return r;
	if (ioctl(fd, SIOCOUTQ, &unsent) < 0)
		return -errno;
	if (unsent != p->unsent)
		p->since = now;
	p->unsent = unsent;
	if (unsent == 0)
		return p->ended || now - p->since >= RECEIPT_SECONDS;
	return timeout_ms > 0 && now - p->since >= timeout_ms / 1e3 ? -ETIMEDOUT : 0;
}

int receipt_await(int fd, int timeout_ms, const volatile int *cancel)
{
	struct peer peer = {.unsent = -1};
	int r, pause_ms = 1;
	while ((r = poll_peer(fd, &peer, timeout_ms)) == 0) {
		if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED))
			return -EINTR;
		struct pollfd p = {.fd = peer.ended ? -1 : fd, .events = POLLIN};
		poll(&p, 1, pause_ms);
		pause_ms = pause_ms < POLL_MS_MAX / 2 ? pause_ms * 2 : POLL_MS_MAX;
	}
	return r < 0 ? r : peer.ended;
}
