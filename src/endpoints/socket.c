/* SPDX-License-Identifier: MIT
 * A connected stream socket as SRC or DST. From its first moment on closing it means a reset, so
 * that a copy which ends in any other way than by commit, kill -9 included, is an error on the
 * other side and never the end of a stream. Commit takes that back: as DST by half-close, and the
 * peer's close is the receipt; as SRC by the close that is this receipt, after the other end's
 * commit.
 */
#define _GNU_SOURCE
#include "endpoint.h"
#include "io/error.h"
#include "io/io.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_MS      60000
#define RECEIPT_SECONDS 2.0         /* how long a peer that has everything may keep its side open */
#define LOOK_MS_MAX     100         /* the kernel has no event for "all acknowledged" */
#define LOOK_READS      64          /* a peer that floods is not to keep us from time and signals */
#define GATHER_SIZE     (128 << 10) /* worth waking for; the CPU's cache still holds it */
#define KEEPALIVE_IDLE  60 /* seconds of silence before the kernel asks whether the peer lives */
#define KEEPALIVE_PAUSE 10 /* ... and between two questions */

int socket_timeout_ms(const struct fcopy_options *options)
{
	return options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
}

/* A socket's address as the kernel fills it in. */
struct name {
	struct sockaddr_storage at;
	socklen_t size;
};

static void write_name(const struct name *n, char text[FCOPY_ADDRESS_MAX])
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	int family = n->at.ss_family;
	text[0] = '\0';
	if ((family == AF_INET || family == AF_INET6) &&
	    getnameinfo((const struct sockaddr *)&n->at, n->size, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(text, FCOPY_ADDRESS_MAX, family == AF_INET ? "%.64s:%.8s" : "[%.64s]:%.8s",
			 host, port);
}

void socket_describe(int fd, char text[FCOPY_ADDRESS_MAX])
{
	struct name n = {.size = sizeof(n.at)};
	getsockname(fd, (struct sockaddr *)&n.at, &n.size);
	write_name(&n, text);
}

static void describe_peer(int fd, char text[FCOPY_ADDRESS_MAX])
{
	struct name n = {.size = sizeof(n.at)};
	getpeername(fd, (struct sockaddr *)&n.at, &n.size);
	write_name(&n, text);
}

static int get_option(int fd, int name)
{
	int value = 0;
	socklen_t size = sizeof(value);
	return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -errno : value;
}

static bool set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

bool socket_set_reset(int fd, bool on)
{
	const struct linger linger = {.l_onoff = on, .l_linger = 0};
	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0;
}

/* Nagle's algorithm would hold the last bytes of a slow source back; in the middle of a fast one
 * sendfile and splice fill the segments by themselves. No TCP_USER_TIMEOUT: it also ends a
 * connection whose peer lives and reads slowly, and io_wait and look see what it would tell. */
static bool prepare(int fd)
{
	if (get_option(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return true;
	return set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
	       set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
	       set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE) &&
	       set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_PAUSE);
}

void socket_gather(const struct endpoint *e)
{
	set_option(e->fd, SOL_SOCKET, SO_RCVLOWAT, GATHER_SIZE);
}

/* Errors of the network that belong to the connection which did not come about (accept(2)). */
static bool next_may_come(int err)
{
	switch (err) {
	case EAGAIN: /* gone again, or another process was faster */
	case EINTR:
	case ECONNABORTED:
	case ENETDOWN:
	case EPROTO:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
	case EPERM: return true;
	default: return false;
	}
}

int socket_accept(const struct endpoint *listener, const struct io *io, struct endpoint *e,
		  struct fcopy_error *error)
{
	int fd, r;
	struct name peer;
	do {
		if ((r = io_wait(io, listener->fd, POLLIN)) < 0)
			return error_call(error, "poll", listener->path, -r);
		peer = (struct name){.size = sizeof(peer.at)};
		fd = accept4(listener->fd, (struct sockaddr *)&peer.at, &peer.size,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (fd < 0 && next_may_come(errno));
	if (fd < 0)
		return error_call(error, "accept", listener->path, errno);
	*e = *listener;
	e->fd = fd;
	e->listening = false;
	write_name(&peer, e->address); /* whoever has reset it by now has none to ask for */
	return 0;
}

static int take_first(struct endpoint *e, const struct fcopy_options *options,
		      struct fcopy_error *error)
{
	const struct io io = {.cancel = options->cancel};
	int listener = e->fd;
	int r = socket_accept(e, &io, e, error);
	if (r == 0)
		close(listener);
	return r;
}

static int start(struct endpoint *e, const struct fcopy_options *options, struct fcopy_error *error)
{
	int r = 0;
	if (e->listening)
		r = take_first(e, options, error);
	else if (e->fd < 0)
		r = tcp_connect(e, options, error);
	if (r < 0)
		return r;
	if (!e->address[0])
		describe_peer(e->fd, e->address);
	return prepare(e->fd) ? 0 : error_call(error, "setsockopt", e->path, errno);
}

static void reset(struct endpoint *e)
{
	if (e->fd < 0)
		return;
	if (!e->listening)
		socket_set_reset(e->fd, true);
	close(e->fd);
	e->fd = -1;
}

/* What is known of the peer after the half-close. */
struct farewell {
	bool deaf;    /* it had ended its side before: its end is no receipt */
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
	int err = f->ended ? get_option(fd, SO_ERROR) : 0;
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

static int wait_for_receipt(struct endpoint *e, const struct fcopy_options *options,
			    struct farewell *f)
{
	int r, pause_ms = 1;
	while ((r = look(e->fd, f, options)) == 0) {
		if (options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED))
			return -EINTR;
		struct pollfd p = {.fd = f->ended ? -1 : e->fd, .events = POLLIN};
		poll(&p, 1, pause_ms);
		pause_ms = pause_ms < LOOK_MS_MAX / 2 ? pause_ms * 2 : LOOK_MS_MAX;
	}
	e->confirmed = r > 0 && f->ended && !f->deaf;
	return r < 0 ? r : 0;
}

static bool has_ended(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	return poll(&p, 1, 0) > 0 && p.revents & POLLRDHUP;
}

static int commit_destination(struct endpoint *e, const struct fcopy_options *options,
			      struct fcopy_error *error)
{
	struct farewell f = {.deaf = has_ended(e->fd), .unsent = -1};
	if (!socket_set_reset(e->fd, false))
		return error_call(error, "setsockopt", e->path, errno);
	if (shutdown(e->fd, SHUT_WR) < 0) {
		int err = errno, why = get_option(e->fd, SO_ERROR); /* ENOTCONN after a reset */
		return error_call(error, "shutdown", e->path, why > 0 ? why : err);
	}
	int r = wait_for_receipt(e, options, &f);
	if (r < 0)
		return error_call(error, "waiting for the peer's close", e->path, -r);
	close(e->fd);
	e->fd = -1;
	return 0;
}

static int commit_source(struct endpoint *e, const struct fcopy_options *options,
			 struct fcopy_error *error)
{
	(void)options;
	if (!socket_set_reset(e->fd, false))
		return error_call(error, "setsockopt", e->path, errno);
	close(e->fd);
	e->fd = -1;
	return 0;
}

void socket_as_source(struct endpoint *e)
{
	static const struct endpoint_ops ops = {
	    .start = start, .commit = commit_source, .abort = reset};
	e->ops = &ops;
}

void socket_as_destination(struct endpoint *e)
{
	static const struct endpoint_ops ops = {
	    .start = start, .commit = commit_destination, .abort = reset};
	e->ops = &ops;
}

int socket_adopt(struct endpoint *e, struct fcopy_error *error)
{
	int flags = fcntl(e->fd, F_GETFL);
	if (get_option(e->fd, SO_TYPE) != SOCK_STREAM)
		return error_refuse(error, e->path, ESOCKTNOSUPPORT, "is no stream socket",
				    FCOPY_ADVICE_NONE);
	e->socket = true;
	if (!socket_set_reset(e->fd, true))
		return error_call(error, "setsockopt", e->path, errno);
	if (flags < 0 || fcntl(e->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return error_call(error, "fcntl", e->path, errno);
	e->listening = get_option(e->fd, SO_ACCEPTCONN) > 0;
	if (e->listening)
		socket_describe(e->fd, e->address);
	return 0;
}
