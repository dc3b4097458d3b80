/* SPDX-License-Identifier: MIT
 * What the operands of a tree name, and what is refused before anything is created.
 */
#include "endpoints/endpoint.h"
#include "endpoints/error.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool operand_is_unnamed(const char *name, size_t length)
{
	return length == 0 || (name[0] == '/' && length == 1) ||
	       (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

static int compare_names(const void *a, const void *b)
{
	size_t na, nb;
	const char *pa = place_last_component(*(const char *const *)a, &na);
	const char *pb = place_last_component(*(const char *const *)b, &nb);
	int r = memcmp(pa, pb, na < nb ? na : nb);
	return r ? r : (na > nb) - (na < nb);
}

#define SAME_NAME "have the same name: one would replace the other"
#define PART_NAME                                                                                  \
	"cannot be copied together: an unfinished copy of the first has the name of the second"

static int refuse_names(struct tree *t, const char *a, const char *b, const char *reason)
{
	struct fcopy_error error;
	int r = error_refuse(&error, a, EEXIST, reason, FCOPY_ADVICE_USAGE);
	error.path2 = b;
	report_operand(t, &error);
	return r;
}

/* Sets part to the name under which an unfinished copy of src is kept. Returns false if none is
 * kept: without --resume only that of a directory is. */
static bool make_part_name(const struct tree *t, const char *src, char part[NAME_MAX + 1])
{
	struct stat st;
	size_t length;
	const char *name = place_last_component(src, &length);
	if (operand_is_unnamed(name, length) || length + sizeof(PART_SUFFIX) > NAME_MAX + 1)
		return false;
	sprintf(part, "%.*s" PART_SUFFIX, (int)length, name);
	return t->options->copy.resume || (stat(src, &st) == 0 && S_ISDIR(st.st_mode));
}

/* A source that is merged into DST itself must not have an entry with the name of another one. */
static int check_merged(struct tree *t, const char *merged, const char *const *src, size_t n)
{
	struct stat st;
	char path[PATH_MAX], part[NAME_MAX + 1];
	for (size_t i = 0; i < n; i++) {
		size_t length;
		const char *name = place_last_component(src[i], &length);
		if (src[i] == merged)
			continue;
		int size = snprintf(path, sizeof(path), "%s/%.*s", merged, (int)length, name);
		if (size >= (int)sizeof(path))
			return tree_fail(t, "stat", merged, ENAMETOOLONG);
		if (lstat(path, &st) == 0)
			return refuse_names(t, path, src[i], SAME_NAME);
		if (make_part_name(t, src[i], part) &&
		    snprintf(path, sizeof(path), "%s/%s", merged, part) < (int)sizeof(path) &&
		    lstat(path, &st) == 0)
			return refuse_names(t, src[i], path, PART_NAME);
	}
	return 0;
}

/* The sources are sorted. */
static int check_part_names(struct tree *t, const char *const *src, size_t n)
{
	char part[NAME_MAX + 1];
	const char *key = part;
	for (size_t i = 0; i < n; i++) {
		const char *const *other = make_part_name(t, src[i], part)
					       ? bsearch(&key, src, n, sizeof(*src), compare_names)
					       : NULL;
		if (other)
			return refuse_names(t, src[i], *other, PART_NAME);
	}
	return 0;
}

/* The second of two sources with the same name would replace the first. The copy of a source would
 * also replace an unfinished copy of another one that has its name. */
static int check_names(struct tree *t, const char *const *src, size_t n)
{
	size_t length;
	if (n < 2)
		return 0;
	const char *unnamed = NULL;
	for (size_t i = 0; i < n; i++) {
		const char *name = place_last_component(src[i], &length);
		if (!operand_is_unnamed(name, length))
			continue;
		if (unnamed)
			return tree_refuse(t, src[i], EINVAL,
					   "is merged into DST: only one source can be",
					   FCOPY_ADVICE_USAGE);
		unnamed = src[i];
	}
	int merged = unnamed ? check_merged(t, unnamed, src, n) : 0;
	if (merged < 0)
		return merged;
	const char **sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return tree_fail(t, "malloc", src[0], ENOMEM);
	memcpy(sorted, src, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_names);
	int r = 0;
	for (size_t i = 1; i < n && r == 0; i++) {
		if (compare_names(&sorted[i - 1], &sorted[i]) == 0)
			r = refuse_names(t, sorted[i - 1], sorted[i], SAME_NAME);
	}
	if (r == 0)
		r = check_part_names(t, sorted, n);
	free(sorted);
	return r;
}

static int check_rules(struct tree *t, const char *const *src, size_t n, const char *dst)
{
	struct fcopy_error error;
	char detail[FCOPY_DETAIL_MAX];
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = rules_check(&(struct request){.src = src[i],
						  .dst = dst,
						  .options = &t->options->copy,
						  .tree = t->options,
						  .sources = n},
				&error, detail);
	if (r < 0)
		report_operand(t, &error);
	return r;
}

int operands_check(struct tree *t, const char *const *src, size_t n, const char *dst)
{
	if (n == 0)
		return tree_refuse(t, dst, EINVAL, "there is no source", FCOPY_ADVICE_USAGE);
	for (size_t i = 0; i < n; i++)
		if (src[i][0] == '\0')
			return tree_fail(t, "stat", src[i], ENOENT);
	if (dst[0] == '\0')
		return tree_fail(t, "stat", dst, ENOENT);
	int r = check_rules(t, src, n, dst);
	return r < 0 ? r : check_names(t, src, n);
}

int operands_find_directory(struct tree *t, size_t n, const char *dst, bool *into)
{
	const struct fcopy_tree_options *o = t->options;
	struct stat st;
	bool needed = n > 1 || o->into_directory;
	if (!needed && o->copy.no_directory)
		return 0;
	bool exists = stat(dst, &st) == 0;
	*into = exists && S_ISDIR(st.st_mode);
	if (!needed || *into)
		return 0;
	if (!exists && errno == ENOENT)
		return tree_refuse(t, dst, ENOENT, "no such directory", FCOPY_ADVICE_NONE);
	return exists ? tree_fail(t, NULL, dst, ENOTDIR) : tree_fail(t, "stat", dst, errno);
}
