/* SPDX-License-Identifier: MIT
 * Implements words.h. Most lines are of the entries of a tree, for which printf(3) took 5 % of the
 * time of a tree in memory.
 */
#include "words.h"

#include <limits.h>
#include <string.h>

char *words_put_unsigned(char *at, uintmax_t n, unsigned base, unsigned digits, char after)
{
	char text[24];
	unsigned used = 0;
	for (; n > 0 || used < digits; n /= base)
		text[used++] = (char)('0' + n % base);
	while (used > 0)
		*at++ = text[--used];
	*at++ = after;
	return at;
}

char *words_put(char *at, intmax_t n, unsigned base, unsigned digits, char after)
{
	if (n < 0)
		*at++ = '-';
	return words_put_unsigned(at, n < 0 ? 0 - (uintmax_t)n : (uintmax_t)n, base, digits, after);
}

char *words_put_time(char *at, const struct timespec *t)
{
	at = words_put(at, t->tv_sec, 10, 1, '.');
	return words_put(at, t->tv_nsec, 10, 9, ' ');
}

char *words_put_name(char *at, const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const unsigned char c = (unsigned char)name[i];
		if (c > ' ' && c != '\\' && c != 0x7f) {
			*at++ = (char)c;
			continue;
		}
		*at++ = '\\';
		*at++ = (char)('0' + (c >> 6));
		*at++ = (char)('0' + (c >> 3 & 7));
		*at++ = (char)('0' + (c & 7));
	}
	return at;
}

const char *words_text(struct words *w, size_t *length)
{
	const char *word = w->at;
	const char *space = w->at < w->end ? memchr(w->at, ' ', (size_t)(w->end - w->at)) : NULL;
	*length = (size_t)((space ? space : w->end) - word);
	w->at = space ? space + 1 : w->end;
	w->wrong |= *length == 0;
	return word;
}

/* Digits, and what separates them from the next word. */
static uintmax_t words_digits(struct words *w, char stop, unsigned base)
{
	uintmax_t value = 0;
	const char *start = w->at;
	for (; w->at < w->end && *w->at >= '0' && *w->at < '0' + (int)base; w->at++)
		w->wrong |= __builtin_mul_overflow(value, (uintmax_t)base, &value) ||
			    __builtin_add_overflow(value, (uintmax_t)(*w->at - '0'), &value);
	w->wrong |= w->at == start || (w->at < w->end && *w->at != stop);
	w->at += w->at < w->end;
	return value;
}

intmax_t words_number(struct words *w, char stop, unsigned base)
{
	const bool negative = w->at < w->end && *w->at == '-';
	w->at += negative;
	const uintmax_t value = words_digits(w, stop, base);
	const intmax_t n = value > INTMAX_MAX ? 0 : (intmax_t)value;
	w->wrong |= value > INTMAX_MAX;
	return negative ? -n : n;
}

uintmax_t words_unsigned(struct words *w)
{
	return words_digits(w, ' ', 10);
}

struct timespec words_time(struct words *w)
{
	struct timespec t;
	t.tv_sec = (time_t)words_number(w, '.', 10);
	t.tv_nsec = (long)words_number(w, ' ', 10);
	w->wrong |= t.tv_nsec < 0 || t.tv_nsec > 999999999;
	return t;
}

/* Three octal digits; 0: it is something else, or a null byte. */
static unsigned words_octal(const char *text, size_t size)
{
	unsigned n = 0;
	for (size_t i = 0; i < 3; i++) {
		if (i >= size || text[i] < '0' || text[i] > '7')
			return 0;
		n = n << 3 | (unsigned)(text[i] - '0');
	}
	return n <= UCHAR_MAX ? n : 0;
}

size_t words_name(const char *text, size_t size, char *to, bool *wrong)
{
	size_t n = 0;
	for (size_t i = 0; i < size; n++) {
		const unsigned c = text[i] == '\\' ? words_octal(text + i + 1, size - i - 1) : 0;
		*wrong |= text[i] == '\\' && c == 0;
		to[n] = c ? (char)c : text[i];
		i += c ? 4 : 1;
	}
	to[n] = '\0';
	return n;
}

bool words_list_has(const char *list, size_t size, const char *word)
{
	const size_t n = strlen(word);
	for (const char *at = list; at + n <= list + size; at += strcspn(at, ",") + 1)
		if (strncmp(at, word, n) == 0 && (at + n == list + size || at[n] == ','))
			return true;
	return false;
}
