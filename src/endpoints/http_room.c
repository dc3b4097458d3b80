/* SPDX-License-Identifier: MIT
 * The clients that wait, and the connections of those that are served: see http.h.
 */
#include "http.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <time.h>

#define GUESTS_MAX    1024
#define HEAD_SECONDS  10.0 /* for the whole head: a limit between bytes would never end */
#define LEAVE_SECONDS 2.0  /* a client may take so long to read its answer and close */
#define READS         16   /* of a client that leaves: the others wait */
#define ACCEPTS       64

struct http_room {
	int listener;
	size_t count, most;
	struct http_guest *guest[GUESTS_MAX]; /* the oldest first */
	struct pollfd poll[GUESTS_MAX + 1];
};

struct http_room *http_room_new(int listener)
{
	struct rlimit files = {.rlim_cur = 1024};
	struct http_room *room = calloc(1, sizeof(*room));
	if (!room)
		return NULL;
	getrlimit(RLIMIT_NOFILE, &files);
	room->listener = listener;
	room->most = MAX(1, MIN(GUESTS_MAX, files.rlim_cur / 4));
	return room;
}

static void close_guest(struct http_guest *g)
{
	close(g->fd);
	free(g);
}

static struct http_guest *take_out(struct http_room *room, size_t i)
{
	struct http_guest *g = room->guest[i];
	room->count--;
	for (size_t to = i; to < room->count; to++)
		room->guest[to] = room->guest[to + 1];
	return g;
}

void http_room_free(struct http_room *room)
{
	while (room && room->count > 0)
		close_guest(take_out(room, room->count - 1));
	free(room);
}

/* Makes room: the client that waited longest had the most time. */
static void put_in(struct http_room *room, struct http_guest *g)
{
	if (room->count == room->most)
		close_guest(take_out(room, 0));
	room->guest[room->count++] = g;
}

static bool is_busy(int err)
{
	return err == EAGAIN || err == EINTR;
}

enum progress { WAITS, WHOLE, GONE };

/* Takes no byte of the body, which is left to the engine that copies it. */
static enum progress read_head(struct http_guest *g)
{
	char *to = g->head + g->length;
	ssize_t n = recv(g->fd, to, sizeof(g->head) - g->length, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 && is_busy(errno) ? WAITS : GONE;
	const size_t whole = http_head_length(g->head, g->length + (size_t)n);
	n = recv(g->fd, to, whole ? whole - g->length : (size_t)n, MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 && is_busy(errno) ? WAITS : GONE;
	g->length += (size_t)n;
	if (whole > 0)
		return g->length == whole ? WHOLE : WAITS;
	if (g->length < sizeof(g->head))
		return WAITS;
	g->status = memchr(g->head, '\n', g->length) ? 431 : 414;
	return WHOLE;
}

static enum progress discard(const struct http_guest *g)
{
	char buffer[4096];
	ssize_t n = 1;
	for (int i = 0; i < READS && n > 0; i++)
		n = recv(g->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	return n > 0 || (n < 0 && is_busy(errno)) ? WAITS : GONE;
}

static enum progress advance(struct http_guest *g)
{
	return g->leaves ? discard(g) : read_head(g);
}

/* Sends the answer, which fits into the send buffer of a new connection. */
static void answer(struct http_guest *g, const char *text, size_t length)
{
	const struct linger in_order = {0};
	g->leaves = true;
	g->until = io_now() + LEAVE_SECONDS;
	setsockopt(g->fd, SOL_SOCKET, SO_LINGER, &in_order, sizeof(in_order));
	(void)!send(g->fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(g->fd, SHUT_WR);
}

void http_room_dismiss(struct http_room *room, struct http_guest *g, const char *text,
		       size_t length)
{
	answer(g, text, length);
	put_in(room, g);
}

/* Ends the clients whose time is over. One that has sent a part of its request learns why. */
static void expire(struct http_room *room)
{
	const double now = io_now();
	for (size_t i = 0; i < room->count;) {
		struct http_guest *g = room->guest[i];
		char text[HTTP_RESPONSE_MAX];
		if (g->until > now) {
			i++;
		} else if (g->leaves || g->length == 0) {
			close_guest(take_out(room, i));
		} else {
			const size_t length = http_write_text(text, 408, NULL, false, 0, "",
							      time(NULL));
			answer(g, text, length);
			i++;
		}
	}
}

/* Returns a client whose head is whole, of those that poll(2) reported; NULL: there is none. */
static struct http_guest *find_whole(struct http_room *room)
{
	for (size_t i = 0, at = 1; i < room->count; at++) {
		const enum progress p = room->poll[at].revents ? advance(room->guest[i]) : WAITS;
		if (p == WHOLE)
			return take_out(room, i);
		if (p == GONE)
			close_guest(take_out(room, i));
		else
			i++;
	}
	return NULL;
}

/* Accepts clients. The request of most is there already. Returns 1: *guest is one whose head is
 * whole; 0: there is none; or the -errno of accept(2). */
static int accept_guests(struct http_room *room, struct http_guest **guest, struct failure *fail)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct http_guest *g = malloc(sizeof(*g));
		if (!g)
			return fail_if(fail, -ENOMEM, "malloc");
		*g = (struct http_guest){.until = io_now() + HEAD_SECONDS};
		g->fd = socket_take(room->listener, g->address, fail);
		if (g->fd < 0) {
			const int r = g->fd;
			free(g);
			return r == -EAGAIN ? 0 : r;
		}
		const enum progress p = read_head(g);
		if (p == WHOLE) {
			*guest = g;
			return 1;
		}
		if (p == GONE)
			close_guest(g);
		else
			put_in(room, g);
	}
	return 0;
}

/* Milliseconds until the first client's time is over, at most `most`. */
static int time_left(const struct http_room *room, double most_ms)
{
	const double now = io_now();
	for (size_t i = 0; i < room->count; i++)
		most_ms = MIN(most_ms, (room->guest[i]->until - now) * 1e3);
	return most_ms <= 0 ? 0 : most_ms > 60000 ? 60000 : (int)most_ms + 1;
}

static int wait_for_input(struct http_room *room, double most_ms)
{
	room->poll[0] = (struct pollfd){.fd = room->listener, .events = POLLIN};
	for (size_t i = 0; i < room->count; i++)
		room->poll[i + 1] = (struct pollfd){.fd = room->guest[i]->fd,
						    .events = POLLIN | POLLRDHUP};
	const int n = poll(room->poll, room->count + 1, time_left(room, most_ms));
	if (n < 0)
		for (size_t i = 0; i <= room->count; i++)
			room->poll[i].revents = 0;
	return n < 0 && errno != EINTR ? -errno : 0;
}

int http_room_next(struct http_room *room, const struct io *io, struct http_guest **guest,
		   struct failure *fail)
{
	const double start = io_now(), limit_ms = io->timeout_ms > 0 ? io->timeout_ms : 1e12;
	for (;;) {
		const double left_ms = limit_ms - (io_now() - start) * 1e3;
		if (io_cancelled(io))
			return -EINTR;
		if (left_ms <= 0)
			return -ETIMEDOUT;
		int r = fail_if(fail, wait_for_input(room, left_ms), "poll");
		if (r < 0)
			return r;
		const bool arrivals = room->poll[0].revents;
		if ((*guest = find_whole(room)))
			return 0;
		expire(room);
		r = arrivals ? accept_guests(room, guest, fail) : 0;
		if ((r == -EMFILE || r == -ENFILE) && room->count > 0) {
			close_guest(take_out(room, 0));
			r = 0;
		}
		if (r != 0)
			return r < 0 ? r : 0;
	}
}

/* A connection of a client, whether it gets a file or sends one. */

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

void http_set_limits(struct endpoint *e)
{
	http_of(e)->io = (struct io){.cancel = e->options->cancel,
				     .timeout_ms = socket_timeout_ms(e->options)};
}

int http_send(struct endpoint *e, const void *from, size_t n, bool more, struct fcopy_error *error)
{
	struct io *io = &http_of(e)->io;
	const char *at = from;
	while (n > 0) {
		ssize_t put = send(e->fd, at, n, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
		if (put > 0) {
			at += put;
			n -= (size_t)put;
			io->waits = 0;
			continue;
		}
		int r = errno == EAGAIN  ? io_wait_again(io, e->fd, POLLOUT)
			: errno == EINTR ? io_cancelled(io) ? -EINTR : 0
					 : -errno;
		if (r < 0)
			return error_call(error, "send", e->path, -r);
	}
	return 0;
}
