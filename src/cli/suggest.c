/* SPDX-License-Identifier: MIT
 * Suggests the option or mode that was probably meant: it differs by one typing error.
 */
#include "option.h"

#include <stdio.h>
#include <string.h>

#define NAME_SIZE 32 /* no option is longer */

/* Is one letter inserted, removed or changed, or swapped with the next one? */
static bool differs_by_one(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	const char *after_a = a + (*a != '\0'), *after_b = b + (*b != '\0');
	return strcmp(after_a, after_b) == 0 || strcmp(after_a, b) == 0 ||
	       strcmp(a, after_b) == 0 ||
	       (*a && *b && a[0] == b[1] && a[1] == b[0] && strcmp(a + 2, b + 2) == 0);
}

const char *suggest_option(const struct option_row *table, const char *text)
{
	char name[NAME_SIZE + 1];
	strncpy(name, text, NAME_SIZE);
	name[NAME_SIZE] = '\0';
	name[strcspn(name, "=")] = '\0';
	for (const struct option_row *row = table; !option_table_ends(row); row++)
		if (row->name && differs_by_one(name, row->name))
			return row->name;
	return NULL;
}

size_t suggest_completions(const struct option_row *table, const char *text, char *names,
			   size_t size)
{
	const size_t length = strcspn(text, "=");
	size_t n = 0, used = 0;
	for (const struct option_row *row = table; !option_table_ends(row); row++) {
		if (!row->name || strncmp(row->name, text, length) != 0)
			continue;
		int more = snprintf(names + used, size - used, "%s--%s", n++ ? ", " : "",
				    row->name);
		used = used + (size_t)more < size ? used + (size_t)more : size - 1;
	}
	return n;
}

const char *suggest_mode(const char *text)
{
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		if (differs_by_one(text, m->name))
			return m->name;
		if (m->alias && differs_by_one(text, m->alias))
			return m->alias;
	}
	return NULL;
}
