/* SPDX-License-Identifier: MIT
 * Text, sizes and times for a line that a signal handler may want.
 */
#include "text.h"

#include <string.h>
#include <unistd.h>

void text_clear(struct text *t)
{
	t->length = 0;
	t->at[0] = '\0';
}

static void add_bytes(struct text *t, const char *from, size_t n)
{
	if (n > sizeof(t->at) - 1 - t->length)
		n = sizeof(t->at) - 1 - t->length;
	memcpy(t->at + t->length, from, n);
	t->length += n;
	t->at[t->length] = '\0';
}

void text_add(struct text *t, const char *s)
{
	add_bytes(t, s, strlen(s));
}

/* At least `digits` digits. */
static void add_number(struct text *t, uint64_t n, int digits)
{
	char digit[20];
	size_t at = sizeof(digit);
	do {
		digit[--at] = (char)('0' + n % 10);
		n /= 10;
		digits--;
	} while (n > 0 || digits > 0);
	add_bytes(t, digit + at, sizeof(digit) - at);
}

void text_number(struct text *t, uint64_t n)
{
	add_number(t, n, 1);
}

void text_spaces(struct text *t, size_t n)
{
	while (n-- > 0)
		add_bytes(t, " ", 1);
}

/* Three digits of whole + hundredths / 100. */
static void add_three(struct text *t, uint64_t whole, uint64_t hundredths)
{
	text_number(t, whole);
	if (whole >= 100)
		return;
	text_add(t, ".");
	add_number(t, whole < 10 ? hundredths : hundredths / 10, whole < 10 ? 2 : 1);
}

void text_size(struct text *t, uint64_t bytes)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
	unsigned unit = 0;
	while (bytes >> (10 * unit) >= 1000)
		unit++;
	if (unit == 0)
		text_number(t, bytes);
	else
		add_three(t, bytes >> (10 * unit),
			  (bytes >> (10 * (unit - 1))) % 1024 * 100 / 1024);
	text_add(t, units[unit]);
}

void text_duration(struct text *t, uint64_t us)
{
	if (us < 1000) {
		text_number(t, us);
		text_add(t, " us");
	} else if (us < 1000000) {
		add_three(t, us / 1000, us % 1000 / 10);
		text_add(t, " ms");
	} else {
		add_three(t, us / 1000000, us % 1000000 / 10000);
		text_add(t, " s");
	}
}

void text_clock(struct text *t, uint64_t seconds)
{
	if (seconds >= 3600) {
		text_number(t, seconds / 3600);
		text_add(t, ":");
	}
	add_number(t, seconds / 60 % 60, seconds >= 3600 ? 2 : 1);
	text_add(t, ":");
	add_number(t, seconds % 60, 2);
}

void text_align(struct text *t, size_t start, size_t width)
{
	size_t have = t->length - start;
	size_t more = width > have ? width - have : 0;
	if (more > sizeof(t->at) - 1 - t->length)
		return;
	memmove(t->at + start + more, t->at + start, have + 1);
	memset(t->at + start, ' ', more);
	t->length += more;
}

void text_write(const struct text *t, int fd)
{
	size_t done = 0;
	while (done < t->length) {
		ssize_t n = write(fd, t->at + done, t->length - done);
		if (n <= 0)
			return;
		done += (size_t)n;
	}
}
