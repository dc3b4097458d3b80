/* SPDX-License-Identifier: MIT
 * A request of HTTP: whatever it contains, its parts lie inside it, and the bytes of the answer
 * inside the file.
 */
#include "fuzz.h"

#include "endpoints/http.h"

#include <stdlib.h>
#include <string.h>

static const char *head;
static size_t head_size;

static void check_inside(struct http_text t)
{
	MUST(!t.at || (t.at >= head && t.at + t.length <= head + head_size));
	MUST(t.at || t.length == 0);
	MUST(t.length == 0 || (!memchr(t.at, '\n', t.length) && !memchr(t.at, '\0', t.length)));
}

static void check_parts(const struct http_request *r)
{
	check_inside(r->name);
	check_inside(r->target);
	for (const struct http_text *t = &r->host; t <= &r->if_unmodified_since; t++)
		check_inside(*t);
}

static void check_answers(const struct http_request *r)
{
	static const uint64_t sizes[] = {0, 1, 1000, INT64_MAX};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const struct http_answer a = http_evaluate(r, "\"tag\"", 784111777, sizes[i]);
		const int s = a.status;
		MUST(s == 200 || s == 206 || s == 304 || s == 412 || s == 416);
		MUST(a.first <= a.end && a.end <= sizes[i]);
		MUST(s == 200 || s == 206 || a.end == 0);
		MUST(s != 206 || a.first < a.end);
		MUST(s != 200 || (a.first == 0 && a.end == sizes[i]));
	}
}

static void check_date(struct http_text t)
{
	char text[HTTP_DATE_MAX];
	int64_t seconds = 0, again = 0;
	if (!t.at || !http_date_parse(t, &seconds) || seconds < 0)
		return;
	http_date_write(seconds, text);
	MUST(strlen(text) == HTTP_DATE_MAX - 1);
	MUST(http_date_parse((struct http_text){text, HTTP_DATE_MAX - 1}, &again));
	MUST(seconds == again);
}

static bool is_ended(const char *text, size_t size)
{
	return size >= 4 && memcmp(text + size - 4, "\r\n\r\n", 4) == 0;
}

static void check_request(size_t size)
{
	struct http_request r;
	const int status = http_parse(&r, head, size);
	check_parts(&r);
	MUST(status == 0 || status == 400 || status == 413 || status == 417 || status == 501 ||
	     status == 505);
	if (status)
		return;
	MUST(http_head_length(head, size) == size && is_ended(head, size));
	MUST(!r.content_length.at || !r.transfer_encoding.at);
	MUST(r.length <= INT64_MAX && (r.old || r.host.at));
	MUST((r.method != HTTP_GET && r.method != HTTP_HEAD) || (r.length == 0 && !r.chunked));
	MUST(!http_target_is(r.target, "") || !http_target_is(r.target, "x"));
	check_answers(&r);
	check_date(r.if_modified_since);
	check_date(r.if_unmodified_since);
}

/* In memory of exactly this size, so that reading past its end is an error. */
void http_check(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	MUST(copy);
	memcpy(copy, data, size);
	head = copy;
	head_size = size;
	const size_t length = http_head_length(copy, size);
	MUST(length <= size);
	check_request(size);
	if (length > 0)
		check_request(length);
	free(copy);
}
