/* SPDX-License-Identifier: MIT
 *
 * http-listen: what a listener and its connections keep, and how they send. Private to
 * src/endpoints.
 */
#ifndef ENDPOINTS_HTTP_H
#define ENDPOINTS_HTTP_H

#include "socket.h"

/* What an HTTP/1.1 request says (RFC 9110, RFC 9112). Pure functions: no I/O, no allocation. Texts
 * are slices of the caller's buffer. What another server could understand in another way is
 * refused, not guessed. */

#define HTTP_HEAD_MAX 8192 /* bytes of request line and headers */
#define HTTP_DATE_MAX 30   /* "Sun, 06 Nov 1994 08:49:37 GMT" and the null byte */

enum http_method {
	HTTP_UNKNOWN,
	HTTP_GET,
	HTTP_HEAD,
	HTTP_PUT,
	HTTP_POST,
	HTTP_OTHER, /* a method of RFC 9110 or PATCH that no resource here has */
};

struct http_text {
	const char *at; /* NULL: the request has no such header */
	size_t length;
};

/* All slices are of one head, which must outlive it. A header that the request does not have is
 * NULL; of what http_parse() has refused, only `name` and `target` may be set. */
struct http_request {
	enum http_method method;
	struct http_text name, target; /* of the method; the target as the client sent it */
	bool old;                      /* HTTP/1.0 */
	bool chunked;                  /* the body has no length in front */
	bool expects;                  /* the client waits for 100 before it sends the body */
	uint64_t length; /* of the body, if content_length.at is set; at most INT64_MAX */
	/* Headers, without the blanks around them. */
	struct http_text host, content_length, content_range, content_type, transfer_encoding,
	    expect, range, if_range, if_match, if_none_match, if_modified_since,
	    if_unmodified_since;
};

/* The length of the head at the start of text, with the empty line that ends it; 0: text does not
 * contain all of it. A bare line feed ends it, too: http_parse() refuses that. */
size_t http_head_length(const char *text, size_t size);

/* Parses a whole head. Returns 0, or the status with which it is to be refused: 400, 413, 417, 501
 * or 505. In both cases `name` and `target` are set if the request line has them. */
int http_parse(struct http_request *, const char *head, size_t length);

/* Does the target, percent-decoded once, name `name` in the root? An empty name is the root. */
bool http_target_is(struct http_text target, const char *name);

/* Parses a date in any of the three formats of RFC 9110. Returns false if it is none. */
bool http_date_parse(struct http_text, int64_t *seconds);
/* Writes a date; a year above 9999 is written as 9999. */
void http_date_write(int64_t seconds, char text[HTTP_DATE_MAX]);

/* The bytes of a file that a response has. */
struct http_answer {
	int status;          /* 200, 206, 304, 412 or 416 */
	uint64_t first, end; /* of 200 and 206: the bytes [first, end) */
};

/* Evaluates the conditions of a GET or HEAD, in the order of RFC 9110, section 13.2.2, and then its
 * range. etag: a strong entity tag with its quotes. */
struct http_answer http_evaluate(const struct http_request *, const char *etag, int64_t modified,
				 uint64_t size);

/* The heads of HTTP responses, as text. Pure functions: no I/O, no allocation. */

#define HTTP_RESPONSE_MAX 2048 /* bytes of a head, and of a short text after it */
#define HTTP_ETAG_MAX     96

/* A strong entity tag, with its quotes: another inode, size or change time is another file. */
void http_etag(const struct stat *, uint64_t size, char etag[HTTP_ETAG_MAX]);

/* The functions below write to a buffer of HTTP_RESPONSE_MAX bytes, and return the length. */

/* The head for a file of that size and name: a.status is 200, 206 or 304. */
size_t http_write_file(char *to, struct http_answer a, const struct stat *, uint64_t size,
		       const char *name, int64_t now);
/* The head of a text of `length` bytes. */
size_t http_write_list(char *to, size_t length, int64_t now);
/* A whole response: its body is `text`, one line, unless the status has none or `bodiless`. size:
 * of the file, for 416. allow: the methods, for 405. */
size_t http_write_text(char *to, int status, const char *text, bool bodiless, uint64_t size,
		       const char *allow, int64_t now);

/* The clients of an HTTP server before and after they are served: those whose request has not
 * arrived yet, and those that were refused and have yet to close. They cost no thread, and none of
 * them delays another. */

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
 * the caller's, to be freed with its descriptor; -ETIMEDOUT; -EINTR if cancelled; or another -errno
 * with the call. */
int http_room_next(struct http_room *, const struct io *, struct http_guest **, struct failure *);
/* Answers a client by `text` and closes its connection in order: takes the guest. */
void http_room_dismiss(struct http_room *, struct http_guest *, const char *text, size_t length);

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
	bool early; /* the client closed its side before it was sent */
	struct stat st;
} __attribute__((may_alias));
_Static_assert(sizeof(struct http) <= ENDPOINT_STATE, "increase ENDPOINT_STATE");

#define http_of(e)                                                                                 \
	_Generic((e), const struct endpoint *                                                      \
		 : (const struct http *)(const void *)(e)->state, default                          \
		 : (struct http *)(void *)(e)->state)

extern const struct endpoint_ops http_serves, http_receives;

/* Sends all of it; `more` follows at once. Returns 0, or -errno with the failure recorded. */
int http_send(struct endpoint *, const void *, size_t, bool more, struct fcopy_error *);
/* Sets the deadlines of the connection. */
void http_set_limits(struct endpoint *);
/* Parses the request of the guest. Returns 0, or the status with which it is refused. */
int http_read(struct http_request *, const struct http_guest *);
const char *http_method_name(const struct http_request *);
/* Frees the guest, not its descriptor, or the room. */
void http_forget(struct endpoint *);
void http_abort(struct endpoint *);

#endif
