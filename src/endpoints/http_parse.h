/* SPDX-License-Identifier: MIT
 *
 * What an HTTP/1.1 request says (RFC 9110, RFC 9112). Pure functions: no I/O, no allocation. Texts
 * are slices of the caller's buffer. What another server could understand in another way is
 * refused, not guessed.
 */
#ifndef ENDPOINTS_HTTP_PARSE_H
#define ENDPOINTS_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct http_request {
	enum http_method method;
	struct http_text name, target; /* of the method; the target as the client sent it */
	bool old;                      /* HTTP/1.0 */
	bool chunked;                  /* the body has no length in front */
	bool expects;                  /* the client waits for 100 before it sends the body */
	uint64_t length; /* of the body, if content_length.at is set; at most INT64_MAX */
	/* Headers, without the blanks around them. */
	struct http_text host, content_length, transfer_encoding, expect, range, if_range, if_match,
	    if_none_match, if_modified_since, if_unmodified_since;
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

#endif
