/* SPDX-License-Identifier: MIT
 *
 * UTF-8, and what of it a terminal obeys instead of showing it.
 */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 character at s, or 0 if there is none (RFC 3629: no surrogates, nothing
 * longer than needed, nothing above U+10FFFF). */
size_t utf8_length(const unsigned char *s);

/* The number of the character of n bytes, 1 to 4, at s. */
uint32_t utf8_code(const unsigned char *s, size_t n);

/* Is the character of n bytes at s one that moves the cursor, or turns or hides what stands beside
 * it? n 0: the byte at s, which is none; as Latin-1 it may be such a one. */
bool utf8_is_control(const unsigned char *s, size_t n);

#endif
