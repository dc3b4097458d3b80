/* SPDX-License-Identifier: MIT
 * Dates of HTTP, in GMT: without the C library, whose functions depend on locale and time zone.
 */
#include "http.h"

#include <stdio.h>
#include <string.h>

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

struct date {
	int year, month, day, hour, minute, second; /* month from 0, day from 1 */
};

/* Days from 1970-01-01 to the first of March of the year, in the Gregorian calendar. A year that
 * starts in March has its leap day at its end. */
static int64_t days_to_march(int64_t year)
{
	return year * 365 + year / 4 - year / 100 + year / 400 - 719468;
}

/* Days from the first of March to the first of the month, counted from March. */
static unsigned days_in_year(unsigned month)
{
	return (153 * month + 2) / 5;
}

/* The place of a name of three letters in a table of them; -1: it has none. */
static int find_name(const char *table, const char *name)
{
	for (const char *at = table; *at; at += 3)
		if (memcmp(at, name, 3) == 0)
			return (int)(at - table) / 3;
	return -1;
}

/* Reads a date by a pattern: Y, d, H, m and S take a digit of that part, _ a digit of the day or a
 * blank, @@@ the name of a month, . any character, and everything else itself. */
static bool read_pattern(struct http_text t, const char *pattern, struct date *d)
{
	static const char parts[] = "YdHmS_";
	int *const to[] = {&d->year, &d->day, &d->hour, &d->minute, &d->second, &d->day};
	if (t.length != strlen(pattern))
		return false;
	for (size_t i = 0; i < t.length; i++) {
		const char *part = strchr(parts, pattern[i]);
		const char c = t.at[i];
		if (pattern[i] == '@') {
			if ((d->month = find_name(months, t.at + i)) < 0)
				return false;
			i += 2;
		} else if (part && c >= '0' && c <= '9') {
			*to[part - parts] = *to[part - parts] * 10 + c - '0';
		} else if (pattern[i] != '.' && pattern[i] != c &&
			   (pattern[i] != '_' || c != ' ')) {
			return false;
		}
	}
	return true;
}

bool http_date_parse(struct http_text t, int64_t *seconds)
{
	struct date d = {0}, older = {0}, oldest = {0};
	const char *comma = memchr(t.at, ',', t.length);
	const struct http_text tail = {comma, comma ? t.length - (size_t)(comma - t.at) : 0};
	if (comma && read_pattern(tail, ", dd-@@@-YY HH:mm:SS GMT", &older)) {
		d = older;
		d.year += d.year < 70 ? 2000 : 1900;
	} else if (read_pattern(t, "... @@@ _d HH:mm:SS YYYY", &oldest)) {
		d = oldest;
	} else if (!read_pattern(t, "..., dd @@@ YYYY HH:mm:SS GMT", &d)) {
		return false;
	}
	if (d.day < 1 || d.day > 31 || d.hour > 23 || d.minute > 59 || d.second > 60)
		return false;
	const unsigned month = ((unsigned)d.month + 10) % 12;
	const int64_t day = days_to_march(d.year - (month > 9)) + days_in_year(month) + d.day - 1;
	*seconds = ((day * 24 + d.hour) * 60 + d.minute) * 60 + d.second;
	return true;
}

void http_date_write(int64_t seconds, char text[HTTP_DATE_MAX])
{
	static const int64_t most = 253402300799; /* the last second of the year 9999 */
	seconds = seconds > most ? most : seconds < 0 ? 0 : seconds;
	const int64_t day = seconds / 86400;
	int64_t year = (day + 719468) * 400 / 146097 + 1;
	while (days_to_march(year) > day)
		year--;
	const unsigned rest = (unsigned)(day - days_to_march(year)), left = seconds % 86400;
	const unsigned from_march = (5 * rest + 2) / 153, month = (from_march + 2) % 12;
	snprintf(text, HTTP_DATE_MAX, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
		 days + (day + 4) % 7 * 3, (rest - days_in_year(from_march) + 1) % 100,
		 months + (size_t)3 * month, (unsigned)(year + (from_march > 9)) % 10000,
		 left / 3600 % 100, left / 60 % 60, left % 60);
}
