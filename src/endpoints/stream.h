/* SPDX-License-Identifier: MIT
 *
 * Operands that are not paths. Each kind is a row in the table of stream.c. Private to
 * src/endpoints.
 *
 * To add an address that becomes a stream socket (others: the top of endpoint.h):
 * 1. NAME.c: the functions of struct stream, after the model of tcp.c, or http.c for requests.
 *    stream.c and this file: one row.
 * 2. Describe it in src/man/fcopy.1, src/cli/help.c, the comment of fcopy_copy() in
 *    include/fcopy.h, and the map in fcopy.c. If such a socket cannot be reset, its peer cannot
 *    distinguish a failed copy from a complete one: state this in STREAMS of fcopy(1).
 * 3. Tests: tests/cli/sockets.bats, tests/check/rules_test.c, tests/cmocka/sockets_test.c,
 *    tests/fuzz/command_line.dict, and endpoints_check() in tests/fuzz/endpoints.c: otherwise the
 *    fuzzer opens what the address names.
 * 4. If it listens: print_reachable() in src/show/listening.c prints the command of the peer.
 */
#ifndef ENDPOINTS_STREAM_H
#define ENDPOINTS_STREAM_H

#include "endpoint.h"

#include <string.h>

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

#endif
