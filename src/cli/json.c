/* SPDX-License-Identifier: MIT
 * A JSON writer, as large as a report needs it.
 */
#include "json.h"

#include <string.h>

/* The length of the UTF-8 character at s, or 0 if there is none (RFC 3629: no surrogates, nothing
 * longer than needed, nothing above U+10FFFF). */
static size_t character(const unsigned char *s)
{
	static const struct {
		unsigned char first, last, second_least, second_most;
		size_t length;
	} forms[] = {
	    {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
	    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
	    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (s[0] < forms[i].first || s[0] > forms[i].last)
			continue;
		size_t n = forms[i].length;
		if (n > 1 && (s[1] < forms[i].second_least || s[1] > forms[i].second_most))
			return 0;
		for (size_t k = 2; k < n; k++)
			if (s[k] < 0x80 || s[k] > 0xbf)
				return 0;
		return n;
	}
	return 0;
}

static void put_character(FILE *f, const unsigned char *s, size_t n)
{
	if (n == 0)
		fputs("\\ufffd", f);
	else if (*s == '"' || *s == '\\')
		fprintf(f, "\\%c", *s);
	else if (*s < 0x20 || *s == 0x7f)
		fprintf(f, "\\u%04x", *s);
	else if (s[0] == 0xc2 && s[1] < 0xa0) /* the C1 control characters: a terminal obeys them */
		fprintf(f, "\\u%04x", s[1]);
	else
		fwrite(s, 1, n, f);
}

/* Returns whether all of it was UTF-8. */
static bool put_string(FILE *f, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	bool valid = true;
	fputc('"', f);
	while (*s) {
		size_t n = character(s);
		put_character(f, s, n);
		valid &= n > 0;
		s += n ? n : 1;
	}
	fputc('"', f);
	return valid;
}

static void put_key(struct json *j, const char *key, const char *suffix)
{
	if (j->comma)
		fputs(", ", j->f);
	j->comma = true;
	if (key)
		fprintf(j->f, "\"%s%s\": ", key, suffix);
}

static void put_base64(FILE *f, const char *text)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strlen(text);
	for (; n > 0; s += 3) {
		size_t have = n < 3 ? n : 3;
		unsigned bits = (unsigned)s[0] << 16;
		bits |= have > 1 ? (unsigned)s[1] << 8 : 0;
		bits |= have > 2 ? s[2] : 0;
		for (size_t i = 0; i < 4; i++)
			fputc(i <= have ? digits[bits >> (18 - 6 * i) & 63] : '=', f);
		n -= have;
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	put_key(j, key, "");
	fputc(bracket, j->f);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->f);
	j->comma = true;
}

void json_string(struct json *j, const char *key, const char *value)
{
	put_key(j, key, "");
	if (value)
		put_string(j->f, value);
	else
		fputs("null", j->f);
}

void json_integer(struct json *j, const char *key, uint64_t value)
{
	put_key(j, key, "");
	fprintf(j->f, "%llu", (unsigned long long)value);
}

void json_seconds(struct json *j, const char *key, double value)
{
	put_key(j, key, "");
	fprintf(j->f, "%.6f", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	put_key(j, key, "");
	fputs(value ? "true" : "false", j->f);
}

void json_path(struct json *j, const char *key, const char *path)
{
	put_key(j, key, "");
	if (!path) {
		fputs("null", j->f);
	} else if (!put_string(j->f, path)) {
		put_key(j, key, "_b64");
		fputc('"', j->f);
		put_base64(j->f, path);
		fputc('"', j->f);
	}
}
