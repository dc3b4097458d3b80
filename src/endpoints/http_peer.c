/* SPDX-License-Identifier: MIT
 * A connection of an HTTP client, whether it gets a file or sends one.
 */
#include "http.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

void http_forget(struct endpoint *e)
{
	struct http *h = http_of(e);
	http_room_free(h->room);
	free(h->guest);
	h->room = NULL;
	h->guest = NULL;
}

void http_abort(struct endpoint *e)
{
	http_forget(e);
	socket_abort(e);
}

int http_read(struct http_request *r, const struct http_guest *g)
{
	if (g->status == 0)
		return http_parse(r, g->head, g->length);
	*r = (struct http_request){.method = HTTP_UNKNOWN};
	return g->status;
}

const char *http_method_name(const struct http_request *r)
{
	static const char *const names[] = {
	    [HTTP_UNKNOWN] = "other", [HTTP_GET] = "GET",   [HTTP_HEAD] = "HEAD",
	    [HTTP_PUT] = "PUT",       [HTTP_POST] = "POST", [HTTP_OTHER] = "other"};
	return names[r->method];
}

void http_set_limits(struct endpoint *e, const struct fcopy_options *options)
{
	http_of(e)->io = (struct io){.cancel = options->cancel,
				     .timeout_ms = socket_timeout_ms(options)};
}

int http_send(struct endpoint *e, const void *from, size_t n, bool more)
{
	struct io *io = &http_of(e)->io;
	const char *at = from;
	while (n > 0) {
		ssize_t put = send(e->fd, at, n, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
		if (put > 0) {
			at += put;
			n -= (size_t)put;
			io_moved(io);
			continue;
		}
		int r = errno == EAGAIN  ? io_wait_again(io, e->fd, POLLOUT)
			: errno == EINTR ? io_cancelled(io) ? -EINTR : 0
					 : -errno;
		if (r < 0)
			return r;
	}
	return 0;
}
