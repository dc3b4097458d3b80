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

struct line *outline_open(struct outline *o, const char *path)
{
	struct line *in = &o->root;
	if (strcmp(path, ".") == 0)
		return in;
	const struct known *whole = known_find(&o->directory, list_hash_path(path, 0));
	if (whole)
		return whole->what;
	for (size_t start = 0, end;; start = end + 1) {
		end = start + strcspn(path + start, "/");
		const uint64_t key = list_hash_bytes(path, end);
		const struct known *found = known_find(&o->directory, key);
		struct line *l = found ? found->what : outline_make(o, path + start, end - start);
		struct known *k = found || !l ? NULL : known_add(&o->directory, key);
		if (!found && !k)
			return NULL;
		if (k) {
			k->what = l;
			outline_append(in, l);
		}
		if (!path[end])
			return l;
		in = l;
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
	known_free(&o->directory);
	*o = (struct outline){.lines = 0};
}
