/* SPDX-License-Identifier: MIT
 * http-listen:[HOST:]PORT. As DST it answers GET and HEAD of any number of clients; http_upload.c
 * takes one upload. A library would move the bytes itself: then no mode could be chosen.
 *
 * Nothing is opened by what a client asks for: the files are open, and their names are compared.
 * The body of a response goes through an engine, as every copy does, except for its last byte. That
 * is sent only if the file has not changed by then; otherwise the connection is reset, so that no
 * client takes a mixture of two versions for the file.
 */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <time.h>

#define LISTEN "http-listen:"

static bool http_names(const char *path)
{
	return starts_with(path, LISTEN);
}

bool operand_is_http(const char *path)
{
	return http_names(path);
}

static enum fcopy_kind http_kind(const char *path, int dash, int *fd)
{
	(void)dash, (void)fd;
	return tcp_is_any_port(path) ? FCOPY_KIND_HTTP_ANY : FCOPY_KIND_HTTP;
}

static int http_open(struct endpoint *e, const char *path, int dash, struct fcopy_error *error)
{
	*e = (struct endpoint){.path = path, .fd = -1, .st.st_mode = S_IFSOCK};
	*http_of(e) = (struct http){.connection.listening = true, .file = -1, .last = -1};
	e->ops = dash == STDIN_FILENO ? &http_receives : &http_serves;
	e->finishes = e->ops->finish;
	int r = tcp_listen(e, path + strlen(LISTEN), error);
	if (r < 0)
		return r;
	http_of(e)->room = http_room_new(e->fd);
	if (http_of(e)->room)
		return 0;
	error_call(error, "calloc", path, errno);
	endpoint_close(e);
	return -error->err;
}

const struct stream http_stream = {http_names, http_kind, http_open};

/* A listener: waits for a client whose request is there. */
static int http_accept(const struct endpoint *listener, const struct io *io, struct endpoint *e,
		       struct fcopy_error *error)
{
	struct http_guest *g;
	struct failure fail;
	int r = http_room_next(http_of(listener)->room, io, &g, &fail);
	if (r < 0)
		return error_call(error, fail.call, listener->path, -r);
	socket_become(e, listener, g->fd);
	http_of(e)->room = NULL;
	http_of(e)->guest = g;
	memcpy(connection_of(e)->address, g->address, sizeof(g->address));
	return 0;
}

/* Sends a line of text instead of a file. Returns 0 or -errno. */
static int refuse(struct endpoint *e, struct demand *d, int status, uint64_t size,
		  struct fcopy_error *error)
{
	char text[HTTP_RESPONSE_MAX];
	const bool bodiless = http_of(e)->request.method == HTTP_HEAD;
	d->http.status = status;
	const size_t n = http_write_text(text, status, NULL, bodiless, size, "GET, HEAD",
					 time(NULL));
	return http_send(e, text, n, false, error);
}

/* What would not be a plain word in a list of names, or in a URL. */
static void write_escaped(FILE *f, const char *name)
{
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		fprintf(f, *c > ' ' && *c != 0x7f && !strchr("%?#", *c) ? "%c" : "%%%02X", *c);
}

/* The names of the files, a line for each. */
static int list_names(struct endpoint *e, const struct offer *o, struct demand *d,
		      struct fcopy_error *error)
{
	char head[HTTP_RESPONSE_MAX], *text = NULL;
	size_t length = 0;
	FILE *f = open_memstream(&text, &length);
	for (size_t i = 0; f && i < o->count; i++) {
		write_escaped(f, o->name[i]);
		fputc('\n', f);
	}
	if (!f || fclose(f) != 0) {
		free(text);
		return error_call(error, "malloc", e->path, ENOMEM);
	}
	d->http.status = 200;
	const bool body = http_of(e)->request.method == HTTP_GET;
	const size_t n = http_write_list(head, length, time(NULL));
	int r = http_send(e, head, n, body && length > 0, error);
	if (r == 0 && body)
		r = http_send(e, text, length, false, error);
	free(text);
	return r;
}

/* The file that the target names. Returns its index; count: the list; -1: none. */
static ssize_t find_file(const struct offer *o, struct http_text target)
{
	if (http_target_is(target, ""))
		return o->count == 1 ? 0 : (ssize_t)o->count;
	for (size_t i = 0; i < o->count; i++)
		if (http_target_is(target, o->name[i]))
			return (ssize_t)i;
	return -1;
}

/* The status with which the request is refused, whatever it is of; or 0. */
static int check_method(const struct http_request *r)
{
	return r->method == HTTP_UNKNOWN                         ? 501
	       : r->method == HTTP_GET || r->method == HTTP_HEAD ? 0
								 : 405;
}

/* Sends the head of the response, and prepares its body. */
static int answer_file(struct endpoint *e, const char *name, struct demand *d,
		       struct fcopy_error *error)
{
	struct http *h = http_of(e);
	char head[HTTP_RESPONSE_MAX], etag[HTTP_ETAG_MAX];
	if (fstat(d->file->fd, &d->st) < 0)
		return error_call(error, "fstat", d->file->path, errno);
	uint64_t size = (uint64_t)d->st.st_size;
	if (e->options->count > 0)
		size = MIN(size, e->options->count);
	http_etag(&d->st, size, etag);
	const struct http_answer a = http_evaluate(&h->request, etag, d->st.st_mtim.tv_sec, size);
	if (a.status == 412 || a.status == 416)
		return refuse(e, d, a.status, size, error);
	const bool body = h->request.method == HTTP_GET && a.end > a.first;
	d->http.status = a.status;
	const size_t n = http_write_file(head, a, &d->st, size, name, time(NULL));
	int r = http_send(e, head, n, body, error);
	if (r < 0)
		return r;
	if (h->request.method == HTTP_GET && a.status != 304) {
		d->http.first = a.first;
		d->http.length = a.end - a.first;
		d->http.last = a.end == size; /* once it was delivered */
	}
	if (!body)
		return 0;
	d->first = (off_t)a.first;
	d->last = h->last = (off_t)a.end - 1;
	h->file = d->file->fd;
	h->st = d->st;
	h->sent = d->last - d->first;
	return 1;
}

static int answer_request(struct endpoint *e, const struct offer *o, struct demand *d,
			  struct fcopy_error *error)
{
	struct http *h = http_of(e);
	if (!socket_prepare(e->fd))
		return error_call(error, "setsockopt", e->path, errno);
	int status = http_read(&h->request, h->guest);
	d->http.method = http_method_name(&h->request);
	if (status == 0)
		status = check_method(&h->request);
	if (status)
		return refuse(e, d, status, 0, error);
	const ssize_t i = find_file(o, h->request.target);
	if (i < 0)
		return refuse(e, d, 404, 0, error);
	if ((size_t)i == o->count)
		return list_names(e, o, d, error);
	d->file = &o->file[i];
	d->http.file = d->file->path;
	return answer_file(e, o->name[i], d, error);
}

static int http_answer(struct endpoint *e, const struct offer *o, struct demand *d,
		       struct fcopy_error *error)
{
	*d = (struct demand){.file = NULL};
	http_set_limits(e);
	int r = answer_request(e, o, d, error);
	if (r < 0)
		d->http.status = 0; /* no response was sent */
	return r;
}

/* An unlink changes the change time, but no byte: who has the old file may have all of it. */
static bool has_changed(const struct stat *a, const struct stat *b)
{
	const bool other = a->st_nlink != b->st_nlink || a->st_mode != b->st_mode ||
			   a->st_uid != b->st_uid || a->st_gid != b->st_gid;
	return a->st_size != b->st_size || !same_mtime(a, b) || (!other && !same_ctime(a, b));
}

/* May pages of the file, and not copies, have been queued? Over loopback, what is acknowledged may
 * still be such a page, in the receiver's queue. */
static bool http_queues_pages(const struct endpoint *e)
{
	const struct fcopy_mode *m = e->options->mode;
	return m && m->engine
		   ? strcmp(m->engine, "sendfile") == 0 || strcmp(m->engine, "splice") == 0
		   : http_of(e)->sent >= DEMAND_QUEUED;
}

/* Sends the last byte of the body, if the file is what it was. */
static int http_finish(struct endpoint *e, struct fcopy_error *error)
{
	struct http *h = http_of(e);
	struct stat now;
	char byte;
	h->early = receipt_is_early(e->fd);
	if (h->last < 0)
		return 0;
	int r = http_queues_pages(e)
		    ? receipt_await(e->fd, false, h->io.timeout_ms, e->options->cancel)
		    : 0;
	if (r < 0)
		return error_operation(error, "waiting for the receiver", "ioctl", e->path, -r);
	ssize_t got = io_read(&h->io, h->file, &byte, 1, h->last);
	if (got < 0)
		return error_call(error, "read", e->path, (int)-got);
	if (fstat(h->file, &now) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (got == 0 || has_changed(&now, &h->st))
		return error_refuse(error, e->path, EBUSY,
				    "the file changed while it was sent: the client was cut off",
				    FCOPY_ADVICE_NONE);
	if (e->options->strict && now.st_nlink == 0)
		return error_refuse(error, e->path, EBUSY,
				    "the file was replaced or removed while it was sent",
				    FCOPY_ADVICE_NONE);
	/* A client knows the length: it may close as soon as it has this byte. */
	h->early = receipt_is_early(e->fd);
	return http_send(e, &byte, 1, false, error);
}

static int http_commit(struct endpoint *e, struct fcopy_error *error)
{
	int r = socket_end_stream(e, http_of(e)->early, error);
	if (r == 0)
		http_forget(e);
	return r;
}

const struct endpoint_ops http_serves = {.finish = http_finish,
					 .commit = http_commit,
					 .abort = http_abort,
					 .listens = socket_listens,
					 .peer = socket_peer,
					 .timeout_ms = socket_timeout_ms,
					 .accept = http_accept,
					 .receipt = socket_receipt,
					 .answer = http_answer};
