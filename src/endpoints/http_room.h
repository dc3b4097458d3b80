/* SPDX-License-Identifier: MIT
 *
 * The clients of an HTTP server before and after they are served: those whose request has not
 * arrived yet, and those that were refused and have yet to close. They cost no thread, and none of
 * them delays another. Private to src/endpoints.
 */
#ifndef ENDPOINTS_HTTP_ROOM_H
#define ENDPOINTS_HTTP_ROOM_H

#include "http_parse.h"
#include "socket.h"

struct io;
struct http_room;

/* One client, with the head of its request. */
struct http_guest {
	int fd;
	bool leaves;   /* it was answered: only discard what it sends */
	double until;  /* io_now() when it has to be done */
	int status;    /* with which it must be refused, because its head is too long; 0: none */
	size_t length; /* bytes of the head so far; once it is whole, all that was read */
	char address[FCOPY_ADDRESS_MAX];
	char head[HTTP_HEAD_MAX];
};

/* Returns NULL with errno. The listener stays the caller's. */
struct http_room *http_room_new(int listener);
/* Resets the connections that are still in it. room may be NULL. */
void http_room_free(struct http_room *room);

/* Waits at most io->timeout_ms for a client whose head is whole, or too long. Returns 0: *guest is
 * the caller's, to be freed with its descriptor; -ETIMEDOUT; -EINTR if cancelled; or the -errno of
 * *call. */
int http_room_next(struct http_room *, const struct io *, struct http_guest **, const char **call);
/* Answers a client by `text` and closes its connection in order: takes the guest. */
void http_room_dismiss(struct http_room *, struct http_guest *, const char *text, size_t length);

#endif
