/* SPDX-License-Identifier: MIT
 * Matches a pattern by the set of all places in it that the text read so far can have reached. So
 * nothing is tried twice, and the time is bounded by the two lengths multiplied.
 *
 * A place is followed by one character of the pattern; the stars before that character make the
 * place keep what it has reached.
 */
#include "filter.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind { LITERAL, ANY, BRACKETS, END };

struct token {
	uint8_t stars; /* before it; 2: two or more, which match slashes, too */
	uint8_t kind;
	uint8_t character;
	unsigned brackets; /* index */
};

#define WORD_BITS 64

struct characters {
	uint64_t bit[256 / WORD_BITS];
};

struct pattern {
	size_t tokens; /* with END */
	bool spans;
	struct characters *brackets;
	struct token token[];
};

/* Where the brackets end that p starts with, or NULL. They may contain a first ], a quoted one, and
 * classes such as [:digit:], [.x.] and [=x=]. */
static const char *pattern_find_end(const char *p)
{
	p += p[1] == '!' || p[1] == '^' ? 2 : 1;
	for (const char *first = p; *p; p++) {
		const bool class = p[0] == '[' && p[1] && strchr(":.=", p[1]);
		const char end[] = {p[1], ']', '\0'};
		const char *found = class && p[2] ? strstr(p + 3, end) : NULL;
		if (*p == ']' && p > first)
			return p;
		if (*p == '\\' && p[1])
			p++;
		else if (found)
			p = found + 1;
	}
	return NULL;
}

static void add_character(struct characters *to, unsigned char c)
{
	to->bit[c / WORD_BITS] |= (uint64_t)1 << c % WORD_BITS;
}

static bool has_character(const struct characters *in, unsigned char c)
{
	return in->bit[c / WORD_BITS] >> c % WORD_BITS & 1;
}

/* Does p begin as a class such as [:digit:] that does not end? */
static bool is_no_class(const char *p)
{
	const char end[] = {p[1], ']', '\0'};
	return p[0] == '[' && p[1] && strchr(":.=", p[1]) && !(p[2] && strstr(p + 3, end));
}

/* Takes the quoted characters out of brackets, and a [ that begins no class: fnmatch(3) of musl
 * knows neither. Ends of ranges stay, without their backslash if they need none. Returns whether
 * anything is left. What was taken shortens the text. */
static bool take_quoted(char *brackets, struct characters *quoted)
{
	const size_t start = brackets[1] == '!' || brackets[1] == '^' ? 2 : 1;
	char *to = brackets + start;
	for (const char *from = to; *from; from++) {
		const bool ends = from[1] &&
				  (from[2] == '-' || (to > brackets + start && to[-1] == '-'));
		if (*from != '\\' || !from[1]) {
			const bool negates = to == brackets + 1 && from > to && strchr("!^", *from);
			if (negates || (is_no_class(from) && to[-1] != '-'))
				add_character(quoted, (unsigned char)*from);
			else
				*to++ = *from;
		} else if (ends) {
			if (strchr("]-[", from[1]))
				*to++ = *from;
			*to++ = *++from;
		} else {
			add_character(quoted, (unsigned char)*++from);
		}
	}
	*to = '\0';
	return to - brackets > (ptrdiff_t)start + 1;
}

/* fnmatch(3) knows what is in brackets, one character at a time. */
static void pattern_add_brackets(struct characters *to, char *text, size_t length)
{
	struct characters quoted = {0};
	const char after = text[length];
	text[length] = '\0';
	const bool some = take_quoted(text, &quoted), not = text[1] == '!' || text[1] == '^';
	for (unsigned c = 1; c < 256; c++) {
		const char one[] = {(char)c, '\0'};
		const bool found = some ? fnmatch(text, one, FNM_PATHNAME) == 0 : not &&c != '/';
		if (has_character(&quoted, (unsigned char)c) ? !not &&c != '/' : found)
			add_character(to, (unsigned char)c);
	}
	text[length] = after;
}

static char *pattern_add_token(struct pattern *p, struct token *t, char *text, unsigned *brackets)
{
	const char *end = *text == '[' ? pattern_find_end(text) : NULL;
	*t = (struct token){.stars = t->stars, .character = (uint8_t)*text};
	if (end) {
		t->kind = BRACKETS;
		t->brackets = *brackets;
		pattern_add_brackets(&p->brackets[(*brackets)++], text, (size_t)(end - text) + 1);
		return text + (end - text) + 1;
	}
	if (*text == '\\') {
		t->kind = LITERAL;
		t->character = (uint8_t)text[1]; /* at the end NUL, which no name has */
		return text + (text[1] ? 2 : 1);
	}
	t->kind = *text == '?' ? ANY : LITERAL;
	return text + 1;
}

struct pattern *pattern_new(const char *original)
{
	const size_t length = strlen(original);
	char *const copy = strdup(original), *text = copy;
	unsigned brackets = 0;
	if (!copy)
		return NULL;
	for (const char *c = text; *c; c++)
		brackets += *c == '[';
	struct pattern *p = calloc(1, sizeof(*p) + (length + 1) * sizeof(*p->token));
	if (p)
		p->brackets = calloc(brackets + 1, sizeof(*p->brackets));
	if (!p || !p->brackets) {
		free(p);
		free(copy);
		return NULL;
	}
	for (brackets = 0;;) {
		const size_t stars = strspn(text, "*");
		struct token *t = &p->token[p->tokens++];
		t->stars = (uint8_t)(stars > 2 ? 2 : stars);
		p->spans |= stars > 1;
		text += stars;
		if (!*text) {
			t->kind = END;
			free(copy);
			return p;
		}
		text = pattern_add_token(p, t, text, &brackets);
	}
}

void pattern_free(struct pattern *p)
{
	if (p)
		free(p->brackets);
	free(p);
}

bool pattern_spans(const struct pattern *p)
{
	return p->spans;
}

static bool pattern_takes(const struct pattern *p, const struct token *t, uint8_t c)
{
	switch (t->kind) {
	case LITERAL: return t->character == c;
	case ANY: return c != '/';
	case BRACKETS: return has_character(&p->brackets[t->brackets], c);
	default: return false;
	}
}

/* Moves one word of places over a character. Returns whether the next word gets its first place. */
static bool pattern_step(const struct pattern *p, uint64_t *places, size_t word, uint8_t c)
{
	uint64_t next = 0;
	bool carry = false;
	for (uint64_t left = *places; left; left &= left - 1) {
		const unsigned bit = (unsigned)__builtin_ctzll(left);
		const struct token *t = &p->token[word * WORD_BITS + bit];
		if (t->stars == 2 || (t->stars == 1 && c != '/'))
			next |= (uint64_t)1 << bit;
		if (!pattern_takes(p, t, c))
			continue;
		if (bit == WORD_BITS - 1)
			carry = true;
		else
			next |= (uint64_t)2 << bit;
	}
	*places = next;
	return carry;
}

bool pattern_match(const struct pattern *p, const char *text, bool anywhere)
{
	const size_t words = (p->tokens + WORD_BITS - 1) / WORD_BITS, last = p->tokens - 1;
	uint64_t places[words];
	memset(places, 0, sizeof(places));
	places[0] = 1;
	for (; *text; text++) {
		bool carry = anywhere && *text == '/', some = carry;
		for (size_t i = 0; i < words; i++) {
			const bool into = carry;
			carry = places[i] && pattern_step(p, &places[i], i, (uint8_t)*text);
			places[i] |= into;
			some |= places[i] != 0;
		}
		if (!some && !anywhere)
			return false;
	}
	return places[last / WORD_BITS] >> last % WORD_BITS & 1;
}
