/* SPDX-License-Identifier: MIT
 *
 * Operands that are not paths, and stream sockets, whatever their address family. Private to
 * src/endpoints.
 *
 * Each kind of operand is a row in the table of source.c. To add an address that becomes a stream
 * socket (others: the top of endpoint.h):
 * 1. NAME.c: the functions of struct stream, after the model of tcp.c, or http.c for requests.
 *    source.c and this file: one row.
 * 2. Describe it in src/man/fcopy.1, src/cli/help.c, the comment of fcopy_copy() in
 *    include/fcopy.h, and the map in fcopy.c. If such a socket cannot be reset, its peer cannot
 *    distinguish a failed copy from a complete one: state this in STREAMS of fcopy(1).
 * 3. Tests: tests/cli/sockets.bats, tests/check/rules_test.c, tests/cmocka/sockets_test.c,
 *    tests/fuzz/command_line.dict, and endpoints_check() in tests/fuzz/endpoints.c: otherwise the
 *    fuzzer opens what the address names.
 * 4. If it listens: print_receive() in src/show/listening.c prints the command of the peer.
 */
#ifndef ENDPOINTS_SOCKET_H
#define ENDPOINTS_SOCKET_H

#include "endpoint.h"

#include <sys/socket.h>

static inline bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

struct stream {
	bool (*names)(const char *operand); /* is the operand of this kind? */
	/* See fcopy_operand_kind(); *fd is -1, or receives the descriptor that the operand names.
	 */
	enum fcopy_kind (*kind)(const char *operand, int dash, int *fd);
	/* dash: STDIN_FILENO for SRC, STDOUT_FILENO for DST. Returns 0, or -errno with the failure
	 * recorded and nothing open. A connection is made later, by the start operation. */
	int (*open)(struct endpoint *, const char *operand, int dash, struct fcopy_error *);
};

extern const struct stream tcp_stream;        /* tcp:HOST:PORT, tcp-listen:[HOST:]PORT */
extern const struct stream http_stream;       /* http-listen:[HOST:]PORT */
extern const struct stream descriptor_stream; /* -, /dev/stdin, /dev/fd/3, fd:3 */

int stream_open(struct endpoint *, const char *operand, int dash, struct fcopy_error *);

/* What a socket adds; stored in endpoint.state. */
struct connection {
	/* connects when the endpoint is started; NULL: connected, or listening */
	int (*connect)(struct endpoint *, struct fcopy_error *);
	bool listening; /* a listener that start has not replaced by a connection */
	bool listened;  /* the connection was accepted from it */
	bool confirmed; /* commit saw the peer close: it has all data */
	char address[FCOPY_ADDRESS_MAX]; /* where it listens; after start, of the peer */
	/* What socket_adopt changed of the caller's socket, to be restored: its status flags (0:
	 * the socket is not the caller's), SO_RCVLOWAT and SO_LINGER. */
	int flags, low_water;
	struct linger linger;
} __attribute__((may_alias));
_Static_assert(sizeof(struct connection) <= ENDPOINT_STATE, "increase ENDPOINT_STATE");

#define connection_of(e)                                                                           \
	_Generic((e), const struct endpoint *                                                      \
		 : (const struct connection *)(const void *)(e)->state, default                          \
		 : (struct connection *)(void *)(e)->state)

/* socket.c: makes the open socket e->fd an endpoint, SRC or DST. Sets only the operations; the
 * caller sets *connection_of(e). */
void socket_set_ops(struct endpoint *e, bool source);
/* The same for a stream socket that the caller of the program has opened: abort will reset the
 * connection. Commit and abort restore O_NONBLOCK and SO_RCVLOWAT, and commit SO_LINGER, because
 * the caller may still use the socket; SO_LINGER of a listener is not changed. Returns 0, or -errno
 * with the failure recorded. */
int socket_adopt(struct endpoint *e, bool source, struct fcopy_error *);
/* From now on close(2) resets the connection. Set it right after socket(2), so that a process that
 * is killed resets, too; a listener's connections inherit it (SO_LINGER, socket(7)). Returns false
 * if setsockopt(2) fails. */
bool socket_set_reset(int fd);
/* Writes the socket's local address as HOST:PORT; empty for an address family without ports. */
void socket_describe(int fd, char text[FCOPY_ADDRESS_MAX]);
/* The longest idle time in milliseconds; negative: no limit. */
int socket_timeout_ms(const struct fcopy_options *);
/* The value of an option of level SOL_SOCKET, or -errno. */
int socket_get_option(int fd, int name);

/* Accepts a connection of a nonblocking listener, which closing it resets. Returns its descriptor
 * and writes the peer's address, or -errno with the call; -EAGAIN: nobody has connected. */
int socket_take(int listener, char address[FCOPY_ADDRESS_MAX], struct failure *);
/* Makes *e a copy of the listener for the connection fd. Its address is to be set. */
void socket_become(struct endpoint *e, const struct endpoint *listener, int fd);
/* The options of a connection that carries data. Returns false with errno. */
bool socket_prepare(int fd);
/* From now on close(2) ends the connection in order. */
int socket_end_in_order(struct endpoint *, struct fcopy_error *);

/* Operations that other kinds of sockets share. */
/* Half-closes, and waits for the receipt. early: the peer closed its side before it could know that
 * it has everything, which is no receipt. */
int socket_end_stream(struct endpoint *, bool early, struct fcopy_error *);
void socket_abort(struct endpoint *);
const char *socket_listens(const struct endpoint *);
const char *socket_peer(const struct endpoint *);
enum endpoint_receipt socket_receipt(const struct endpoint *);

/* tcp.c: listens at [HOST:]PORT, the end of e->path that starts at `address`, and describes it in
 * the connection. Returns 0, or -errno with the failure recorded. */
int tcp_listen(struct endpoint *, const char *address, struct fcopy_error *);
/* Is the port of the address 0: any free one? */
bool tcp_is_any_port(const char *address);

/* socket.c: has the peer closed or half-closed its side? To be asked before shutdown(2): a close
 * that the peer sent before our end of stream does not confirm anything. */
bool receipt_is_early(int fd);
/* Waits until the peer has acknowledged every byte; closes: after the half-close of fd, until it
 * closes. Returns 1 if it did; 0 if it stays open; or -errno: -ETIMEDOUT after timeout_ms without
 * progress (negative: no limit), -EINTR if *cancel becomes non-zero. */
int receipt_await(int fd, bool closes, int timeout_ms, const volatile int *cancel);

#endif
