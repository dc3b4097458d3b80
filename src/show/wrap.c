/* SPDX-License-Identifier: MIT
 * Breaks a text into lines between words.
 */
#include "text.h"

#include <string.h>

void text_wrap(FILE *f, char *words, size_t columns, size_t indent, char glue)
{
	size_t column = indent;
	for (char *next; words; words = next) {
		next = strchr(words, ' ');
		if (next)
			*next++ = '\0';
		for (char *c = words; *c; c++)
			*c = *c == glue ? ' ' : *c;
		size_t width = text_columns(words, true);
		if (column > indent && column + 1 + width > columns) {
			fprintf(f, "\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', f);
			column++;
		}
		fputs(words, f);
		column += width;
	}
}
