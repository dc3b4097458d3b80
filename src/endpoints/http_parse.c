/* SPDX-License-Identifier: MIT
 * What an HTTP/1.1 request says (RFC 9110, RFC 9112).
 */
#include "http.h"

#include <stdio.h>
#include <strings.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* A character of a method or of a header's name. */
static bool is_token(char c)
{
	return is_digit(c) || is_letter(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool text_is(struct http_text t, const char *word)
{
	return t.length == strlen(word) && memcmp(t.at, word, t.length) == 0;
}

static bool text_is_anycase(struct http_text t, const char *word)
{
	return t.length == strlen(word) && strncasecmp(t.at, word, t.length) == 0;
}

static struct http_text trim(struct http_text t)
{
	for (; t.length > 0 && is_blank(t.at[0]); t.length--)
		t.at++;
	while (t.length > 0 && is_blank(t.at[t.length - 1]))
		t.length--;
	return t;
}

/* Reads decimal digits at the start of *t. Returns how many there were; a number that is too large
 * becomes UINT64_MAX. */
static size_t take_number(struct http_text *t, uint64_t *n)
{
	size_t i = 0;
	bool over = false;
	for (*n = 0; i < t->length && is_digit(t->at[i]); i++)
		over |= __builtin_mul_overflow(*n, 10, n) ||
			__builtin_add_overflow(*n, (uint64_t)(t->at[i] - '0'), n);
	if (over)
		*n = UINT64_MAX;
	t->at += i;
	t->length -= i;
	return i;
}

size_t http_head_length(const char *text, size_t size)
{
	const char *line = text, *end;
	while ((end = memchr(line, '\n', size - (size_t)(line - text)))) {
		const size_t length = (size_t)(end - line) + 1;
		if (length == 1 || end[-1] != '\r' || (length == 2 && line > text))
			return (size_t)(end - text) + 1;
		line = end + 1;
	}
	return 0;
}

/* Takes one line with its CR LF off *rest. Returns false if it has another end, or a control
 * character. */
static bool take_line(struct http_text *rest, struct http_text *line)
{
	for (size_t i = 0; i < rest->length; i++) {
		const unsigned char c = (unsigned char)rest->at[i];
		if (c == '\r' && i + 1 < rest->length && rest->at[i + 1] == '\n') {
			*line = (struct http_text){rest->at, i};
			rest->at += i + 2;
			rest->length -= i + 2;
			return true;
		}
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return false;
}

static enum http_method find_method(struct http_text name)
{
	static const char *const others[] = {"DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH"};
	static const char *const served[] = {
	    [HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD", [HTTP_PUT] = "PUT", [HTTP_POST] = "POST"};
	for (enum http_method m = HTTP_GET; m <= HTTP_POST; m++)
		if (text_is(name, served[m]))
			return m;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (text_is(name, others[i]))
			return HTTP_OTHER;
	return HTTP_UNKNOWN;
}

/* METHOD SP TARGET SP HTTP/1.1 */
static int parse_request_line(struct http_request *r, struct http_text line)
{
	size_t n = 0;
	while (n < line.length && is_token(line.at[n]))
		n++;
	if (n == 0 || n == line.length || line.at[n] != ' ')
		return 400;
	r->name = (struct http_text){line.at, n};
	r->method = find_method(r->name);
	const char *target = line.at + n + 1, *end = line.at + line.length;
	n = 0;
	while (target + n < end && target[n] > ' ' && target[n] < 0x7f)
		n++;
	if (n == 0 || target + n == end || target[n] != ' ')
		return 400;
	r->target = (struct http_text){target, n};
	const char *version = target + n + 1;
	if (end - version != 8 || memcmp(version, "HTTP/", 5) != 0 || !is_digit(version[5]) ||
	    version[6] != '.' || !is_digit(version[7]))
		return 400;
	r->old = memcmp(version + 5, "1.0", 3) == 0;
	return r->old || memcmp(version + 5, "1.1", 3) == 0 ? 0 : 505;
}

/* Where a header that matters is stored; NULL: it does not. */
static struct http_text *find_header(struct http_request *r, struct http_text name)
{
	const struct {
		const char *name;
		struct http_text *to;
	} headers[] = {{"Host", &r->host},
		       {"Content-Length", &r->content_length},
		       {"Content-Range", &r->content_range},
		       {"Content-Type", &r->content_type},
		       {"Transfer-Encoding", &r->transfer_encoding},
		       {"Expect", &r->expect},
		       {"Range", &r->range},
		       {"If-Range", &r->if_range},
		       {"If-Match", &r->if_match},
		       {"If-None-Match", &r->if_none_match},
		       {"If-Modified-Since", &r->if_modified_since},
		       {"If-Unmodified-Since", &r->if_unmodified_since}};
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		if (text_is_anycase(name, headers[i].name))
			return headers[i].to;
	return NULL;
}

/* NAME: VALUE. A line that continues the one before starts with a blank, which no name has. */
static int parse_header(struct http_request *r, struct http_text line)
{
	size_t n = 0;
	while (n < line.length && is_token(line.at[n]))
		n++;
	if (n == 0 || n == line.length || line.at[n] != ':')
		return 400;
	struct http_text *to = find_header(r, (struct http_text){line.at, n});
	if (!to)
		return 0;
	if (to->at) /* which of the two counts? */
		return 400;
	*to = trim((struct http_text){line.at + n + 1, line.length - n - 1});
	return 0;
}

static bool is_host(struct http_text t)
{
	for (size_t i = 0; i < t.length; i++)
		if (!is_digit(t.at[i]) && !is_letter(t.at[i]) &&
		    !strchr("-._~%!$&'()*+,;=:[]", t.at[i]))
			return false;
	return true;
}

/* How long is the body? */
static int check_framing(struct http_request *r)
{
	struct http_text length = r->content_length;
	if (length.at && r->transfer_encoding.at)
		return 400;
	if (r->transfer_encoding.at && r->old)
		return 400;
	r->chunked = r->transfer_encoding.at;
	if (length.at && (take_number(&length, &r->length) == 0 || length.length > 0))
		return 400;
	if (r->length > INT64_MAX)
		return 413;
	if ((r->method == HTTP_GET || r->method == HTTP_HEAD) && (r->chunked || r->length > 0))
		return 400;
	if (r->chunked && !text_is_anycase(r->transfer_encoding, "chunked"))
		return 501;
	return 0;
}

int http_parse(struct http_request *r, const char *head, size_t length)
{
	struct http_text rest = {head, length}, line;
	*r = (struct http_request){.method = HTTP_UNKNOWN};
	if (!take_line(&rest, &line))
		return 400;
	int status = parse_request_line(r, line);
	while (status == 0) {
		if (!take_line(&rest, &line))
			return 400;
		if (line.length == 0)
			break;
		status = parse_header(r, line);
	}
	if (status)
		return status;
	if (rest.length > 0 || (r->host.at ? !is_host(r->host) : !r->old))
		return 400;
	status = check_framing(r);
	/* A client of HTTP/1.0 does not wait (RFC 9110, section 10.1.1). */
	r->expects = r->expect.at && !r->old;
	if (status == 0 && r->expects && !text_is_anycase(r->expect, "100-continue"))
		return 417;
	return status;
}

static int hex_value(char c)
{
	return is_digit(c)            ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* A target may also be a whole URL, as for a proxy: its path counts. */
static struct http_text target_path(struct http_text t)
{
	static const char scheme[] = "http://";
	const size_t n = sizeof(scheme) - 1;
	if (t.length < n || strncasecmp(t.at, scheme, n) != 0)
		return t;
	const char *slash = memchr(t.at + n, '/', t.length - n);
	return slash ? (struct http_text){slash, t.length - (size_t)(slash - t.at)}
		     : (struct http_text){"/", 1};
}

bool http_target_is(struct http_text target, const char *name)
{
	struct http_text t = target_path(target);
	if (t.length == 0 || t.at[0] != '/')
		return false;
	size_t i = 1;
	for (; i < t.length && *name; i++, name++) {
		int c = (unsigned char)t.at[i];
		if (c == '%') {
			const int high = i + 2 < t.length ? hex_value(t.at[i + 1]) : -1;
			const int low = i + 2 < t.length ? hex_value(t.at[i + 2]) : -1;
			if (high < 0 || low < 0)
				return false;
			c = high * 16 + low;
			i += 2;
		} else if (c == '?' || c == '#') {
			return false;
		}
		if (c != (unsigned char)*name)
			return false;
	}
	return i == t.length && !*name;
}

/* Is the tag in the list of entity tags? A malformed list has none. weak: W/ makes no difference.
 */
static bool tag_is_listed(struct http_text list, const char *etag, bool weak)
{
	const char *at = list.at, *end = list.at + list.length;
	bool found = false;
	while (at < end) {
		const bool marked = end - at > 2 && at[0] == 'W' && at[1] == '/';
		at += marked ? 2 : 0;
		const char *close = *at == '"' ? memchr(at + 1, '"', (size_t)(end - at) - 1) : NULL;
		if (!close)
			return false;
		const struct http_text tag = {at, (size_t)(close - at) + 1};
		found |= text_is(tag, etag) && (weak || !marked);
		for (at = close + 1; at < end && is_blank(*at); at++)
			;
		if (at == end)
			return found;
		if (*at++ != ',')
			return false;
		while (at < end && (is_blank(*at) || *at == ','))
			at++;
	}
	return found;
}

static bool tag_matches(struct http_text list, const char *etag, bool weak)
{
	return text_is(list, "*") || tag_is_listed(list, etag, weak);
}

/* 304, 412, or 0: the conditions hold. */
static int check_conditions(const struct http_request *r, const char *etag, int64_t modified)
{
	int64_t since;
	if (r->if_match.at) {
		if (!tag_matches(r->if_match, etag, false))
			return 412;
	} else if (r->if_unmodified_since.at && http_date_parse(r->if_unmodified_since, &since) &&
		   modified > since) {
		return 412;
	}
	if (r->if_none_match.at)
		return tag_matches(r->if_none_match, etag, true) ? 304 : 0;
	return r->if_modified_since.at && http_date_parse(r->if_modified_since, &since) &&
		       modified <= since
		   ? 304
		   : 0;
}

/* bytes=A-B, bytes=A- and bytes=-N. Anything else is ignored, as RFC 9110 demands of a range that
 * is not understood, and allows for several. */
static struct http_answer choose_range(struct http_text t, uint64_t size)
{
	const struct http_answer whole = {200, 0, size}, none = {416, 0, 0};
	uint64_t first = 0, last = UINT64_MAX;
	if (t.length < 6 || strncasecmp(t.at, "bytes=", 6) != 0)
		return whole;
	t = trim((struct http_text){t.at + 6, t.length - 6});
	const bool has_first = take_number(&t, &first) > 0;
	if (t.length == 0 || t.at[0] != '-')
		return whole;
	t.at++;
	t.length--;
	const bool has_last = take_number(&t, &last) > 0;
	if (t.length > 0 || (!has_first && !has_last))
		return whole;
	if (!has_first) {
		if (last == 0)
			return none;
		return size == 0 ? whole
				 : (struct http_answer){206, last < size ? size - last : 0, size};
	}
	if (has_last && last < first)
		return whole;
	if (first >= size)
		return none;
	return (struct http_answer){206, first, has_last && last < size ? last + 1 : size};
}

struct http_answer http_evaluate(const struct http_request *r, const char *etag, int64_t modified,
				 uint64_t size)
{
	const int status = check_conditions(r, etag, modified);
	if (status)
		return (struct http_answer){.status = status};
	/* A date is no strong validator: a file may change twice in a second. */
	const bool same = !r->if_range.at || text_is(r->if_range, etag);
	if (r->method == HTTP_GET && r->range.at && same)
		return choose_range(r->range, size);
	return (struct http_answer){200, 0, size};
}
