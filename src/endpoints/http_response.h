/* SPDX-License-Identifier: MIT
 *
 * The heads of HTTP responses, as text. Pure functions: no I/O, no allocation.
 */
#ifndef ENDPOINTS_HTTP_RESPONSE_H
#define ENDPOINTS_HTTP_RESPONSE_H

#include "http_parse.h"

#include <sys/stat.h>

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

#endif
