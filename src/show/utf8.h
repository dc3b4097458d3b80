/* SPDX-License-Identifier: MIT
 *
 * UTF-8, and the characters that control a terminal.
 */
#ifndef SHOW_UTF8_H
#define SHOW_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length in bytes of the UTF-8 character at s, or 0 if s is not valid (RFC 3629: no surrogates,
 * no overlong forms, nothing above U+10FFFF). */
size_t utf8_length(const unsigned char *s);

/* The code point of the character of n bytes, 1 to 4, at s. */
uint32_t utf8_code(const unsigned char *s, size_t n);

/* Does the character of n bytes at s move the cursor, or change the order or visibility of its
 * neighbours? n 0: the byte at s is not valid UTF-8; a terminal may take it as Latin-1. */
bool utf8_is_control(const unsigned char *s, size_t n);

#endif
