/* SPDX-License-Identifier: MIT
 * The path of an entry, for messages and filters.
 */
#include "report.h"

#include <string.h>

/* Prepends `part` to the path that begins at *at. Truncates a long path at its start. */
static void path_prepend(char *path, size_t *at, const char *part)
{
	size_t length = strlen(part);
	size_t n = length < *at ? length : *at;
	*at -= n;
	memcpy(path + *at, part + length - n, n);
}

/* top: the path of the operand; NULL: the path starts below it. */
static void path_make(const struct entry *e, const char *name, const char *top, char *path,
		      size_t size)
{
	size_t at = size - 1;
	path[at] = '\0';
	path_prepend(path, &at, name);
	for (const struct directory *d = e->dir; d && (d->parent || top); d = d->parent) {
		const char *part = d->parent ? d->name : top;
		size_t length = strlen(part);
		if (path[at] && length > 0 && part[length - 1] != '/')
			path_prepend(path, &at, "/");
		path_prepend(path, &at, part);
	}
	memmove(path, path + at, size - at);
}

static const struct directory *entry_top(const struct entry *e)
{
	const struct directory *d = e->dir;
	while (d->parent)
		d = d->parent;
	return d;
}

void entry_path(const struct entry *e, bool src, char *path, size_t size)
{
	const struct directory *top = entry_top(e);
	path_make(e, src ? e->name : e->as, src ? top->src_path : top->dst_path, path, size);
}

bool entry_path_below(const struct entry *e, char *path, size_t size)
{
	path_make(e, e->name, NULL, path, size);
	return strlen(path) < size - 1;
}
