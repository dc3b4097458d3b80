/* SPDX-License-Identifier: MIT
 * HTTP requests: what is accepted and what it means; what is refused, with which status.
 */
#include "util.h"

#include "endpoints/http.h"

#include <string.h>
#include <time.h>

#define HOST "Host: h\r\n"
#define ETAG "\"a-1\""

static const struct {
	const char *head;
	int status;
} heads[] = {
    {"GET / HTTP/1.1\r\n" HOST "\r\n", 0},
    {"GET / HTTP/1.0\r\n\r\n", 0},
    {"HEAD /a HTTP/1.1\r\nhOsT:\t h:80 \r\nX: \xc3\xa4\r\n\r\n", 0},
    {"GET http://h/a HTTP/1.1\r\n" HOST "\r\n", 0},
    {"BREW / HTTP/1.1\r\n" HOST "\r\n", 0}, /* who answers says that it is unknown */
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n\r\n", 0},
    {"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n", 0},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n", 0},
    {"PUT / HTTP/1.0\r\nContent-Length: 1\r\nExpect: nonsense\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 0},
    /* the request line */
    {"GET /\r\n\r\n", 400},
    {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1 \r\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1x\r\n" HOST "\r\n", 400},
    {"GET / http/1.1\r\n" HOST "\r\n", 400},
    {"GET /\tHTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", 400},
    {"G(T / HTTP/1.1\r\n" HOST "\r\n", 400},
    {" GET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 400},
    {"GET / HTTP/2.0\r\n" HOST "\r\n", 505},
    {"GET / HTTP/1.2\r\n" HOST "\r\n", 505},
    {"GET / HTTP/0.9\r\n\r\n", 505},
    /* the lines */
    {"GET / HTTP/1.1\n" HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: h\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "\n", 400},
    {"GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: a\x01z\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: a\x7fz\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X: a\r\n folded\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST "X\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n X: a\r\n" HOST "\r\n", 400},
    /* the host */
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400},
    {"GET / HTTP/1.0\r\n" HOST HOST "\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    /* the body */
    {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", 400},
    {"HEAD / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n", 413},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n\r\n", 413},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n", 413},
    {"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", 501},
    {"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
     400},
    {"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nExpect: more\r\n\r\n", 417},
};

START_TEST(head_is_accepted_or_has_its_status)
{
	struct http_request r;
	const char *head = heads[_i].head;
	int status = http_parse(&r, head, strlen(head));
	check(status == heads[_i].status, "%s: %d, not %d", head, status, heads[_i].status);
}
END_TEST

/* Every prefix of a head is incomplete, and what follows the head does not belong to it. */
START_TEST(head_has_an_end)
{
	const char *head = heads[_i].head;
	const size_t length = http_head_length(head, strlen(head));
	char more[512];
	if (heads[_i].status == 0)
		check(length == strlen(head), "%s: %zu bytes", head, length);
	for (size_t n = 0; n < length; n++)
		check(http_head_length(head, n) == 0, "%s: ends after %zu bytes", head, n);
	snprintf(more, sizeof(more), "%sGET / HTTP/1.1\r\n\r\n", head);
	check(http_head_length(more, strlen(more)) == (length ? length : strlen(head) + 18),
	      "%s: has another end if more follows", head);
}
END_TEST

START_TEST(a_null_byte_is_refused)
{
	static const char head[] = "GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
	struct http_request r;
	check(http_parse(&r, head, sizeof(head) - 1) == 400, "accepted");
}
END_TEST

static bool is_text(struct http_text t, const char *text)
{
	return t.at && t.length == strlen(text) && memcmp(t.at, text, t.length) == 0;
}

START_TEST(a_request_has_its_parts)
{
	static const char head[] = "PUT /x%20y HTTP/1.1\r\n" HOST "range:bytes=1-\r\n"
				   "IF-RANGE:  " ETAG " \t\r\ncontent-length: 0012\r\n"
				   "Expect: 100-continue\r\nAccept: */*\r\n\r\n";
	struct http_request r;
	check(http_parse(&r, head, strlen(head)) == 0, "refused");
	check(r.method == HTTP_PUT && is_text(r.name, "PUT"), "method %d", r.method);
	check(is_text(r.target, "/x%20y"), "target %.*s", (int)r.target.length, r.target.at);
	check(r.length == 12 && r.content_length.at, "length %ju", (uintmax_t)r.length);
	check(r.expects && !r.chunked && !r.old, "expects %d", r.expects);
	check(is_text(r.range, "bytes=1-") && is_text(r.if_range, ETAG), "range");
	check(!r.if_match.at && !r.if_none_match.at && !r.transfer_encoding.at, "more headers");
}
END_TEST

static const struct {
	const char *target, *name;
	bool is;
} targets[] = {
    {"/", "", true},           {"/a b", "a b", true}, /* no such target passes the parser */
    {"/a%20b", "a b", true},   {"/%61", "a", true},         {"/%41%C3%a4", "A\xc3\xa4", true},
    {"http://h/a", "a", true}, {"HTTP://h:80", "", true},   {"/%2561", "%61", true},
    {"/%2561", "a", false},    {"/a/", "a", false},         {"//a", "a", false},
    {"/../a", "a", false},     {"/%2e%2e%2fa", "a", false}, {"/a?b", "a", false},
    {"/a#b", "a", false},      {"/a%3fb", "a?b", true},     {"/%", "%", false},
    {"/%4", "@", false},       {"/%4g", "@", false},        {"/a%00", "a", false},
    {"/a", "", false},         {"/", "a", false},           {"/ab", "a", false},
    {"/a", "ab", false},       {"a", "a", false},           {"*", "", false},
    {"", "", false},           {"https://h/a", "a", false},
};

START_TEST(target_names_one_file)
{
	const struct http_text t = {targets[_i].target, strlen(targets[_i].target)};
	check(http_target_is(t, targets[_i].name) == targets[_i].is, "%s: %s", targets[_i].target,
	      targets[_i].name);
}
END_TEST

#define MODIFIED 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define SIZE     1000

static const struct {
	const char *headers;
	struct http_answer answer;
} conditions[] = {
    {"", {200, 0, SIZE}},
    {"Range: bytes=0-0", {206, 0, 1}},
    {"Range: bytes=10-19", {206, 10, 20}},
    {"Range: BYTES=10-", {206, 10, SIZE}},
    {"Range: bytes=10-99999999999999999999999", {206, 10, SIZE}},
    {"Range: bytes=0-999", {206, 0, SIZE}},
    {"Range: bytes=0-1000", {206, 0, SIZE}},
    {"Range: bytes=-1", {206, 999, SIZE}},
    {"Range: bytes=-5000", {206, 0, SIZE}},
    {"Range: bytes=-0", {416, 0, 0}},
    {"Range: bytes=1000-", {416, 0, 0}},
    {"Range: bytes=18446744073709551615-", {416, 0, 0}},
    {"Range: bytes=18446744073709551616-18446744073709551617", {416, 0, 0}},
    {"Range: bytes=5-4", {200, 0, SIZE}},
    {"Range: bytes=-", {200, 0, SIZE}},
    {"Range: bytes=a-", {200, 0, SIZE}},
    {"Range: bytes=1-2,3-4", {200, 0, SIZE}},
    {"Range: bytes=1-2x", {200, 0, SIZE}},
    {"Range: bytes=--1", {200, 0, SIZE}},
    {"Range: bytes=+1-", {200, 0, SIZE}},
    {"Range: lines=1-2", {200, 0, SIZE}},
    {"Range: bytes", {200, 0, SIZE}},
    {"If-Match: " ETAG, {200, 0, SIZE}},
    {"If-Match: *", {200, 0, SIZE}},
    {"If-Match: \"x\", " ETAG, {200, 0, SIZE}},
    {"If-Match: \"x,y\",," ETAG, {200, 0, SIZE}},
    {"If-Match: \"x\"", {412, 0, 0}},
    {"If-Match: W/" ETAG, {412, 0, 0}},
    {"If-Match: a-1", {412, 0, 0}},
    {"If-Match: " ETAG " \"x\"", {412, 0, 0}},
    {"If-Match:", {412, 0, 0}},
    {"If-Match: \"x", {412, 0, 0}},
    {"If-None-Match: " ETAG, {304, 0, 0}},
    {"If-None-Match: W/" ETAG, {304, 0, 0}},
    {"If-None-Match: *", {304, 0, 0}},
    {"If-None-Match: \"x\"", {200, 0, SIZE}},
    {"If-None-Match: \"x\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", {200, 0, SIZE}},
    {"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", {304, 0, 0}},
    {"If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT", {200, 0, SIZE}},
    {"If-Modified-Since: yesterday", {200, 0, SIZE}},
    {"If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT", {200, 0, SIZE}},
    {"If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT", {412, 0, 0}},
    {"If-Match: " ETAG "\r\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT", {200, 0, SIZE}},
    {"If-Match: \"x\"\r\nIf-None-Match: " ETAG, {412, 0, 0}},
    {"If-None-Match: " ETAG "\r\nRange: bytes=0-1", {304, 0, 0}},
    {"If-Match: \"x\"\r\nRange: bytes=5000-", {412, 0, 0}},
    {"If-Range: " ETAG "\r\nRange: bytes=0-1", {206, 0, 2}},
    {"If-Range: W/" ETAG "\r\nRange: bytes=0-1", {200, 0, SIZE}},
    {"If-Range: \"x\"\r\nRange: bytes=0-1", {200, 0, SIZE}},
    {"If-Range: \"x\"\r\nRange: bytes=5000-", {200, 0, SIZE}},
    {"If-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\nRange: bytes=0-1", {200, 0, SIZE}},
};

static struct http_answer answer_to(const char *method, const char *headers, uint64_t size)
{
	struct http_request r;
	char head[512];
	snprintf(head, sizeof(head), "%s / HTTP/1.1\r\n" HOST "%s%s\r\n", method, headers,
		 headers[0] ? "\r\n" : "");
	check(http_parse(&r, head, strlen(head)) == 0, "%s: refused", headers);
	return http_evaluate(&r, ETAG, MODIFIED, size);
}

static void check_answer(struct http_answer is, struct http_answer wanted, const char *headers)
{
	check(is.status == wanted.status && is.first == wanted.first && is.end == wanted.end,
	      "%s: %d [%ju, %ju), not %d [%ju, %ju)", headers, is.status, (uintmax_t)is.first,
	      (uintmax_t)is.end, wanted.status, (uintmax_t)wanted.first, (uintmax_t)wanted.end);
}

START_TEST(conditions_and_range_have_their_answer)
{
	const char *headers = conditions[_i].headers;
	struct http_answer wanted = conditions[_i].answer;
	check_answer(answer_to("GET", headers, SIZE), wanted, headers);
	if (wanted.status == 206 || wanted.status == 416)
		wanted = (struct http_answer){200, 0, SIZE};
	check_answer(answer_to("HEAD", headers, SIZE), wanted, headers);
}
END_TEST

START_TEST(an_empty_file_has_no_range)
{
	const struct http_answer whole = {200, 0, 0}, none = {416, 0, 0};
	check_answer(answer_to("GET", "Range: bytes=0-", 0), none, "0-");
	check_answer(answer_to("GET", "Range: bytes=0-0", 0), none, "0-0");
	check_answer(answer_to("GET", "Range: bytes=-0", 0), none, "-0");
	check_answer(answer_to("GET", "Range: bytes=-5", 0), whole, "-5");
}
END_TEST

/* Every first and last byte of a small file, and past its end. */
START_TEST(every_range_of_a_small_file)
{
	char header[64];
	for (unsigned size = 0; size < 6; size++)
		for (unsigned a = 0; a < 8; a++)
			for (unsigned b = 0; b < 8; b++) {
				struct http_answer w = {206, a, b < size ? b + 1 : size};
				if (b < a)
					w = (struct http_answer){200, 0, size};
				else if (a >= size)
					w = (struct http_answer){416, 0, 0};
				snprintf(header, sizeof(header), "Range: bytes=%u-%u", a, b);
				check_answer(answer_to("GET", header, size), w, header);
			}
}
END_TEST

/* The C library's own functions are the reference. */
START_TEST(dates_are_those_of_the_c_library)
{
	static const char *const formats[] = {"%a, %d %b %Y %H:%M:%S GMT",
					      "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"};
	for (int64_t t = 0; t < 253402300799; t += 86400 * 13 + 3607) {
		char text[64], written[HTTP_DATE_MAX];
		const time_t at = (time_t)t;
		struct tm tm;
		gmtime_r(&at, &tm);
		for (size_t f = 0; f < 3; f++) {
			int64_t read = -1;
			if (f == 1 && t > 3155759999) /* 2069: two digits */
				continue;
			strftime(text, sizeof(text), formats[f], &tm);
			check(http_date_parse((struct http_text){text, strlen(text)}, &read) &&
				  read == t,
			      "%s: %jd, not %jd", text, (intmax_t)read, (intmax_t)t);
		}
		strftime(text, sizeof(text), formats[0], &tm);
		http_date_write(t, written);
		check(strcmp(text, written) == 0, "%s, not %s", written, text);
	}
}
END_TEST

static const char *const no_dates[] = {"",
				       "0",
				       "now",
				       "Sun, 06 Nov 1994 08:49:37",
				       "Sun, 06 Nov 1994 08:49:37 CET",
				       "Sun, 06 Foo 1994 08:49:37 GMT",
				       "Sun, 06 Nov 1994 24:49:37 GMT",
				       "Sun, 06 Nov 1994 08:60:37 GMT",
				       "Sun, 00 Nov 1994 08:49:37 GMT",
				       "Sun, 32 Nov 1994 08:49:37 GMT",
				       "Sun, 6 Nov 1994 08:49:37 GMT",
				       "Sun, -6 Nov 1994 08:49:37 GMT",
				       "Sun,  6 Nov 1994 08:49:37 GMT ",
				       "Sunday, 06-Nov-1994 08:49:37 GMT",
				       "Sun Nov 06 08:49:37 94"};

START_TEST(what_is_no_date_is_not_read)
{
	int64_t t;
	check(!http_date_parse((struct http_text){no_dates[_i], strlen(no_dates[_i])}, &t), "'%s'",
	      no_dates[_i]);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

int main(void)
{
	Suite *s = suite_create("http");
	TCase *t = add_case(s, "http");
	tcase_add_loop_test(t, head_is_accepted_or_has_its_status, 0, COUNT(heads));
	tcase_add_loop_test(t, head_has_an_end, 0, COUNT(heads));
	tcase_add_test(t, a_null_byte_is_refused);
	tcase_add_test(t, a_request_has_its_parts);
	tcase_add_loop_test(t, target_names_one_file, 0, COUNT(targets));
	tcase_add_loop_test(t, conditions_and_range_have_their_answer, 0, COUNT(conditions));
	tcase_add_test(t, an_empty_file_has_no_range);
	tcase_add_test(t, every_range_of_a_small_file);
	tcase_add_test(t, dates_are_those_of_the_c_library);
	tcase_add_loop_test(t, what_is_no_date_is_not_read, 0, COUNT(no_dates));
	return run_suite(s);
}
