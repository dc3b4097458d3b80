/* SPDX-License-Identifier: MIT
 *
 * One pattern with wildcards, as filter.h describes them. A match takes at most as many steps as
 * the pattern has characters for each character of the path, whatever the stars.
 */
#ifndef SOURCE_PATTERN_H
#define SOURCE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct pattern;

/* Returns NULL if there is no memory. */
struct pattern *pattern_new(const char *text);
void pattern_free(struct pattern *);

/* Does it have **, which matches slashes? */
bool pattern_spans(const struct pattern *);

/* Does the pattern match the text from its start to its end? With `anywhere`, from the first
 * character after any slash is enough, too. */
bool pattern_match(const struct pattern *, const char *text, bool anywhere);

#endif
