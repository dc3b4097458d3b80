/* SPDX-License-Identifier: MIT
 * SRC and DST that are no names of files: taken apart as far as the resolver, and no further.
 */
#include "fuzz.h"

#include "endpoints/socket.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list);

static const char *operand; /* that is being opened */

/* Knows nobody, but what it is asked must be what the operand says: …HOST:PORT or …[HOST]:PORT, or
 * the port alone. */
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	size_t whole = strlen(operand), tail = strlen(port), before;
	(void)hints;
	(void)list;
	MUST(tail > 0 && tail < whole && strcmp(operand + whole - tail, port) == 0);
	MUST(!strchr(port, ':') && (strspn(port, "0123456789") < tail || atol(port) <= 65535));
	before = whole - tail - 1;
	MUST(operand[before] == ':');
	if (!host)
		return EAI_NONAME;
	size_t length = strlen(host);
	MUST(length > 0 && length < before);
	bool brackets = operand[before - 1] == ']' && operand[before - length - 2] == '[';
	MUST(memcmp(operand + before - length - brackets, host, length) == 0);
	MUST(brackets || !strchr(host, ':'));
	return EAI_NONAME;
}

static void check_connection(struct endpoint *e, int r)
{
	static const struct fcopy_options options = {.api = FCOPY_API, .mode = NULL};
	struct fcopy_error error = {0};
	e->options = &options;
	MUST(e->fd == -1);
	if (r < 0)
		return;
	MUST(!connection_of(e)->listening); /* our resolver knows no address to listen at */
	MUST(connection_of(e)->connect(e, &error) == -EADDRNOTAVAIL);
	MUST(error.reason && error.path == operand && e->fd == -1);
}

void endpoints_check(const char *text)
{
	struct endpoint e;
	struct fcopy_error error = {0};
	bool tcp = tcp_stream.names(text);
	enum fcopy_kind kind = fcopy_operand_kind(text, 0, NULL);
	MUST(!tcp || kind >= FCOPY_KIND_CONNECT);
	if (kind == FCOPY_KIND_PATH)
		return;
	operand = text;
	int r = stream_open(&e, text, 0, &error);
	MUST(r == -error.err && (r == 0 || error.path == text));
	if (tcp)
		check_connection(&e, r);
	else if (r == 0)
		e.ops->abort(&e);
}
