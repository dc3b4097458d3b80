/* SPDX-License-Identifier: MIT
 * UTF-8, as far as file names in messages need it.
 */
#include "utf8.h"

size_t utf8_length(const unsigned char *s)
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

uint32_t utf8_code(const unsigned char *s, size_t n)
{
	uint32_t code = n < 2 ? s[0] : s[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++)
		code = code << 6 | (s[i] & 0x3f);
	return code;
}

bool utf8_is_control(const unsigned char *s, size_t n)
{
	/* C0, DEL and C1; soft hyphen, marks and overrides of the direction, of no width, line and
	 * paragraph separators, byte order mark, annotations, tags. */
	static const struct {
		uint32_t first, last;
	} ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},      {0x61c, 0x61c},
		      {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f},
		      {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	const uint32_t code = utf8_code(s, n);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return n > 0 || code < 0xa0;
	return false;
}
