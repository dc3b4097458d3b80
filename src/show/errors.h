/* SPDX-License-Identifier: MIT
 *
 * A list of failures or warnings, which owns its strings.
 */
#ifndef SHOW_ERRORS_H
#define SHOW_ERRORS_H

#include "json.h"

#include "fcopy.h"

struct errors {
	struct fcopy_error *error;
	size_t count, size;
};

/* One of them as an object; null if there is none. */
void error_write(struct json *, const char *key, const struct fcopy_error *);

void errors_add(struct errors *, const struct fcopy_error *);
void errors_write(const struct errors *, struct json *, const char *key); /* as an array */
void errors_clear(struct errors *);

#endif
