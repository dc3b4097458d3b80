/* SPDX-License-Identifier: MIT
 * Suggests the option or mode that was probably meant: the one with the fewest typing errors.
 */
#include "option.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 32 /* no option or mode is longer; longer words are not compared */

static unsigned least_of_three(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;
	return ab < c ? ab : c;
}

/* The number of letters to insert, remove, change, or swap with the next one (optimal string
 * alignment distance). */
static unsigned edit_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned d[NAME_SIZE + 1][NAME_SIZE + 1];
	if (n > NAME_SIZE || m > NAME_SIZE)
		return UINT_MAX;
	for (size_t i = 0; i <= n; i++)
		d[i][0] = (unsigned)i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			unsigned same = a[i - 1] == b[j - 1] ? 0 : 1;
			d[i][j] = least_of_three(d[i - 1][j] + 1, d[i][j - 1] + 1,
						 d[i - 1][j - 1] + same);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least_of_three(d[i][j], d[i - 2][j - 2] + 1, NAME_SIZE);
		}
	return d[n][m];
}

/* The best name so far, and its distance from the text. */
struct nearest {
	const char *text, *name;
	unsigned distance;
};

static void consider(struct nearest *n, const char *name)
{
	unsigned d = edit_distance(n->text, name);
	if (d < n->distance) {
		n->distance = d;
		n->name = name;
	}
}

/* Allows one error for each four letters: with more, it is another word. */
static struct nearest nearest_start(const char *text)
{
	return (struct nearest){.text = text, .distance = ((unsigned)strlen(text) + 3) / 4 + 1};
}

const char *suggest_option(const struct option_row *table, const char *text)
{
	char name[NAME_SIZE + 1];
	strncpy(name, text, NAME_SIZE);
	name[NAME_SIZE] = '\0';
	name[strcspn(name, "=")] = '\0';
	struct nearest n = nearest_start(name);
	for (const struct option_row *row = table; !option_table_ends(row); row++)
		if (row->name)
			consider(&n, row->name);
	return n.name;
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
	struct nearest n = nearest_start(text);
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		consider(&n, m->name);
		if (m->alias)
			consider(&n, m->alias);
	}
	return n.name;
}
