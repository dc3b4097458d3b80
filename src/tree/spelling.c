/* SPDX-License-Identifier: MIT
 * Implements spelling.h.
 */
#include "spelling.h"
#include "io/io.h"
#include "report.h"
#include "rivals.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>
#include <wctype.h>

static locale_t spelling_locale;
static pthread_once_t spelling_once = PTHREAD_ONCE_INIT;

static void spelling_find_locale(void)
{
	spelling_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static wint_t spelling_lower(wint_t c)
{
	pthread_once(&spelling_once, spelling_find_locale);
	if (spelling_locale)
		return towlower_l(c, spelling_locale);
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Reads a character of UTF-8, or one byte of other text, and moves on. */
static wint_t spelling_next(const char **text)
{
	const unsigned char *t = (const unsigned char *)*text;
	const int more = *t >= 0xf0 ? 3 : *t >= 0xe0 ? 2 : *t >= 0xc0 ? 1 : 0;
	wint_t c = more == 0 ? *t : *t & (0x3fu >> more);
	for (int i = 1; i <= more; i++) {
		if ((t[i] & 0xc0) != 0x80) {
			++*text;
			return *t;
		}
		c = c << 6 | (t[i] & 0x3fu);
	}
	*text += more + 1;
	return c;
}

static bool spelling_is_equal(const char *a, const char *b)
{
	while (*a && *b)
		if (spelling_lower(spelling_next(&a)) != spelling_lower(spelling_next(&b)))
			return false;
	return !*a && !*b;
}

static uint64_t spelling_hash(const char *path)
{
	uint64_t hash = HASH_START;
	while (*path) {
		const wint_t c = spelling_lower(spelling_next(&path));
		hash = hash_add(hash, &c, sizeof(c));
	}
	return hash_mix(hash) | 1;
}

/* Does the directory have the name, and list no other one that differs from it in case beside it?
 */
static bool spelling_is_one(int dir, const char *name)
{
	struct name_list list;
	struct stat st;
	bool same = false, other = false;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || names_read(fd, &list, NULL) < 0)
		list = (struct name_list){.count = 0};
	for (size_t i = 0; i < list.count && !(same && other); i++) {
		const bool is = strcmp(list.name[i], name) == 0;
		same |= is;
		other |= !is && spelling_is_equal(list.name[i], name);
	}
	names_free(&list);
	io_close(fd);
	return !(same && other);
}

/* The same for the last name of an absolute path. *dev: of its directory. */
static bool spelling_is_last_one(const char *path, dev_t *dev)
{
	char above[PATH_MAX];
	struct stat st;
	const char *name = strrchr(path, '/') + 1;
	memcpy(above, path, (size_t)(name - path));
	above[name - path] = '\0';
	const int dir = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const bool one = dir >= 0 && fstatat(dir, "", &st, AT_EMPTY_PATH) == 0 &&
			 spelling_is_one(dir, name);
	*dev = one ? st.st_dev : 0;
	io_close(dir);
	return one;
}

/* The same for each name of the path on its file system: the other spelling may differ in any. */
static bool spelling_is_one_at(char path[PATH_MAX])
{
	dev_t dev, first = 0;
	while (path[1] && spelling_is_last_one(path, &dev)) {
		if (first && dev != first)
			return true;
		first = dev;
		char *end = strrchr(path, '/');
		end[end == path] = '\0';
	}
	return !path[1];
}

/* Where the copy of the entry is, or will be: place_accept() has followed a symlink in DST. Without
 * /proc nobody knows. */
static bool spelling_find_path(const struct worker *w, const struct entry *e, char path[PATH_MAX])
{
	const struct place *p = &w->work.place;
	if (p->dir >= 0 && p->name[0])
		io_name_path(p->dir, p->name, path);
	else
		io_name_path(e->dir->dst, e->as, path);
	return path[0] == '/';
}

/* All names of one source have one spelling: their copies are equal. */
static struct spelling spelling_of(const char *path, const struct stat *src)
{
	const uint64_t number[] = {src->st_ino, src->st_dev};
	const bool linked = src->st_nlink > 1 && !S_ISDIR(src->st_mode);
	return (struct spelling){
	    .path = spelling_hash(path),
	    .source = linked ? hash_mix(hash_add(HASH_START, number, sizeof(number))) | 1
			     : hash_name(path) | 1};
}

/* A row of claims.spelled is begun when a copy begins, and noted when DST has it. */
enum spelling_mark { SPELLING_NOTED, SPELLING_BEGUN };

/* Is the path noted, or only begun if `begun`, with another source? */
static bool spelling_find(struct tree *t, const struct spelling *s, bool begun)
{
	pthread_mutex_lock(&t->claims.searches);
	const struct table_row *row = table_find(&t->claims.spelled, s->path);
	const bool other = row && row->value != s->source && (begun || row->mark == SPELLING_NOTED);
	pthread_mutex_unlock(&t->claims.searches);
	return other;
}

/* Begins or notes the path. Returns whether it is noted with another source. */
static bool spelling_set(struct tree *t, const struct spelling *s, enum spelling_mark mark)
{
	pthread_mutex_lock(&t->claims.searches);
	struct table_row *row = table_add(&t->claims.spelled, s->path);
	const bool other = row && row->value != 0 && row->value != s->source;
	const bool noted = other && row->mark == SPELLING_NOTED;
	if (row && (row->value == 0 || (mark == SPELLING_NOTED && !noted))) {
		row->value = s->source;
		row->mark = mark;
	}
	pthread_mutex_unlock(&t->claims.searches);
	if (!row)
		tree_stop(t, ENOMEM);
	return noted;
}

static void spelling_remove(struct tree *t, const struct spelling *s)
{
	pthread_mutex_lock(&t->claims.searches);
	struct table_row *row = table_find(&t->claims.spelled, s->path);
	if (row && row->value == s->source && row->mark == SPELLING_BEGUN)
		table_remove(&t->claims.spelled, row);
	pthread_mutex_unlock(&t->claims.searches);
}

/* dev: the file system of dir; 0: unknown. */
static bool spelling_is_served(struct tree *t, int dir, dev_t dev)
{
	struct stat st;
	if (dev)
		return storage_is_served(t->known.storage, dir, dev);
	return fstatat(dir, "", &st, AT_EMPTY_PATH) == 0 &&
	       storage_is_served(t->known.storage, dir, st.st_dev);
}

bool spelling_meets(struct worker *w, const struct entry *e, const struct stat *src, bool skipped)
{
	struct tree *t = w->tree;
	const struct directory *d = e->dir;
	char path[PATH_MAX];
	w->work.spelling = (struct spelling){.path = 0};
	if (!rivals_possible(t) || d->dst < 0 || (t->root.ground.single && !tree_has_several(t)) ||
	    !spelling_is_served(t, d->dst, d->dst_inode.dev) || !spelling_find_path(w, e, path))
		return false;
	w->work.spelling = spelling_of(path, src);
	return spelling_find(t, &w->work.spelling, skipped) && spelling_is_one_at(path);
}

void spelling_begin(struct worker *w)
{
	if (w->work.spelling.path)
		(void)spelling_set(w->tree, &w->work.spelling, SPELLING_BEGUN);
}

void spelling_fail(struct worker *w)
{
	if (w->work.spelling.path)
		spelling_remove(w->tree, &w->work.spelling);
}

bool spelling_note(struct worker *w, const struct entry *e)
{
	char path[PATH_MAX];
	return w->work.spelling.path && spelling_set(w->tree, &w->work.spelling, SPELLING_NOTED) &&
	       spelling_find_path(w, e, path) && spelling_is_one_at(path);
}

bool spelling_meets_operand(struct tree *t, const struct place *to, struct spelling *s)
{
	char path[PATH_MAX];
	*s = (struct spelling){.path = 0};
	if (!spelling_is_served(t, to->dir, to->dev))
		return false;
	io_name_path(to->dir, to->name, path);
	if (path[0] == '/')
		*s = spelling_of(path, &(struct stat){.st_mode = S_IFDIR});
	return s->path && spelling_find(t, s, false) && spelling_is_one_at(path);
}

void spelling_note_operand(struct tree *t, const struct spelling *s)
{
	if (s->path)
		(void)spelling_set(t, s, SPELLING_NOTED);
}

bool spelling_is_noted(struct tree *t, const struct directory *d, const char *name)
{
	char path[PATH_MAX];
	if (!spelling_is_served(t, d->dst, d->dst_inode.dev))
		return false;
	io_name_path(d->dst, name, path);
	const struct spelling s = {.path = spelling_hash(path)};
	return spelling_find(t, &s, false);
}

bool spelling_is_same(struct tree *t, const struct entry *e, const char *name)
{
	return spelling_is_equal(e->as, name) && spelling_is_served(t, e->dir->dst, 0) &&
	       spelling_is_one(e->dir->dst, e->as);
}

static size_t spelling_component(const char **path)
{
	*path += strspn(*path, "/");
	return strcspn(*path, "/");
}

/* Are the paths equal, or is one inside the other, because DST takes two spellings for one? */
static bool spelling_paths_relate(const char *first, const char *second, bool *equal)
{
	char path[PATH_MAX], a[NAME_MAX + 1], b[NAME_MAX + 1];
	dev_t dev;
	const char *p = first, *q = second;
	bool differ = false;
	for (;;) {
		const size_t n = spelling_component(&p), m = spelling_component(&q);
		*equal = n == m;
		if (n == 0 || m == 0)
			return differ;
		if (n > NAME_MAX || m > NAME_MAX)
			return false;
		memcpy(a, p, n);
		memcpy(b, q, m);
		a[n] = b[m] = '\0';
		if (strcmp(a, b) != 0) {
			if (!spelling_is_equal(a, b))
				return false;
			memcpy(path, first, (size_t)(p - first));
			strcpy(path + (p - first), b);
			if (!spelling_is_last_one(path, &dev))
				return false;
			differ = true;
		}
		p += n;
		q += m;
	}
}

bool spelling_is_source(struct tree *t, const struct entry *e, dev_t src, dev_t dst)
{
	char from[PATH_MAX], to[PATH_MAX];
	bool equal;
	const struct directory *d = e->dir;
	if (src != dst || !storage_is_served(t->known.storage, d->dst, dst))
		return false;
	io_name_path(d->src, e->name, from);
	io_name_path(d->dst, e->as, to);
	return from[0] == '/' && to[0] == '/' && spelling_paths_relate(from, to, &equal) && equal;
}

bool spelling_relates(struct tree *t, int src, const struct stat *st, const struct place *dst)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct stat above;
	bool equal;
	if (fstatat(dst->dir, "", &above, AT_EMPTY_PATH) < 0 || above.st_dev != st->st_dev ||
	    !storage_is_served(t->known.storage, dst->dir, above.st_dev))
		return false;
	io_name_path(src, "", from);
	io_name_path(dst->dir, dst->name, to);
	return from[0] == '/' && to[0] == '/' && spelling_paths_relate(from, to, &equal);
}
