/* SPDX-License-Identifier: MIT
 * The name that was probably meant: the one that the fewest typing errors lead to.
 */
#include "option.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 32 /* longer names are not compared: none of ours is */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;
	return ab < c ? ab : c;
}

/* How many letters must be inserted, dropped, changed, or swapped with their neighbour. */
static unsigned distance(const char *a, const char *b)
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
			d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + same);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1, NAME_SIZE);
		}
	return d[n][m];
}

/* The best name so far, and how far it is. */
struct nearest {
	const char *text, *name;
	unsigned distance;
};

static void consider(struct nearest *n, const char *name)
{
	unsigned d = distance(n->text, name);
	if (d < n->distance) {
		n->distance = d;
		n->name = name;
	}
}

/* One error in four letters is a typing error; more is another word. */
static struct nearest start(const char *text)
{
	return (struct nearest){.text = text, .distance = ((unsigned)strlen(text) + 3) / 4 + 1};
}

const char *suggest_option(const char *text)
{
	char name[NAME_SIZE + 1];
	strncpy(name, text, NAME_SIZE);
	name[NAME_SIZE] = '\0';
	name[strcspn(name, "=")] = '\0';
	struct nearest n = start(name);
	for (const struct option_row *row = option_table; !option_table_ends(row); row++)
		if (row->name)
			consider(&n, row->name);
	return n.name;
}

size_t suggest_completions(const char *text, char *names, size_t size)
{
	const size_t length = strcspn(text, "=");
	size_t n = 0, used = 0;
	for (const struct option_row *row = option_table; !option_table_ends(row); row++) {
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
	struct nearest n = start(text);
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		consider(&n, m->name);
		if (m->alias)
			consider(&n, m->alias);
	}
	return n.name;
}
