/* SPDX-License-Identifier: MIT
 * Responses: see http.h. Each response ends its connection: what a client sends after its
 * request is never taken for another one.
 */
#include "http.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CLOSE "Connection: close\r\n"

static const char *phrase(int status)
{
	switch (status) {
	case 200: return "OK";
	case 201: return "Created";
	case 204: return "No Content";
	case 206: return "Partial Content";
	case 304: return "Not Modified";
	case 400: return "Bad Request";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 411: return "Length Required";
	case 412: return "Precondition Failed";
	case 413: return "Content Too Large";
	case 414: return "URI Too Long";
	case 416: return "Range Not Satisfiable";
	case 417: return "Expectation Failed";
	case 431: return "Request Header Fields Too Large";
	case 501: return "Not Implemented";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	case 507: return "Insufficient Storage";
	default: return "Internal Server Error";
	}
}

struct head {
	char *to;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static void add(struct head *h, const char *format, ...)
{
	const size_t left = HTTP_RESPONSE_MAX - h->size;
	va_list args;
	va_start(args, format);
	const int n = vsnprintf(h->to + h->size, left, format, args);
	va_end(args);
	h->size += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left - 1;
}

static struct head begin(char *to, int status, int64_t now)
{
	struct head h = {to, 0};
	char date[HTTP_DATE_MAX];
	http_date_write(now, date);
	add(&h, "HTTP/1.1 %d %s\r\nDate: %s\r\n" CLOSE, status, phrase(status), date);
	return h;
}

void http_etag(const struct stat *st, uint64_t size, char etag[HTTP_ETAG_MAX])
{
	snprintf(etag, HTTP_ETAG_MAX, "\"%jx-%jx-%jx-%jx.%lx\"", (uintmax_t)st->st_dev,
		 (uintmax_t)st->st_ino, (uintmax_t)size, (uintmax_t)st->st_ctim.tv_sec,
		 (unsigned long)st->st_ctim.tv_nsec);
}

/* RFC 6266: the name in ASCII for old clients, and in UTF-8 for the others. The client saves the
 * file under it, and opens nothing by itself. */
static void add_name(struct head *h, const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";
	add(h, "Content-Disposition: attachment; filename=\"");
	for (const char *c = name; *c; c++)
		add(h, "%c", *c >= ' ' && *c < 0x7f && !strchr("\"\\%/", *c) ? *c : '_');
	add(h, "\"; filename*=UTF-8''");
	for (const char *c = name; *c; c++)
		add(h, strchr(plain, *c) ? "%c" : "%%%02X", (unsigned char)*c);
	add(h, "\r\n");
}

size_t http_write_file(char *to, struct http_answer a, const struct stat *st, uint64_t size,
		       const char *name, int64_t now)
{
	struct head h = begin(to, a.status, now);
	char date[HTTP_DATE_MAX], etag[HTTP_ETAG_MAX];
	/* A date in the future would make clients believe that the file never changes. */
	http_date_write(st->st_mtim.tv_sec < now ? st->st_mtim.tv_sec : now, date);
	http_etag(st, size, etag);
	add(&h, "ETag: %s\r\nLast-Modified: %s\r\nAccept-Ranges: bytes\r\n", etag, date);
	if (a.status != 304) {
		add(&h, "Content-Type: application/octet-stream\r\n"
			"X-Content-Type-Options: nosniff\r\n");
		add_name(&h, name);
		add(&h, "Content-Length: %" PRIu64 "\r\n", a.end - a.first);
	}
	if (a.status == 206)
		add(&h, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", a.first,
		    a.end - 1, size);
	add(&h, "\r\n");
	return h.size;
}

static void add_text_type(struct head *h, size_t length)
{
	add(h,
	    "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
	    "Content-Length: %zu\r\n\r\n",
	    length);
}

size_t http_write_list(char *to, size_t length, int64_t now)
{
	struct head h = begin(to, 200, now);
	add_text_type(&h, length);
	return h.size;
}

size_t http_write_text(char *to, int status, const char *text, bool bodiless, uint64_t size,
		       const char *allow, int64_t now)
{
	struct head h = begin(to, status, now);
	if (status == 416)
		add(&h, "Content-Range: bytes */%" PRIu64 "\r\n", size);
	if (status == 405)
		add(&h, "Allow: %s\r\n", allow);
	if (status == 204) {
		add(&h, "\r\n");
		return h.size;
	}
	if (!text)
		text = phrase(status);
	add_text_type(&h, strlen(text) + 1);
	if (!bodiless)
		add(&h, "%s\n", text);
	return h.size;
}
