/* SPDX-License-Identifier: MIT
 * The lines of a list as a tree of directories. A directory whose own line is in another chunk is
 * added where its path leads.
 */
#include "list.h"

#include <stdlib.h>
#include <string.h>

struct outlined {
	struct line line;
	struct outlined *next;
	char name[];
};

static struct line *outline_make(struct outline *o, const char *name, size_t length)
{
	struct outlined *n = calloc(1, sizeof(*n) + length + 1);
	if (!n)
		return NULL;
	memcpy(n->name, name, length);
	n->line.entry.name = n->name;
	n->line.entry.st.st_mode = S_IFDIR;
	n->next = o->made;
	o->made = n;
	return &n->line;
}

static void outline_append(struct line *directory, struct line *l)
{
	if (!directory->tail)
		directory->tail = &directory->entry.below;
	*directory->tail = &l->entry;
	directory->tail = &l->entry.next;
}

static struct line *outline_find(const struct outline *o, uint64_t key)
{
	const struct table_row *row = table_find(&o->directory, key);
	struct line *l = NULL;
	if (row)
		memcpy(&l, &row->value, sizeof(l));
	return l;
}

static struct line *outline_make_directory(struct outline *o, struct line *in, uint64_t key,
					   const char *name, size_t length)
{
	struct line *l = outline_make(o, name, length);
	struct table_row *row = l ? table_add(&o->directory, key) : NULL;
	if (!row)
		return NULL;
	memcpy(&row->value, &l, sizeof(l));
	outline_append(in, l);
	return l;
}

struct line *outline_open(struct outline *o, const char *path)
{
	if (strcmp(path, ".") == 0)
		return &o->root;
	struct line *l = outline_find(o, list_hash_path(path, 0)), *in = &o->root;
	if (l)
		return l;
	for (size_t start = 0, end;; start = end + 1, in = l) {
		end = start + strcspn(path + start, "/");
		const uint64_t key = list_hash_bytes(path, end);
		l = outline_find(o, key);
		if (!l)
			l = outline_make_directory(o, in, key, path + start, end - start);
		if (!l || !path[end])
			return l;
	}
}

bool outline_add(struct outline *o, struct line *l)
{
	char path[LIST_PATH];
	struct line *in;
	if (l->kind != 'd') {
		if ((in = outline_open(o, l->dir)))
			outline_append(in, l);
		o->lines += in != NULL;
		return in;
	}
	list_path(l, path);
	if (!(in = outline_open(o, path)))
		return false;
	o->lines += !in->kind;
	in->kind = l->kind;
	in->of = l->of;
	in->entry.st = l->entry.st;
	return true;
}

bool outline_copy(struct outline *o, const struct line *l)
{
	struct line *copy = outline_make(o, l->entry.name, strlen(l->entry.name));
	struct line *in = copy ? outline_open(o, l->dir) : NULL;
	if (!in)
		return false;
	copy->kind = l->kind;
	copy->entry.st = l->entry.st;
	outline_append(in, copy);
	o->lines++;
	return true;
}

void outline_free(struct outline *o)
{
	for (struct outlined *n = o->made, *next; n; n = next) {
		next = n->next;
		free(n);
	}
	table_free(&o->directory);
	*o = (struct outline){.lines = 0};
}
