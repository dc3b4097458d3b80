/* SPDX-License-Identifier: MIT
 * The lines of a list as a tree of directories. A directory whose own line is in another chunk is
 * added where its path leads.
 */
#include "io/hash.h"
#include "shard_tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct outlined {
	struct line line;
	struct outlined *next;
	char name[];
};

static uint64_t outline_key(const char *path, size_t length)
{
	return hash_mix(hash_add(HASH_START, path, length));
}

/* from: NULL, or of a link. */
static struct line *outline_make(struct outline *o, const char *name, size_t length,
				 const char *from)
{
	const size_t more = from ? strlen(from) + 1 : 0;
	struct outlined *n = calloc(1, sizeof(*n) + length + 1 + more);
	if (!n)
		return NULL;
	memcpy(n->name, name, length);
	n->line.entry.name = n->name;
	n->line.entry.st.st_mode = S_IFDIR;
	if (from)
		n->line.from = memcpy(n->name + length + 1, from, more);
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

/* The directory in a row of the table; NULL: none yet. */
static struct line *outline_of(const struct table_row *row)
{
	struct line *l = NULL;
	if (row)
		memcpy(&l, &row->value, sizeof(l));
	return l;
}

static struct line *outline_enter(struct outline *o, struct line *in, uint64_t key,
				  const char *name, size_t length)
{
	struct table_row *row = table_add(&o->directory, key);
	struct line *l = outline_of(row);
	if (l || !row || !(l = outline_make(o, name, length, NULL)))
		return l;
	memcpy(&row->value, &l, sizeof(l));
	outline_append(in, l);
	return l;
}

struct line *outline_open(struct outline *o, const char *path)
{
	struct line *in = &o->root;
	if (strcmp(path, ".") == 0)
		return in;
	struct line *l = outline_of(table_find(&o->directory, outline_key(path, strlen(path))));
	for (size_t start = 0, end; !l; start = end + 1) {
		end = start + strcspn(path + start, "/");
		in = outline_enter(o, in, outline_key(path, end), path + start, end - start);
		if (!in || !path[end])
			return in;
	}
	return l;
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
	struct line *copy = outline_make(o, l->entry.name, strlen(l->entry.name), l->from);
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
