/* SPDX-License-Identifier: MIT
 * A stderr that writes nothing, and looks at what it is given.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <stdio.h>

static struct {
	size_t bytes;
	unsigned char last;
} said;

/* A name's control characters would move the cursor: C0 and DEL, and C1 as UTF-8 has them. */
static ssize_t look(void *cookie, const char *text, size_t n)
{
	(void)cookie;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		MUST((c >= 32 && c != 127) || c == '\n');
		MUST(said.last != 0xc2 || c < 0x80 || c >= 0xa0);
		MUST(c != '\n' || said.last != '\n');
		said.last = c;
	}
	said.bytes += n;
	return (ssize_t)n;
}

/* libFuzzer and the sanitizers keep the stderr that they began with. */
void said_begin(void)
{
	static FILE *listener;
	if (!listener) {
		listener = fopencookie(NULL, "w", (cookie_io_functions_t){.write = look});
		MUST(listener && setvbuf(listener, NULL, _IOFBF, 8192) == 0);
		stderr = listener;
	}
	said_anything();
	said.bytes = 0;
	said.last = 0;
}

bool said_anything(void)
{
	fflush(stderr);
	MUST(said.bytes == 0 || said.last == '\n');
	return said.bytes != 0;
}
