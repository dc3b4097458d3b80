/* SPDX-License-Identifier: MIT
 * Keeps failures and warnings for --json.
 */
#include "errors.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

static const char *keep(const char *text)
{
	return text ? strdup(text) : NULL;
}

void errors_add(struct errors *list, const struct fcopy_error *e)
{
	if (list->count == list->size) {
		size_t size = list->size ? 2 * list->size : 64;
		struct fcopy_error *more = realloc(list->error, size * sizeof(*more));
		if (!more)
			return; /* the rest is missing in the object */
		list->error = more;
		list->size = size;
	}
	struct fcopy_error *to = &list->error[list->count++];
	*to = *e;
	to->path = keep(e->path);
	to->path2 = keep(e->path2);
	to->reason = keep(e->reason);
}

void errors_write(const struct errors *list, struct json *j, const char *key)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < list->count; i++)
		report_json_error(j, NULL, &list->error[i]);
	json_close(j, ']');
}

void errors_clear(struct errors *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free((char *)list->error[i].path);
		free((char *)list->error[i].path2);
		free((char *)list->error[i].reason);
	}
	free(list->error);
	*list = (struct errors){0};
}
