/* SPDX-License-Identifier: MIT
 * Lists a tree: walks the source once, and writes what it finds into the part, chunk by chunk, so
 * that other processes can begin.
 *
 * Each thread fills another chunk (chunk.c). The names of a file with hard links are collected
 * until the end: one of them is an entry, the others are links to it in the same chunk.
 */
#include "endpoints/error.h"
#include "io/io.h"
#include "shard_tree.h"
#include "tree/directory.h"
#include "tree/entry.h"
#include "tree/report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_SHARED ((off_t)256 << 20) /* such a file is divided into ranges */

/* Chunks grow with the tree, so that a small one is divided evenly, and a
 * large one has no more chunks than a directory can hold. */
#define CHUNK_LINES 160  /* at first; then a part of what was listed */
#define CHUNK_SHARE 16   /* ... this one, or a quarter of a share, if that is less */
#define CHUNK_MOST  8192 /* ... at most */
#define CHUNK_BYTES ((uint64_t)256 << 20)
#define CHUNK_PARTS 1024 /* ... or this part of what was listed, if that is more */

/* One of the names of a file with hard links. */
struct linked {
	struct stat st;
	char *path;
};

/* While the source is walked, the lock protects `chunks`, `linked` and what belongs to them; the
 * counts and `result` are atomic; the rows of `known` stay where they are, and each is marked when
 * its entry is met. After the walk there is one thread. */
struct lister {
	struct shard_tree *shard;
	bool writes;     /* otherwise only the sum is wanted */
	unsigned chunks; /* that are written */
	uint64_t lines, bytes;
	uint64_t sum; /* of all entries that were found */
	pthread_mutex_t lock;
	struct linked *linked;
	size_t links, room;
	struct table known; /* what an earlier process has listed: hashes of the entries */
	size_t unseen;      /* so many of these were not met yet */
	int result;         /* of the first chunk that could not be written */
};

static struct lister *lister_of(const struct worker *w)
{
	return ((struct shard_tree *)w->tree->share.state)->lister;
}

/* Writes the next chunk. Other threads write at the same time, but chunk K gets its name before
 * chunk K + 1. A process that has lost the lock of the list, as a client of NFS may, replaces
 * nothing that its successor has listed. */
static void list_write(struct lister *l, struct chunk_text *c)
{
	char new[JOB_NAME], name[JOB_NAME];
	struct failure fail;
	struct job *j = &l->shard->job;
	job_chunk_name(new, "new", c->thread);
	int r = chunk_write(j, c, new, &fail);
	pthread_mutex_lock(&l->lock);
	job_chunk_name(name, "list", l->chunks);
	if (r == 0 && l->result == 0)
		r = fail_if(&fail, private_rename(j->part.fd, new, j->part.fd, name), "rename");
	if (r < 0 && l->result == 0)
		__atomic_store_n(&l->result, job_fail(j, "write of its list", fail.call, -r),
				 __ATOMIC_RELAXED);
	l->chunks += l->result == 0;
	pthread_mutex_unlock(&l->lock);
}

/* A range ends a chunk, which has what came before it; in a tree of many large files, only if the
 * chunk is not too small then. */
static bool list_is_full(struct lister *l, const struct chunk_text *c, bool range)
{
	const uint64_t parts = 4 * (uint64_t)l->shard->job.options->shard.count;
	uint64_t most = __atomic_load_n(&l->lines, __ATOMIC_RELAXED) /
			(parts > CHUNK_SHARE ? parts : CHUNK_SHARE);
	most = most < CHUNK_LINES ? CHUNK_LINES : most > CHUNK_MOST ? CHUNK_MOST : most;
	const uint64_t part = __atomic_load_n(&l->bytes, __ATOMIC_RELAXED) /
			      (parts > CHUNK_PARTS ? parts : CHUNK_PARTS);
	const uint64_t bytes = range || part > CHUNK_BYTES ? part : CHUNK_BYTES;
	return c->lines >= most || c->bytes >= bytes;
}

/* Is it listed already? What is listed as something else has changed since. */
static bool list_knows(struct lister *l, char kind, const char *path, off_t first,
		       const struct stat *st)
{
	struct table_row *k = table_find(&l->known, list_hash_path(path, first));
	if (!k)
		return false;
	if (k->value != list_hash_entry(path, kind, first, st))
		__atomic_store_n(&l->shard->root.tree->share.differs, true, __ATOMIC_RELAXED);
	if (!__atomic_exchange_n(&k->mark, true, __ATOMIC_RELAXED))
		__atomic_sub_fetch(&l->unseen, 1, __ATOMIC_RELAXED);
	return true;
}

/* Adds a line, and writes a chunk that is full. */
static void list_add_unit(struct lister *l, struct chunk_text *c, char kind, const char *path,
			  const struct stat *st, off_t first, off_t last)
{
	if (list_knows(l, kind, path, first, st))
		return;
	if (!chunk_add(c, kind, path, st, first, last)) {
		tree_stop(l->shard->root.tree, ENOMEM);
		return;
	}
	__atomic_add_fetch(&l->lines, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&l->bytes, (uint64_t)(last - first), __ATOMIC_RELAXED);
	if (list_is_full(l, c, kind == 'r'))
		list_write(l, c);
}

/* A file, or anything else but a directory. */
static void list_add_file(struct lister *l, struct chunk_text *c, const char *path,
			  const struct stat *st, bool whole)
{
	const off_t size = S_ISREG(st->st_mode) ? st->st_size : 0;
	if (size < LARGE_SHARED || whole) {
		list_add_unit(l, c, 'e', path, st, 0, size);
		return;
	}
	const unsigned n = range_count(1, size);
	off_t first, last;
	for (unsigned i = 0; i < n; i++) {
		range_of(n, i, size, &first, &last);
		list_add_unit(l, c, 'r', path, st, first, last);
	}
}

/* Keeps a name of a file with hard links. */
static bool list_add_linked(struct lister *l, const char *path, const struct stat *st)
{
	if (l->links == l->room) {
		const size_t room = l->room ? 2 * l->room : 64;
		struct linked *more = realloc(l->linked, room * sizeof(*more));
		if (!more)
			return false;
		l->linked = more;
		l->room = room;
	}
	l->linked[l->links] = (struct linked){*st, strdup(path)};
	return l->linked[l->links++].path;
}

static struct chunk_text *list_text(struct worker *w)
{
	struct chunk_text *c = w->list;
	if (!c && (c = w->list = calloc(1, sizeof(*c))))
		c->thread = w->number;
	if (!c)
		tree_stop(w->tree, ENOMEM);
	return c;
}

int list_add(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct lister *l = lister_of(w);
	char path[LIST_PATH];
	if (__atomic_load_n(&l->result, __ATOMIC_RELAXED) < 0)
		return -1; /* nothing more is needed */
	if (!entry_path_below(e, path, sizeof(path)))
		return report_call(w, e, "stat", entry_src, ENAMETOOLONG);
	/* By the sum a late shard knows what was copied. */
	__atomic_add_fetch(&l->sum, list_hash_entry(path, 0, 0, st), __ATOMIC_RELAXED);
	struct chunk_text *c = l->writes ? list_text(w) : NULL;
	if (!c)
		return 0;
	if (S_ISDIR(st->st_mode)) {
		list_add_unit(l, c, 'd', path, st, 0, 0);
	} else if (links_may_exist(w, st)) {
		pthread_mutex_lock(&l->lock);
		bool added = list_add_linked(l, path, st);
		pthread_mutex_unlock(&l->lock);
		if (!added)
			tree_stop(w->tree, ENOMEM);
	} else {
		list_add_file(l, c, path, st, false);
	}
	return 0;
}

static void list_free_text(struct chunk_text *c)
{
	if (c)
		free(c->text);
	free(c);
}

void list_leave(struct worker *w)
{
	struct chunk_text *c = w->list;
	if (c && c->lines > 0)
		list_write(lister_of(w), c);
	list_free_text(c);
	w->list = NULL;
}

static int linked_compare(const void *a_, const void *b_)
{
	const struct linked *a = a_, *b = b_;
	if (same_inode(&a->st, &b->st))
		return strcmp(a->path, b->path);
	if (a->st.st_dev != b->st.st_dev)
		return a->st.st_dev < b->st.st_dev ? -1 : 1;
	return a->st.st_ino < b->st.st_ino ? -1 : 1;
}

/* Lists n names of one inode: those after the first, in the order of bytes, become links to it. The
 * links come first, so that they are in the chunk of the copy. */
static void list_inode(struct lister *l, struct chunk_text *c, const struct linked *name, size_t n)
{
	static const struct stat none;
	struct tree *t = l->shard->root.tree;
	const bool known = table_find(&l->known, list_hash_path(name->path, 0));
	for (size_t i = 1; i < n; i++) {
		if (strcmp(name[i - 1].path, name[i].path) == 0 || /* a directory listed it twice */
		    list_knows(l, 'l', name[i].path, 0, &none))
			continue;
		t->share.differs |= known; /* it is new since then */
		if (!known && !chunk_add_link(c, name->path, name[i].path))
			tree_stop(t, ENOMEM);
	}
	list_add_file(l, c, name->path, &name->st, n > 1);
}

static void list_inodes(struct lister *l, struct chunk_text *c)
{
	struct linked *n = l->linked;
	if (l->links > 0)
		qsort(n, l->links, sizeof(*n), linked_compare);
	for (size_t i = 0, end; i < l->links; i = end) {
		for (end = i + 1; end < l->links && same_inode(&n[i].st, &n[end].st);)
			end++;
		list_inode(l, c, &n[i], end - i);
	}
	if (c->lines > 0)
		list_write(l, c);
}

/* What follows the walk: hard links, and the end. fd: of the claim. */
static int list_end(struct lister *l, int fd)
{
	struct shard_tree *s = l->shard;
	struct tree *t = s->root.tree;
	struct chunk_text *c = calloc(1, sizeof(*c));
	if (c)
		list_inodes(l, c);
	else
		tree_stop(t, ENOMEM);
	list_free_text(c);
	if (l->result == 0 && tree_stopped(t))
		return t->stop ? t->stop : -EINTR;
	if (l->unseen > 0) /* an entry that is listed is gone */
		t->share.differs = true;
	if (l->result < 0 || t->share.differs)
		return l->result;
	return job_end_list(&s->job, fd, l->chunks, l->sum);
}

/* Reads what a process that was killed has listed. */
static int list_load(struct lister *l)
{
	struct job *j = &l->shard->job;
	struct chunk c;
	char path[LIST_PATH], name[JOB_NAME];
	struct stat st;
	int r = 0;
	for (; r == 0; l->chunks++) {
		job_chunk_name(name, "list", l->chunks);
		if (fstatat(j->part.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		if ((r = chunk_read(j, l->chunks, &c)) < 0)
			break;
		for (size_t i = 0; r == 0 && i < c.count; i++) {
			const struct line *e = &c.line[i];
			list_path(e, path);
			struct table_row *k = table_add(&l->known, list_hash_path(path, e->first));
			if (k) /* of a link, the stat is zero */
				k->value = list_hash_entry(path, e->kind, e->first, &e->entry.st);
			else
				r = job_fail(j, NULL, "malloc", ENOMEM);
		}
		chunk_free(&c);
	}
	l->unseen = l->known.used;
	return r;
}

static int list_walk(struct lister *l)
{
	static const struct ground ground = {.fresh = true, .lists = true, .share = true};
	l->shard->lister = l;
	const int r = shard_walk(l->shard, &ground, NULL, NULL);
	return l->result < 0 ? l->result : r;
}

int list_make(struct shard_tree *s, int fd)
{
	struct lister l = {.shard = s, .writes = true, .lock = PTHREAD_MUTEX_INITIALIZER};
	int r = list_load(&l);
	if (r == 0)
		r = list_walk(&l);
	if (r == 0)
		r = list_end(&l, fd);
	for (size_t i = 0; i < l.links; i++)
		free(l.linked[i].path);
	free(l.linked);
	table_free(&l.known);
	return r;
}

int list_sum(struct shard_tree *s, uint64_t *sum)
{
	struct lister l = {.shard = s, .lock = PTHREAD_MUTEX_INITIALIZER};
	const int r = list_walk(&l);
	*sum = l.sum;
	return r;
}
