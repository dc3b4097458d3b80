/* SPDX-License-Identifier: MIT
 * Failures and warnings for --json.
 */
#include "errors.h"

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
			return; /* best effort: the object lacks this error */
		list->error = more;
		list->size = size;
	}
	struct fcopy_error *to = &list->error[list->count++];
	*to = *e;
	to->path = keep(e->path);
	to->path2 = keep(e->path2);
	to->reason = keep(e->reason);
}

void error_write(struct json *j, const char *key, const struct fcopy_error *e)
{
	if (e->err == 0) {
		json_string(j, key, NULL);
		return;
	}
	json_open(j, key, '{');
	json_string(j, "call", e->call);
	json_string(j, "operation", e->operation);
	json_errno(j, "errno", e->err);
	json_string(j, "message", e->reason ? e->reason : strerror(e->err));
	json_path(j, "path", e->path);
	json_path(j, "path2", e->path2);
	json_string(j, "engine", e->engine);
	json_string(j, "option", e->option);
	json_close(j, '}');
}

void errors_write(const struct errors *list, struct json *j, const char *key)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < list->count; i++)
		error_write(j, NULL, &list->error[i]);
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
