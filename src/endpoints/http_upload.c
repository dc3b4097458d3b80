/* SPDX-License-Identifier: MIT
 * http-listen:[HOST:]PORT as SRC: takes one upload. What cannot be one is answered and dismissed,
 * without delaying the next client. The response is sent when the outcome of the copy is known: 201
 * or 204 say that DST has its name, and was flushed if that was asked for.
 */
#include "http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NO_LIMIT 1000000000 /* milliseconds */

/* / or /NAME: the name is not used, but curl(1) appends one to a URL that ends in a slash. */
static bool is_flat(struct http_text target)
{
	return target.length > 0 && target.at[0] == '/' &&
	       !memchr(target.at + 1, '/', target.length - 1);
}

/* A part of a file, as curl -C sends it, must not become the file (RFC 9110, section 14.5). */
static bool is_whole(const struct http_request *r)
{
	char whole[64];
	const int n = snprintf(whole, sizeof(whole), "bytes 0-%" PRIu64 "/%" PRIu64, r->length - 1,
			       r->length);
	return !r->content_range.at || (r->length > 0 && r->content_range.length == (size_t)n &&
					memcmp(r->content_range.at, whole, (size_t)n) == 0);
}

/* If-None-Match: * must not replace a file. Whether DST fulfils a condition at the commit is not
 * known here. */
static bool is_conditional(const struct http_request *r)
{
	return r->if_match.at || r->if_none_match.at || r->if_unmodified_since.at;
}

/* A form has the file between other lines, which would become part of it. */
static bool is_form(const struct http_request *r)
{
	const char form[] = "multipart/";
	return r->content_type.length >= sizeof(form) - 1 &&
	       strncasecmp(r->content_type.at, form, sizeof(form) - 1) == 0;
}

/* The status with which the request is refused, or 0. *why: what to do, or the reason; NULL: the
 * status says it. */
static int check_upload(const struct http_request *r, const char **why)
{
	*why = NULL;
	if (r->method == HTTP_UNKNOWN)
		return 501;
	if (r->method != HTTP_PUT && r->method != HTTP_POST) {
		*why = "send the file with PUT: curl -fT FILE URL";
		return 405;
	}
	if (!is_flat(r->target))
		return 404;
	if (r->chunked) {
		*why = "the length must be known before the body";
		return 501;
	}
	if (is_form(r)) {
		*why = "a form is more than the file: curl -fT FILE URL";
		return 415;
	}
	if (is_conditional(r)) {
		*why = "an upload with a condition is not supported";
		return 501;
	}
	if (!r->content_length.at)
		return 411;
	if (!is_whole(r))
		*why = "send the whole file, not a range of it";
	return *why ? 400 : 0;
}

/* Waits for a client with an upload. Returns 0, or -errno with the call. */
static int await_upload(struct endpoint *e, struct failure *fail)
{
	struct http *h = http_of(e);
	const struct io io = {.cancel = e->options->cancel, .timeout_ms = NO_LIMIT};
	for (;;) {
		struct http_guest *g;
		char text[HTTP_RESPONSE_MAX];
		int r = http_room_next(h->room, &io, &g, fail);
		if (r == -ETIMEDOUT)
			continue;
		if (r < 0)
			return r;
		const char *why = NULL;
		int status = http_read(&h->request, g);
		if (status == 0)
			status = check_upload(&h->request, &why);
		if (status == 0) {
			h->guest = g;
			return 0;
		}
		http_room_dismiss(h->room, g, text,
				  http_write_text(text, status, why, h->request.method == HTTP_HEAD,
						  0, "PUT, POST", time(NULL)));
	}
}

static int upload_start(struct endpoint *e, struct fcopy_error *error)
{
	struct http *h = http_of(e);
	struct failure fail = {.call = NULL};
	int r = await_upload(e, &fail);
	if (r < 0)
		return error_call(error, fail.call, e->path, -r);
	const int listener = e->fd;
	socket_become(e, e, h->guest->fd);
	memcpy(connection_of(e)->address, h->guest->address, sizeof(h->guest->address));
	http_room_free(h->room);
	h->room = NULL;
	close(listener);
	http_set_limits(e);
	return socket_prepare(e->fd) ? 0 : error_call(error, "setsockopt", e->path, errno);
}

static off_t upload_length(const struct endpoint *e)
{
	return (off_t)http_of(e)->request.length;
}

static int upload_proceed(struct endpoint *e, struct fcopy_error *error)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	if (!http_of(e)->request.expects || http_of(e)->request.length == 0)
		return 0;
	return http_send(e, go_on, sizeof(go_on) - 1, false, error);
}

/* Either the length or the file is not what the client meant. */
static bool upload_surplus(const struct endpoint *e)
{
	char byte;
	return recv(e->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static int find_status(const struct fcopy_report *report)
{
	if (report->skipped)
		return 409;
	if (io_is_full(report->error.err))
		return 507;
	switch (report->error.err) {
	case 0: return report->existed ? 204 : 201;
	case EMSGSIZE: return 400;
	case EPIPE: return report->error.call ? 500 : 400; /* DST, or the client */
	case ETIMEDOUT: return 408;
	case EINTR: return 503;
	default: return 500;
	}
}

/* Without the path of DST, which is no business of the client's. */
static const char *describe(const struct fcopy_report *report, char *text, size_t size)
{
	const struct fcopy_error *error = &report->error;
	if (report->skipped)
		snprintf(text, size, "not stored: such a file exists by now");
	else if (error->err == EINTR)
		snprintf(text, size, "not stored: interrupted");
	else if (error->err == 0)
		snprintf(text, size, "received %" PRIu64 " bytes", report->bytes);
	else
		snprintf(text, size, "not stored: %s",
			 error->reason ? error->reason : strerror(error->err));
	return text;
}

/* After a failure, the client may still be sending: read that, so that the response is not lost in
 * a reset. */
static int upload_reply(struct endpoint *e, struct fcopy_report *report)
{
	struct http *h = http_of(e);
	struct fcopy_error ignored;
	char text[HTTP_RESPONSE_MAX], line[256];
	if (!h->guest || e->fd < 0)
		return 0;
	const int status = find_status(report);
	report->http.method = http_method_name(&h->request);
	const size_t n = http_write_text(text, status, describe(report, line, sizeof(line)), false,
					 0, "", time(NULL));
	int r = http_send(e, text, n, false, &ignored);
	report->http.status = r == 0 ? status : 0;
	if (r == 0 && (r = socket_end_in_order(e, &ignored)) == 0)
		r = shutdown(e->fd, SHUT_WR) < 0 ? -errno : 0;
	if (r == 0)
		r = receipt_await(e->fd, true, socket_timeout_ms(e->options), e->options->cancel);
	if (r >= 0)
		endpoint_close(e);
	return r < 0 ? r : 0;
}

static int upload_commit(struct endpoint *e, struct fcopy_error *error)
{
	(void)error;
	http_forget(e);
	endpoint_close(e);
	return 0;
}

const struct endpoint_ops http_receives = {.start = upload_start,
					   .commit = upload_commit,
					   .abort = http_abort,
					   .listens = socket_listens,
					   .peer = socket_peer,
					   .timeout_ms = socket_timeout_ms,
					   .length = upload_length,
					   .proceed = upload_proceed,
					   .surplus = upload_surplus,
					   .reply = upload_reply};
