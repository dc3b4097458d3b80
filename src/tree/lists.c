/* SPDX-License-Identifier: MIT
 * Implements lists.h with a tree of tsearch(3).
 */
#define _GNU_SOURCE
#include "lists.h"

#include <search.h>
#include <stdlib.h>
#include <sys/stat.h>

struct kept {
	dev_t dev;
	ino_t ino;
	struct name_list *list; /* NULL: it was taken */
};

static int compare_kept(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

void lists_keep(void **lists, int dir, struct name_list **list)
{
	struct stat st;
	if (!*list || fstat(dir, &st) < 0)
		return;
	struct kept *k = malloc(sizeof(*k));
	if (!k)
		return;
	*k = (struct kept){.dev = st.st_dev, .ino = st.st_ino};
	struct kept **found = (struct kept **)tsearch(k, lists, compare_kept);
	struct kept *of = found ? *found : NULL;
	if (of != k)
		free(k);
	if (of && !of->list) {
		of->list = *list;
		*list = NULL;
	}
}

struct name_list *lists_take(void **lists, int dir)
{
	struct stat st;
	if (!*lists || fstat(dir, &st) < 0)
		return NULL;
	const struct kept key = {.dev = st.st_dev, .ino = st.st_ino};
	struct kept **found = (struct kept **)tfind(&key, lists, compare_kept);
	struct name_list *list = found ? (*found)->list : NULL;
	if (found)
		(*found)->list = NULL;
	return list;
}

void lists_free(void **lists)
{
	while (*lists) {
		struct kept *k = *(struct kept **)*lists;
		tdelete(k, lists, compare_kept);
		if (k->list)
			names_free(k->list);
		free(k->list);
		free(k);
	}
}
