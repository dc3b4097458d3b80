/* SPDX-License-Identifier: MIT
 * Responses, and dates: see http.h. Each response ends its connection: what a client sends after
 * its request is never taken for another one.
 */
#include "http.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* Dates, in GMT. Not by strptime(3) and strftime(3), which depend on the locale. */

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/* The place of a name of three letters in a table of them; -1: it has none. */
static int find_name(const char *table, const char *name)
{
	for (const char *at = table; *at; at += 3)
		if (memcmp(at, name, 3) == 0)
			return (int)(at - table) / 3;
	return -1;
}

/* Reads a date by a pattern: Y, d, H, m and S take a digit of that part, _ a digit of the day or a
 * blank, @@@ the name of a month, . any character, and everything else itself. */
static bool read_pattern(struct http_text t, const char *pattern, struct tm *d)
{
	static const char parts[] = "YdHmS_";
	int *const to[] = {&d->tm_year, &d->tm_mday, &d->tm_hour,
			   &d->tm_min,  &d->tm_sec,  &d->tm_mday};
	*d = (struct tm){.tm_year = 0};
	if (t.length != strlen(pattern))
		return false;
	for (size_t i = 0; i < t.length; i++) {
		const char *part = strchr(parts, pattern[i]);
		const char c = t.at[i];
		if (pattern[i] == '@') {
			if ((d->tm_mon = find_name(months, t.at + i)) < 0)
				return false;
			i += 2;
		} else if (part && c >= '0' && c <= '9') {
			*to[part - parts] = *to[part - parts] * 10 + c - '0';
		} else if (pattern[i] != '.' && pattern[i] != c &&
			   (pattern[i] != '_' || c != ' ')) {
			return false;
		}
	}
	return true;
}

bool http_date_parse(struct http_text t, int64_t *seconds)
{
	struct tm d;
	const char *comma = memchr(t.at, ',', t.length);
	const struct http_text tail = {comma, comma ? t.length - (size_t)(comma - t.at) : 0};
	if (comma && read_pattern(tail, ", dd-@@@-YY HH:mm:SS GMT", &d))
		d.tm_year += d.tm_year < 70 ? 2000 : 1900;
	else if (!read_pattern(t, "... @@@ _d HH:mm:SS YYYY", &d) &&
		 !read_pattern(t, "..., dd @@@ YYYY HH:mm:SS GMT", &d))
		return false;
	if (d.tm_mday < 1 || d.tm_mday > 31 || d.tm_hour > 23 || d.tm_min > 59 || d.tm_sec > 60)
		return false;
	d.tm_year -= 1900;
	*seconds = timegm(&d);
	return true;
}

void http_date_write(int64_t seconds, char text[HTTP_DATE_MAX])
{
	static const int64_t most = 253402300799; /* the last second of the year 9999 */
	const time_t t = (time_t)(seconds > most ? most : seconds < 0 ? 0 : seconds);
	struct tm d;
	gmtime_r(&t, &d);
	snprintf(text, HTTP_DATE_MAX, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
		 days + (size_t)3 * d.tm_wday, d.tm_mday % 100u, months + (size_t)3 * d.tm_mon,
		 (d.tm_year + 1900u) % 10000u, d.tm_hour % 100u, d.tm_min % 100u, d.tm_sec % 100u);
}

/* Heads. */

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
	case 415: return "Unsupported Media Type";
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
