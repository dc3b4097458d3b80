/* SPDX-License-Identifier: MIT
 * A connected stream socket as SRC or DST. It has SO_LINGER {1, 0} from the start: closing it
 * resets the connection. So the peer of a copy that fails or is killed sees an error, never the end
 * of a stream. Only the commit restores SO_LINGER. As DST it then half-closes and waits for the
 * receipt. As SRC it closes after DST has committed: that close is the receipt for the peer.
 */
#include "socket.h"

#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define TIMEOUT_MS      60000
#define GATHER_SIZE     (128 << 10) /* bytes: enough to wake up for, and still in the CPU's cache */
#define KEEPALIVE_IDLE  60          /* seconds without data before the first keepalive probe */
#define KEEPALIVE_PAUSE 10          /* ... and between two probes */
#define FORBIDDEN_MAX   4096        /* clients that a firewall refuses in a row */

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

int socket_get_option(int fd, int name)
{
	int value = 0;
	socklen_t size = sizeof(value);
	return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -errno : value;
}

static bool set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

bool socket_set_reset(int fd)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = 0};
	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0;
}

/* TCP_NODELAY: Nagle's algorithm would delay the last bytes of a slow source, and sendfile and
 * splice fill the segments of a fast one themselves. No TCP_USER_TIMEOUT: it also ends a connection
 * whose peer is alive and reads slowly; io_wait and receipt_await detect a dead peer. */
bool socket_prepare(int fd)
{
	if (socket_get_option(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return true;
	return set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) &&
	       set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) &&
	       set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE) &&
	       set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_PAUSE);
}

static void socket_gather(const struct endpoint *e)
{
	set_option(e->fd, SOL_SOCKET, SO_RCVLOWAT, GATHER_SIZE);
}

/* Before the close of a complete stream. A caller's own {1, 0} is cleared, too: the last close
 * would reset the connection, and the peer could lose what it has not read yet. */
int socket_end_in_order(struct endpoint *e, struct fcopy_error *error)
{
	struct linger l = connection_of(e)->linger;
	l.l_onoff = l.l_onoff && l.l_linger > 0;
	if (setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)) < 0)
		return error_call(error, "setsockopt", e->path, errno);
	return 0;
}

static void socket_close(struct endpoint *e)
{
	const struct connection *c = connection_of(e);
	if (e->fd >= 0 && c->flags) {
		fcntl(e->fd, F_SETFL, c->flags);
		set_option(e->fd, SOL_SOCKET, SO_RCVLOWAT, c->low_water);
	}
	endpoint_close(e);
}

/* Is this accept(2) error about one client only? Then the next client can still connect. EPERM may
 * be, of a firewall; or the system's policy denies each call, also if no client waits. */
static bool next_may_come(int err)
{
	switch (err) {
	case EAGAIN: /* the client has gone, or another process accepted it */
	case EINTR:
	case ECONNABORTED:
	case ENETDOWN:
	case EPROTO:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH: return true;
	default: return false;
	}
}

int socket_take(int listener, char address[FCOPY_ADDRESS_MAX], struct failure *fail)
{
	struct name peer;
	unsigned forbidden = 0;
	int fd;
	do {
		peer = (struct name){.size = sizeof(peer.at)};
		fd = accept4(listener, (struct sockaddr *)&peer.at, &peer.size,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (fd < 0 && (errno == EPERM ? forbidden++ < FORBIDDEN_MAX
					   : errno != EAGAIN && next_may_come(errno)));
	if (fd < 0)
		return fail_at(fail, "accept");
	/* A listener of the caller has its own value, which the connection inherited. */
	if (!socket_set_reset(fd)) {
		const int r = fail_at(fail, "setsockopt");
		close(fd);
		return r;
	}
	/* getpeername fails if the peer has reset the connection by now. */
	write_name(&peer, address);
	return fd;
}

void socket_become(struct endpoint *e, const struct endpoint *listener, int fd)
{
	*e = *listener;
	e->fd = fd;
	connection_of(e)->listening = false;
	connection_of(e)->listened = true;
	connection_of(e)->flags = 0;
	connection_of(e)->linger = (struct linger){0};
}

static int socket_accept(const struct endpoint *listener, const struct io *io, struct endpoint *e,
			 struct fcopy_error *error)
{
	char address[FCOPY_ADDRESS_MAX];
	struct failure fail;
	int fd, r;
	do {
		if ((r = io_wait(io, listener->fd, POLLIN)) < 0)
			return error_call(error, "poll", listener->path, -r);
		fd = socket_take(listener->fd, address, &fail);
	} while (fd == -EAGAIN);
	if (fd < 0)
		return error_call(error, fail.call, listener->path, -fd);
	socket_become(e, listener, fd);
	memcpy(connection_of(e)->address, address, sizeof(address));
	return 0;
}

static int take_first(struct endpoint *e, struct fcopy_error *error)
{
	const struct io io = {.cancel = e->options->cancel};
	struct endpoint listener = *e;
	int r = socket_accept(&listener, &io, e, error);
	if (r == 0)
		socket_close(&listener);
	return r;
}

static int socket_start(struct endpoint *e, struct fcopy_error *error)
{
	int r = 0;
	if (connection_of(e)->listening)
		r = take_first(e, error);
	else if (connection_of(e)->connect)
		r = connection_of(e)->connect(e, error);
	if (r < 0)
		return r;
	if (!connection_of(e)->address[0])
		describe_peer(e->fd, connection_of(e)->address);
	return socket_prepare(e->fd) ? 0 : error_call(error, "setsockopt", e->path, errno);
}

void socket_abort(struct endpoint *e)
{
	if (e->fd < 0)
		return;
	if (!connection_of(e)->listening)
		socket_set_reset(e->fd);
	socket_close(e);
}

int socket_end_stream(struct endpoint *e, bool early, struct fcopy_error *error)
{
	int r = socket_end_in_order(e, error);
	if (r < 0)
		return r;
	if (shutdown(e->fd, SHUT_WR) < 0) {
		/* After a reset, shutdown(2) fails with ENOTCONN; SO_ERROR holds the cause. */
		int err = errno, why = socket_get_option(e->fd, SO_ERROR);
		return error_call(error, "shutdown", e->path, why > 0 ? why : err);
	}
	r = receipt_await(e->fd, true, socket_timeout_ms(e->options), e->options->cancel);
	connection_of(e)->confirmed = r > 0 && !early;
	if (r < 0)
		return error_operation(error, "waiting for the receiver to close", "recv", e->path,
				       -r);
	socket_close(e);
	return 0;
}

static int socket_commit(struct endpoint *e, struct fcopy_error *error)
{
	return socket_end_stream(e, receipt_is_early(e->fd), error);
}

static int commit_source(struct endpoint *e, struct fcopy_error *error)
{
	/* If DST is skipped, the socket may not be connected, or still listen. */
	bool connected = e->fd >= 0 && !connection_of(e)->listening;
	int r = connected ? socket_end_in_order(e, error) : 0;
	if (r == 0)
		socket_close(e);
	return r;
}

const char *socket_listens(const struct endpoint *e)
{
	return connection_of(e)->listening ? connection_of(e)->address : NULL;
}

const char *socket_peer(const struct endpoint *e)
{
	return connection_of(e)->address;
}

enum endpoint_receipt socket_receipt(const struct endpoint *e)
{
	return connection_of(e)->confirmed ? RECEIPT_CONFIRMED : RECEIPT_MISSING;
}

/* curl -T to a plain listener: its head would become the start of the file. */
static const char *socket_doubt(const struct endpoint *e)
{
	static const char *const methods[] = {"GET /", "HEAD /", "PUT /", "POST /"};
	const struct io io = {.cancel = e->options->cancel,
			      .timeout_ms = socket_timeout_ms(e->options)};
	char line[1024];
	if (!connection_of(e)->listened || io_wait(&io, e->fd, POLLIN) < 0)
		return NULL; /* the copy finds the same failure */
	const ssize_t n = recv(e->fd, line, sizeof(line) - 1, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return NULL;
	line[n] = '\0';
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		const char *version = strstr(line, " HTTP/1.");
		if (strncmp(line, methods[i], strlen(methods[i])) == 0 && version &&
		    !memchr(line, '\n', (size_t)(version - line)))
			return "receives an HTTP request, whose head becomes part of the copy: use "
			       "http-listen: for uploads";
	}
	return NULL;
}

void socket_set_ops(struct endpoint *e, bool source)
{
	static const struct endpoint_ops as_source = {.start = socket_start,
						      .commit = commit_source,
						      .abort = socket_abort,
						      .listens = socket_listens,
						      .peer = socket_peer,
						      .timeout_ms = socket_timeout_ms,
						      .gather = socket_gather,
						      .doubt = socket_doubt};
	static const struct endpoint_ops as_destination = {.start = socket_start,
							   .commit = socket_commit,
							   .abort = socket_abort,
							   .listens = socket_listens,
							   .peer = socket_peer,
							   .timeout_ms = socket_timeout_ms,
							   .accept = socket_accept,
							   .receipt = socket_receipt};
	e->ops = source ? &as_source : &as_destination;
}

int socket_adopt(struct endpoint *e, bool source, struct fcopy_error *error)
{
	int flags = fcntl(e->fd, F_GETFL);
	bool listening = socket_get_option(e->fd, SO_ACCEPTCONN) > 0;
	struct linger linger = {0};
	socklen_t size = sizeof(linger);
	if (getsockopt(e->fd, SOL_SOCKET, SO_LINGER, &linger, &size) < 0)
		return error_call(error, "getsockopt", e->path, errno);
	/* Not a listener: later programs may accept on it, and their connections would inherit it.
	 */
	if (!listening && !socket_set_reset(e->fd))
		return error_call(error, "setsockopt", e->path, errno);
	if (flags < 0 || fcntl(e->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return error_call(error, "fcntl", e->path, errno);
	socket_set_ops(e, source);
	*connection_of(e) = (struct connection){.listening = listening,
						.flags = flags,
						.linger = linger,
						.low_water = socket_get_option(e->fd, SO_RCVLOWAT)};
	if (listening)
		socket_describe(e->fd, connection_of(e)->address);
	return 0;
}

/* The receipt of a stream that was sent: the peer closes its side after it has received our end.
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
 * "everything is acknowledged", so this file polls. */

#define RECEIPT_SECONDS 2.0 /* how long a peer that has everything may keep its side open */
#define POLL_MS_MAX     50  /* longest pause between two polls */
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
static int poll_peer(int fd, bool closes, struct peer *p, int timeout_ms)
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
		return !closes || p->ended || now - p->since >= RECEIPT_SECONDS;
	return timeout_ms > 0 && now - p->since >= timeout_ms / 1e3 ? -ETIMEDOUT : 0;
}

int receipt_await(int fd, bool closes, int timeout_ms, const volatile int *cancel)
{
	struct peer peer = {.unsent = -1};
	int r, pause_ms = 1;
	while ((r = poll_peer(fd, closes, &peer, timeout_ms)) == 0) {
		if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED))
			return -EINTR;
		struct pollfd p = {.fd = peer.ended ? -1 : fd, .events = POLLIN};
		poll(&p, 1, pause_ms);
		pause_ms = pause_ms < POLL_MS_MAX / 2 ? pause_ms * 2 : POLL_MS_MAX;
	}
	return r < 0 ? r : peer.ended;
}
