/* SPDX-License-Identifier: MIT
 * Patterns and lists of names that decide which entries are copied.
 */
#include "filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rule {
	char *text; /* without the leading and trailing slash that the members below stand for */
	bool include, directory, anchored;
	struct pattern *wild; /* NULL: has no wildcard, and is compared as it is */
	bool spans;           /* has **, which matches slashes */
	bool below;       /* ends in ***: a directory is matched as if its path ended in a slash */
	unsigned slashes; /* in text */
};

struct filter {
	struct rule *rule;
	size_t rules;
	char **name; /* sorted */
	bool *found;
	size_t names;
	bool lists, recursive, whole, needs_types;
};

static bool filter_match_text(const struct rule *r, const char *text)
{
	return r->wild ? pattern_match(r->wild, text, false) : strcmp(r->text, text) == 0;
}

/* path starts with a slash, which only patterns that start with ** can match. */
static bool filter_match_path(const struct rule *r, const char *path)
{
	if (r->anchored)
		return filter_match_text(r, path + 1);
	if (r->spans) /* from any component on */
		return pattern_match(r->wild, path + (r->text[0] != '*'), true);
	const char *from = path + strlen(path);
	for (unsigned slashes = 0; from > path && slashes <= r->slashes;)
		slashes += *--from == '/';
	return filter_match_text(r, from + 1);
}

static bool filter_match(const struct rule *r, const char *path, bool is_directory)
{
	char text[FCOPY_PATH_MAX + 2] = "/";
	size_t length = strlen(path);
	if (length >= FCOPY_PATH_MAX || (r->directory && !is_directory))
		return false;
	memcpy(text + 1, path, length + 1);
	if (r->below && is_directory && filter_match_path(r, strcat(text, "/")))
		return true;
	text[1 + length] = '\0';
	return filter_match_path(r, text);
}

static bool filter_rules_exclude(const struct filter *f, const char *path, bool is_directory)
{
	for (size_t i = 0; i < f->rules; i++)
		if (filter_match(&f->rule[i], path, is_directory))
			return !f->rule[i].include;
	return false;
}

int path_compare(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	const int x = *a == '/' ? 1 : (unsigned char)*a + (*a ? 1 : 0);
	const int y = *b == '/' ? 1 : (unsigned char)*b + (*b ? 1 : 0);
	return x - y;
}

static int filter_compare_names(const void *a, const void *b)
{
	return path_compare(*(char *const *)a, *(char *const *)b);
}

const char *path_below(const char *path, const char *top)
{
	size_t n = strlen(top);
	n -= n > 0 && top[n - 1] == '/';
	return strncmp(path, top, n) == 0 && (n == 0 || path[n] == '/' || path[n] == '\0')
		   ? path + n
		   : NULL;
}

/* Index of the first name that does not come before the path. */
static size_t filter_search(const struct filter *f, const char *path)
{
	size_t low = 0, high = f->names;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (path_compare(f->name[middle], path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Is the path in the list, above an entry of the list or, if recursive, below one? */
static bool filter_is_listed(struct filter *f, const char *path)
{
	const size_t at = filter_search(f, path);
	if (at < f->names && strcmp(f->name[at], path) == 0) {
		__atomic_store_n(&f->found[at], true, __ATOMIC_RELAXED);
		return true;
	}
	if (at < f->names && path_below(f->name[at], path))
		return true;
	if (!f->recursive || f->whole)
		return f->whole;
	char top[FCOPY_PATH_MAX];
	for (size_t n = strlen(path); n > 0 && n < sizeof(top); n--) {
		if (path[n] != '/')
			continue;
		memcpy(top, path, n);
		top[n] = '\0';
		const size_t i = filter_search(f, top);
		if (i < f->names && strcmp(f->name[i], top) == 0)
			return true;
	}
	return false;
}

bool filter_excludes(struct filter *f, const char *path, bool is_directory)
{
	return (f->lists && !filter_is_listed(f, path)) ||
	       filter_rules_exclude(f, path, is_directory);
}

bool filter_protects(const struct filter *f, const char *path, bool is_directory)
{
	return f && filter_rules_exclude(f, path, is_directory);
}

bool filter_needs_types(const struct filter *f)
{
	return f->needs_types;
}

const char *filter_missing(const struct filter *f, size_t *at)
{
	for (; f && *at < f->names; ++*at)
		if (!__atomic_load_n(&f->found[*at], __ATOMIC_RELAXED))
			return f->name[(*at)++];
	return NULL;
}

/* Returns 0, -EINVAL or -ENOMEM. */
static int filter_add_rule(struct filter *f, const struct fcopy_pattern *p)
{
	const char *text = p->text;
	struct rule *r = &f->rule[f->rules];
	*r = (struct rule){.include = p->include, .anchored = text[0] == '/'};
	text += r->anchored;
	size_t length = strlen(text);
	r->directory = length > 0 && text[length - 1] == '/';
	length -= r->directory;
	if (length == 0 || length >= FCOPY_PATH_MAX)
		return -EINVAL;
	r->text = strndup(text, length);
	if (!r->text)
		return -ENOMEM;
	f->rules++;
	if (strpbrk(r->text, "*?[") && !(r->wild = pattern_new(r->text)))
		return -ENOMEM;
	r->spans = r->wild && pattern_spans(r->wild);
	r->below = r->spans && length >= 4 && strcmp(r->text + length - 4, "/***") == 0;
	for (const char *slash = strchr(r->text, '/'); slash; slash = strchr(slash + 1, '/'))
		r->slashes++;
	f->needs_types |= r->directory || r->below;
	return 0;
}

int path_clean(const char *text, char **clean)
{
	char *to = *clean = malloc(strlen(text) + 1);
	if (!to)
		return -ENOMEM;
	for (size_t length; *(text += strspn(text, "/")); text += length) {
		length = strcspn(text, "/");
		if (length == 2 && strncmp(text, "..", 2) == 0) {
			free(*clean);
			return -EINVAL;
		}
		if (length == 1 && *text == '.')
			continue;
		if (to > *clean)
			*to++ = '/';
		memcpy(to, text, length);
		to += length;
	}
	*to = '\0';
	return 0;
}

/* The name may not leave SRC. */
static int filter_add_name(struct filter *f, const char *text)
{
	char *name;
	const int r = path_clean(text, &name);
	if (r < 0)
		return r;
	if (name[0]) {
		f->name[f->names++] = name;
	} else { /* SRC itself, or with all that is below */
		f->whole |= f->recursive;
		free(name);
	}
	return 0;
}

static void filter_sort_names(struct filter *f)
{
	size_t used = 0;
	qsort(f->name, f->names, sizeof(*f->name), filter_compare_names);
	for (size_t i = 0; i < f->names; i++)
		if (used > 0 && strcmp(f->name[used - 1], f->name[i]) == 0)
			free(f->name[i]);
		else
			f->name[used++] = f->name[i];
	f->names = used;
}

int filter_new(struct filter **filter, const struct fcopy_tree_options *o, size_t *bad)
{
	int r = 0;
	*filter = NULL;
	if (o->pattern_count == 0 && !o->files)
		return 0;
	struct filter *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct filter){.lists = o->files, .recursive = o->files_recursive};
	f->rule = calloc(o->pattern_count + 1, sizeof(*f->rule));
	f->name = calloc(o->file_count + 1, sizeof(*f->name));
	f->found = calloc(o->file_count + 1, sizeof(*f->found));
	if (!f->rule || !f->name || !f->found)
		r = -ENOMEM;
	for (*bad = 0; r == 0 && *bad < o->pattern_count; *bad += r == 0)
		r = filter_add_rule(f, &o->patterns[*bad]);
	if (r == 0)
		for (*bad = 0; r == 0 && *bad < o->file_count; *bad += r == 0)
			r = filter_add_name(f, o->files[*bad]);
	if (r < 0) {
		filter_free(f);
		return r;
	}
	filter_sort_names(f);
	*filter = f;
	return 0;
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->rules; i++)
		free(f->rule[i].text), pattern_free(f->rule[i].wild);
	for (size_t i = 0; i < f->names; i++)
		free(f->name[i]);
	free(f->rule);
	free(f->name);
	free(f->found);
	free(f);
}
