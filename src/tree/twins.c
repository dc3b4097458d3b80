/* SPDX-License-Identifier: MIT
 * Names of one directory that differ only in the case of ASCII letters. If the destination ignores
 * case, the copy of one would replace the copy of the other. A new tree needs no such check: its
 * files are created with O_EXCL.
 */
#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct twins {
	size_t count, size;
	uint64_t folded[]; /* sorted: hashes of names in lower case */
};

static char fold_letter(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static uint64_t fold_name(const char *name)
{
	uint64_t hash = HASH_START;
	for (; *name; name++) {
		char c = fold_letter(*name);
		hash = hash_add(hash, &c, 1);
	}
	return hash;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static struct twins *add_name(struct twins *t, const char *name)
{
	if (t && t->count < t->size) {
		t->folded[t->count++] = fold_name(name);
		return t;
	}
	size_t size = t ? t->size * 2 : 64;
	struct twins *larger = realloc(t, sizeof(*t) + size * sizeof(*t->folded));
	if (!larger) {
		free(t);
		return NULL;
	}
	if (!t)
		larger->count = 0;
	larger->size = size;
	return add_name(larger, name);
}

/* Keeps one of each hash that occurs more than once. */
static void keep_repeated(struct twins *t)
{
	size_t kept = 0;
	qsort(t->folded, t->count, sizeof(*t->folded), compare);
	for (size_t i = 1; i < t->count; i++)
		if (t->folded[i] == t->folded[i - 1] &&
		    (kept == 0 || t->folded[kept - 1] != t->folded[i]))
			t->folded[kept++] = t->folded[i];
	t->count = kept;
}

/* Tests this with a temporary directory. If that cannot be created, neither can a copy. */
static bool ignores_case(int dir)
{
	struct stat st;
	char name[TEMPORARY_SIZE];
	if (temporary_draw(name) < 0 || mkdirat(dir, name, 0700) < 0)
		return false;
	char *letter = strstr(name, "fcopy");
	*letter = 'F';
	bool ignores = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	*letter = 'f';
	unlinkat(dir, name, AT_REMOVEDIR);
	return ignores;
}

/* Returns 0 or -errno. */
static int read_names(struct directory *d, const char **call)
{
	_Alignas(8) char names[32768];
	ssize_t n;
	*call = "getdents64";
	while ((n = getdents64(d->src, names, sizeof(names))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(names + at);
			d->twins = add_name(d->twins, entry->d_name);
			if (!d->twins) {
				*call = "malloc";
				return -ENOMEM;
			}
			at += entry->d_reclen;
		}
	if (n < 0)
		return -errno;
	*call = "lseek";
	return lseek(d->src, 0, SEEK_SET) < 0 ? -errno : 0;
}

int twins_find(struct directory *d, const char **call)
{
	int r = read_names(d, call);
	if (r == 0 && d->twins) {
		keep_repeated(d->twins);
		if (d->twins->count > 0 && ignores_case(d->dst))
			return 0;
	}
	twins_free(d->twins);
	d->twins = NULL;
	return r;
}

void twins_free(struct twins *t)
{
	free(t);
}

int twins_refuse(struct worker *w, const struct entry *e)
{
	const struct twins *t = e->dir->twins;
	uint64_t folded = fold_name(e->name);
	if (!bsearch(&folded, t->folded, t->count, sizeof(folded), compare))
		return 0;
	return report_refusal(w, e, entry_src, EEXIST,
			      "differs only in case from another name, and the destination "
			      "ignores case");
}
