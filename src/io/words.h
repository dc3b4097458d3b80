/* SPDX-License-Identifier: MIT
 *
 * Lines of words, as in the journal of a part and the list of a tree. One space separates two
 * words. A word is a number, a time (seconds since the epoch, a period and nine digits), or a name,
 * in which white space, control characters and backslashes are \ and three octal digits.
 */
#ifndef IO_WORDS_H
#define IO_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Each writes at `at`, and returns the end of what it wrote. No null byte follows. */
/* A number with at least so many digits, and one more character. */
char *words_put(char *at, intmax_t n, unsigned base, unsigned digits, char after);
char *words_put_unsigned(char *at, uintmax_t n, unsigned base, unsigned digits, char after);
/* With a space after it. */
char *words_put_time(char *at, const struct timespec *);
/* At most 4 * size bytes. */
char *words_put_name(char *at, const char *name, size_t size);

/* What is left of a line. A word that is not of the expected kind makes it wrong. */
struct words {
	const char *at, *end;
	bool wrong;
};

const char *words_text(struct words *, size_t *length);
/* base: 8 or 10. Refuses what the functions above do not write: signs but one -, and spaces. */
intmax_t words_number(struct words *, char stop, unsigned base);
uintmax_t words_unsigned(struct words *);
struct timespec words_time(struct words *);
/* The bytes of a name, with a null byte, in `to`, which has room for size + 1 bytes and may be
 * `text`. Returns how many there are; *wrong: one is no byte of a name. */
size_t words_name(const char *text, size_t size, char *to, bool *wrong);
/* Is it one of the words in these bytes, which commas separate, and of which a null byte follows?
 */
bool words_list_has(const char *list, size_t size, const char *word);

#endif
