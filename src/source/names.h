/* SPDX-License-Identifier: MIT
 *
 * The names in a directory, all at once.
 */
#ifndef SOURCE_NAMES_H
#define SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct name_list {
	char *bytes;
	const char **name; /* sorted by strcmp(3); without . and .. */
	size_t count;
};

/* Reads the directory that is open as fd, from its start. Returns 0 and the
 * names, which names_free() frees; or -errno with the call. */
int names_read(int fd, struct name_list *list, const char **call);
void names_free(struct name_list *list);

/* Is the name in the list? */
bool names_have(const struct name_list *list, const char *name);
/* The index of the first name that does not come before the text. */
size_t names_from(const struct name_list *list, const char *text);

#endif
