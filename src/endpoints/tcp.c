/* SPDX-License-Identifier: MIT
 * tcp:HOST:PORT and tcp-listen:[HOST:]PORT: from the operand's text to a socket.
 */
#include "socket.h"

#include <ctype.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define CONNECT "tcp:"
#define LISTEN  "tcp-listen:"

struct address {
	char host[NI_MAXHOST]; /* empty: none given */
	char port[NI_MAXSERV];
};

static bool tcp_names(const char *path)
{
	return starts_with(path, CONNECT) || starts_with(path, LISTEN);
}

bool tcp_is_any_port(const char *address)
{
	const char *port = strrchr(address, ':') + 1;
	return port[0] && port[strspn(port, "0")] == '\0';
}

static enum fcopy_kind tcp_kind(const char *path, int dash, int *fd)
{
	(void)dash, (void)fd;
	if (!starts_with(path, LISTEN))
		return FCOPY_KIND_CONNECT;
	return tcp_is_any_port(path) ? FCOPY_KIND_LISTEN_ANY : FCOPY_KIND_LISTEN;
}

/* Checks a number, because getaddrinfo accepts blanks and signs and truncates it to 16 bits. Leaves
 * the name of a service to getaddrinfo. */
static bool port_is_sane(const char *port, bool listens)
{
	char *end;
	unsigned long n = strtoul(port, &end, 10);
	if (!isalnum((unsigned char)port[0]))
		return false;
	return *end != '\0' || (n <= 65535 && (listens || n > 0));
}

/* Splits HOST:PORT, [HOST]:PORT or PORT. Returns what is wrong with it, or NULL. */
static const char *parse_address(struct address *a, const char *text, bool listens)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t length = colon ? (size_t)(colon - text) : 0;
	bool brackets = length > 1 && text[0] == '[' && text[length - 1] == ']';
	if (text[0] == '[' && text[strlen(text) - 1] == ']')
		return "has no port after the brackets";
	if (brackets) {
		text++;
		length -= 2;
	}
	if (length >= sizeof(a->host) || strlen(port) >= sizeof(a->port))
		return "is too long for an address";
	if (colon && length == 0)
		return "has no host before the colon";
	if (!brackets && memchr(text, ':', length))
		return "has too many colons: write an IPv6 address in brackets";
	if (!port_is_sane(port, listens))
		return listens ? "has no port from 0 to 65535 at its end"
			       : "has no port from 1 to 65535 at its end";
	if (listens && length == 1 && text[0] == '*')
		return "* is not an address: use 0.0.0.0:PORT or [::]:PORT for all addresses";
	memcpy(a->host, text, length);
	a->host[length] = '\0';
	strcpy(a->port, port);
	return NULL;
}

/* Resolves the operand to a list of addresses, which the caller frees by freeaddrinfo(3). */
static int resolve_address(const struct endpoint *e, const struct address *a,
			   struct addrinfo **list, struct fcopy_error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_family = a->host[0] ? AF_UNSPEC : AF_INET};
	int r = getaddrinfo(a->host[0] ? a->host : NULL, a->port, &hints, list);
	if (r == 0)
		return 0;
	if (r == EAI_SYSTEM)
		return error_call(error, "getaddrinfo", e->path, errno);
	if (r == EAI_SERVICE)
		return error_refuse(error, e->path, EADDRNOTAVAIL,
				    "its port is neither a number nor the name of a service",
				    FCOPY_ADVICE_USAGE);
	return error_refuse(error, e->path, EADDRNOTAVAIL, gai_strerror(r), FCOPY_ADVICE_NONE);
}

/* Tries one address. Returns the descriptor, or -errno with the call that failed. */
typedef int try(const struct addrinfo *, const struct fcopy_options *, struct failure *fail);

/* A socket that resets its connection from the start, whatever ends the process. */
static int make_socket(const struct addrinfo *a, struct failure *fail)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_at(fail, "socket");
	if (socket_set_reset(fd))
		return fd;
	const int r = fail_at(fail, "setsockopt");
	close(fd);
	return r;
}

static int try_listen(const struct addrinfo *a, const struct fcopy_options *options,
		      struct failure *fail)
{
	const int on = 1;
	int fd = make_socket(a, fail);
	(void)options;
	if (fd < 0)
		return fd;
	fail_at(fail, "bind");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, a->ai_addr, a->ai_addrlen) == 0) {
		fail_at(fail, "listen");
		if (listen(fd, SOMAXCONN) == 0)
			return fd;
	}
	int err = errno;
	close(fd);
	return -err;
}

/* Waits for the outcome of a connect that is under way. */
static int finish_connect(int fd, const struct fcopy_options *options)
{
	const struct io io = {.cancel = options->cancel, .timeout_ms = socket_timeout_ms(options)};
	int r = io_wait(&io, fd, POLLOUT);
	if (r < 0)
		return r;
	int err = socket_get_option(fd, SO_ERROR);
	return err > 0 ? -err : err;
}

/* If no process listens and the kernel chooses the destination's port as the local port, the socket
 * is connected to itself. The copy would then seem to be received. */
static bool connected_to_itself(int fd)
{
	struct sockaddr_storage own = {.ss_family = AF_UNSPEC}, peer = {.ss_family = AF_UNSPEC};
	socklen_t size = sizeof(own), peer_size = sizeof(peer);
	return getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 && size == peer_size &&
	       memcmp(&own, &peer, size) == 0;
}

static int try_connect(const struct addrinfo *a, const struct fcopy_options *options,
		       struct failure *fail)
{
	int fd = make_socket(a, fail);
	if (fd < 0)
		return fd;
	fail_at(fail, "connect");
	int r = connect(fd, a->ai_addr, a->ai_addrlen) < 0 ? -errno : 0;
	if (r == -EINPROGRESS || r == -EINTR)
		r = finish_connect(fd, options);
	if (r == 0 && connected_to_itself(fd))
		r = -ECONNREFUSED;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* Tries all addresses in the resolver's order, and records the last failure. */
static int try_all(struct endpoint *e, const struct address *a, try *one, struct fcopy_error *error)
{
	struct addrinfo *list;
	struct failure fail = {.call = NULL};
	int r = resolve_address(e, a, &list, error);
	if (r < 0)
		return r;
	for (const struct addrinfo *i = list; i; i = i->ai_next)
		if ((e->fd = r = one(i, e->options, &fail)) >= 0 || r == -EINTR)
			break;
	freeaddrinfo(list);
	if (r >= 0)
		return 0;
	e->fd = -1;
	return error_call(error, fail.call, e->path, -r);
}

static int tcp_connect(struct endpoint *e, struct fcopy_error *error)
{
	struct address a = {.host = ""};
	parse_address(&a, e->path + strlen(CONNECT), false);
	return try_all(e, &a, try_connect, error);
}

int tcp_listen(struct endpoint *e, const char *address, struct fcopy_error *error)
{
	struct address a = {.host = ""};
	const char *wrong = parse_address(&a, address, true);
	if (wrong)
		return error_refuse(error, e->path, EINVAL, wrong, FCOPY_ADVICE_USAGE);
	int r = try_all(e, &a, try_listen, error);
	if (r == 0)
		socket_describe(e->fd, connection_of(e)->address);
	return r;
}

static int tcp_open(struct endpoint *e, const char *path, int dash, struct fcopy_error *error)
{
	struct address a = {.host = ""};
	bool listens = starts_with(path, LISTEN);
	*e = (struct endpoint){.path = path, .fd = -1, .st.st_mode = S_IFSOCK};
	*connection_of(e) = (struct connection){.connect = listens ? NULL : tcp_connect,
						.listening = listens};
	socket_set_ops(e, dash == STDIN_FILENO);
	if (listens)
		return tcp_listen(e, path + strlen(LISTEN), error);
	const char *wrong = parse_address(&a, path + strlen(CONNECT), false);
	if (!wrong && !a.host[0])
		wrong = "needs HOST:PORT";
	return wrong ? error_refuse(error, path, EINVAL, wrong, FCOPY_ADVICE_USAGE) : 0;
}

const struct stream tcp_stream = {tcp_names, tcp_kind, tcp_open};
