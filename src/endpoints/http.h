/* SPDX-License-Identifier: MIT
 *
 * http-listen: what a listener and its connections keep, and how they send. Private to
 * src/endpoints.
 */
#ifndef ENDPOINTS_HTTP_H
#define ENDPOINTS_HTTP_H

#include "http_parse.h"
#include "http_room.h"
#include "io/io.h"
#include "socket.h"

/* Begins with the connection, so that what sockets share finds it. */
struct http {
	struct connection connection;
	struct http_room *room;   /* a listener's */
	struct http_guest *guest; /* a connection's: NULL before start */
	struct http_request request;
	struct io io;
	/* GET: the last byte of the response, kept back until the file was seen not to have
	 * changed. */
	int file;
	off_t last; /* its offset; negative: none */
	off_t sent; /* bytes of the response before it */
	struct stat st;
} __attribute__((may_alias));
_Static_assert(sizeof(struct http) <= ENDPOINT_STATE, "increase ENDPOINT_STATE");

#define http_of(e)                                                                                 \
	_Generic((e), const struct endpoint *                                                      \
		 : (const struct http *)(const void *)(e)->state, default                          \
		 : (struct http *)(void *)(e)->state)

extern const struct endpoint_ops http_serves, http_receives;

/* Sends all of it; `more` follows at once. Returns 0 or -errno. */
int http_send(struct endpoint *, const void *, size_t, bool more);
/* Sets the deadlines of the connection. */
void http_set_limits(struct endpoint *, const struct fcopy_options *);
/* Parses the request of the guest. Returns 0, or the status with which it is refused. */
int http_read(struct http_request *, const struct http_guest *);
const char *http_method_name(const struct http_request *);
/* Frees the guest, not its descriptor, or the room. */
void http_forget(struct endpoint *);
void http_abort(struct endpoint *);

#endif
