/* SPDX-License-Identifier: MIT
 * Reads the list of a tree: its chunks, and their lines as a tree of directories.
 */
#include "io/hash.h"
#include "io/words.h"
#include "tree.h"
#include "tree/report.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The same of a path, with first 0. */
static uint64_t list_hash_bytes(const char *path, size_t length)
{
	return hash_mix(hash_add(HASH_START, path, length) ^ hash_mix(0));
}

uint64_t list_hash_path(const char *path, off_t first)
{
	return hash_mix(hash_add(HASH_START, path, strlen(path)) ^ hash_mix((uint64_t)first));
}

/* Eight bytes at a time, in the order of a little-endian machine. */
uint64_t list_hash_text(const char *text, size_t size)
{
	uint64_t hash = HASH_START ^ size, eight;
	for (; size > 0; text += sizeof(eight), size -= sizeof(eight)) {
		if (size < sizeof(eight))
			return hash_mix(hash_add(hash, text, size));
		memcpy(&eight, text, sizeof(eight));
		hash = (hash ^ le64toh(eight)) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return hash_mix(hash);
}

/* The size and times of a directory change when entries appear in it. The owner of a file is not
 * listed: its ctime changes, too. */
uint64_t list_hash_entry(const char *path, char kind, off_t first, const struct stat *st)
{
	const bool directory = S_ISDIR(st->st_mode);
	const uint64_t seen[] = {(uint64_t)kind,
				 st->st_mode,
				 directory ? 0 : (uint64_t)st->st_size,
				 directory ? 0 : (uint64_t)st->st_mtim.tv_sec,
				 directory ? 0 : (uint64_t)st->st_mtim.tv_nsec,
				 directory ? 0 : (uint64_t)st->st_ctim.tv_sec,
				 directory ? 0 : (uint64_t)st->st_ctim.tv_nsec,
				 directory ? st->st_uid : 0,
				 directory ? st->st_gid : 0,
				 st->st_ino};
	uint64_t hash = list_hash_path(path, first) * 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++)
		hash = hash_mix(hash ^ seen[i]) + i;
	return hash;
}

/* A name, with a null byte, where it stands. */
static char *list_name(struct words *w, char *text)
{
	size_t length;
	char *name = text + (words_text(w, &length) - text);
	words_name(name, length, name, &w->wrong);
	return name;
}

static bool chunk_parse_entry(struct words *w, char *text, struct line *e)
{
	struct stat *st = &e->entry.st;
	st->st_mode = (mode_t)words_number(w, ' ', 8);
	st->st_nlink = (nlink_t)words_unsigned(w);
	st->st_size = (off_t)words_number(w, ' ', 10);
	st->st_ino = (ino_t)words_unsigned(w);
	st->st_mtim = words_time(w);
	st->st_ctim = words_time(w);
	e->last = S_ISREG(st->st_mode) ? st->st_size : 0;
	if (e->kind != 'e') {
		st->st_uid = (uid_t)words_unsigned(w);
		st->st_gid = (gid_t)words_unsigned(w);
		st->st_atim = words_time(w);
		e->first = (off_t)words_number(w, ' ', 10);
		e->last = (off_t)words_number(w, ' ', 10);
	}
	const char *name = e->entry.name = list_name(w, text);
	return !w->wrong && !strchr(name, '/') && !name_is_dot(name) && strlen(name) < PATH_MAX;
}

static bool chunk_parse_line(char *line, const char *end, struct line *e, const char **dir)
{
	struct words w = {.at = line, .end = end};
	const char *kind = list_name(&w, line);
	*e = (struct line){.kind = kind[0], .dir = *dir};
	if (strcmp(kind, "in") == 0)
		*dir = list_name(&w, line);
	else if (strcmp(kind, "link") == 0) {
		e->from = list_name(&w, line);
		e->entry.name = list_name(&w, line);
	} else if (!kind[0] || kind[1] || !strchr("edr", kind[0]) || !*dir ||
		   !chunk_parse_entry(&w, line, e))
		return false;
	return !w.wrong;
}

/* The hash of the last line shows that everything before it is there. Returns its offset, or 0. */
static size_t chunk_check(const char *text, size_t size, size_t *lines)
{
	uint64_t hash;
	if (size < 2 || text[size - 1] != '\n')
		return 0;
	const char *last = memrchr(text, '\n', size - 1);
	last = last ? last + 1 : text;
	if (sscanf(last, "end %zu %" SCNx64, lines, &hash) != 2 ||
	    hash != list_hash_text(text, (size_t)(last - text)))
		return 0;
	return (size_t)(last - text) + 1;
}

static int chunk_parse(struct chunk *c, size_t size)
{
	size_t lines = 0, end = chunk_check(c->text, size, &lines);
	const char *dir = NULL;
	if (end == 0 || lines > size || memchr(c->text, '\0', end))
		return -EBADMSG;
	c->line = calloc(lines + 1, sizeof(*c->line));
	if (!c->line)
		return -ENOMEM;
	for (char *line = c->text, *stop = c->text + end - 1; line < stop;) {
		char *next = strchr(line, '\n');
		*next = '\0';
		if (c->count > lines || !chunk_parse_line(line, next, &c->line[c->count], &dir))
			return -EBADMSG;
		c->count += c->line[c->count].kind != 'i';
		line = next + 1;
	}
	return 0;
}

static int chunk_load(int fd, struct chunk *c, size_t *size)
{
	struct stat st;
	ssize_t n = 1;
	if (fstat(fd, &st) < 0)
		return -errno;
	c->text = malloc((size_t)st.st_size + 1);
	if (!c->text)
		return -ENOMEM;
	for (*size = 0; *size < (size_t)st.st_size && n > 0; *size += n > 0 ? (size_t)n : 0) {
		do
			n = read(fd, c->text + *size, (size_t)st.st_size - *size);
		while (n < 0 && errno == EINTR);
	}
	c->text[*size] = '\0';
	return n < 0 ? -errno : 0;
}

int chunk_read(const struct job *j, unsigned k, struct chunk *c)
{
	char name[JOB_NAME];
	size_t size = 0;
	*c = (struct chunk){.number = k};
	if (k == LIST_LINKS)
		strcpy(name, PART_SHARE "links");
	else
		job_chunk_name(name, "list", k);
	int fd = job_open(j, name, k == LIST_LINKS ? j->listed : k < j->chunks);
	int r = fd < 0 ? fd : chunk_load(fd, c, &size);
	if (fd >= 0)
		close(fd);
	if (r == 0)
		r = chunk_parse(c, size);
	if (r == 0)
		return 0;
	chunk_free(c);
	return r == -EBADMSG ? job_refuse_part(j, LIST_DAMAGED)
			     : job_fail(j, "read of its list", "open", -r);
}

void chunk_free(struct chunk *c)
{
	free(c->text);
	free(c->line);
	c->text = NULL;
	c->line = NULL;
	c->count = 0;
}

void list_path(const struct line *l, char path[LIST_PATH])
{
	const bool top = strcmp(l->dir, ".") == 0;
	snprintf(path, LIST_PATH, "%s%s%s", top ? "" : l->dir, top ? "" : "/", l->entry.name);
}

/* The lines of a list as a tree of directories. A directory whose own line is in another chunk is
 * added where its path leads. */

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
