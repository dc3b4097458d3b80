/* SPDX-License-Identifier: MIT
 *
 * Writes JSON (RFC 8259) with commas and escapes. The caller must close each bracket that it
 * opened. `key` is NULL for an element of an array.
 */
#ifndef SHOW_JSON_H
#define SHOW_JSON_H

#include "fcopy.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *f;
	bool comma; /* before the next value */
};

void json_open(struct json *, const char *key, char bracket);
void json_close(struct json *, char bracket);
/* NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
void json_string(struct json *, const char *key, const char *value);
void json_errno(struct json *, const char *key, int err); /* its name; null: 0 or unknown */
void json_integer(struct json *, const char *key, uint64_t value);
void json_seconds(struct json *, const char *key, double value);
void json_bool(struct json *, const char *key, bool value);

/* The string, and if it is not UTF-8 also "<key>_b64" with its exact bytes in base64. */
void json_path(struct json *, const char *key, const char *path);

/* A list of failures or warnings, which owns its strings. */

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
