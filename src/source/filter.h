/* SPDX-License-Identifier: MIT
 *
 * Which entries below a SRC are copied: patterns (--exclude, --include) and lists of names
 * (--files-from). A filter does not change after filter_new(), except for what filter_missing()
 * reports; any number of threads may use it.
 *
 * A pattern means what it means to rsync(1). The wildcards ?, [...] and one star match within one
 * component of a path; two stars also match slashes. With a slash at its start, a pattern matches
 * only at the top of SRC; with one at its end, only directories. A pattern with another slash or
 * with two stars is matched against the end of the path below SRC, any other one against the last
 * component. Three stars after a last slash match the directory itself, too, and everything below
 * it.
 *
 * A backslash quotes the next character if the pattern has a wildcard. The first pattern that
 * matches decides; an entry that no pattern matches is copied. Nothing below an excluded directory
 * is looked at.
 *
 * To add a rule:
 * 1. filter.c: filter_excludes() decides what is not copied, filter_protects() what a mirror does
 *    not remove.
 * 2. src/cli/filters.c if its place among the patterns counts, otherwise an option
 *    (.github/CONTRIBUTING.md).
 * 3. root_options() in src/tree/root.c must differ between two sets of rules.
 * 4. Tests: filters.bats, mirror.bats, tree_resume.bats, tests/fuzz/filter.c.
 */
#ifndef SOURCE_FILTER_H
#define SOURCE_FILTER_H

#include "fcopy.h"

#include <stdbool.h>
#include <stddef.h>

struct filter;

/* Returns 0 and the filter in *filter, or NULL there if nothing is filtered; or -EINVAL with the
 * index of the unusable pattern or name in *bad, or -ENOMEM. The strings are copied. `recursive`:
 * a directory in the list stands for everything below it. */
int filter_new(struct filter **filter, const struct fcopy_tree_options *, size_t *bad);
void filter_free(struct filter *);

/* Is the entry with this path below SRC excluded? `path` has no leading or trailing slash; in the
 * source, a path in the list counts as found. */
bool filter_excludes(struct filter *, const char *path, bool is_directory);
/* The same for an entry of the destination: is it protected from deletion? */
bool filter_protects(const struct filter *, const char *path, bool is_directory);
/* Do the answers depend on whether the entry is a directory? */
bool filter_needs_types(const struct filter *);

/* The next name of the list that no entry had, or NULL. *at is 0 before the first call. */
const char *filter_missing(const struct filter *, size_t *at);

/* Paths. */

/* *clean: the path without leading and trailing slashes, repeated slashes and components that are
 * ., which the caller frees. Returns 0; -EINVAL: it has the component ..; or -ENOMEM. */
int path_clean(const char *text, char **clean);
/* Orders paths so that what is below a directory follows it at once. */
int path_compare(const char *a, const char *b);
/* Is it the directory `top`, or below it? Returns the rest of the path then, which begins with a
 * slash unless it or `top` is empty; or NULL. */
const char *path_below(const char *path, const char *top);

/* One pattern with wildcards: pattern.c. A match takes at most as many steps as the pattern has
 * characters for each character of the path, whatever the stars. */

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
