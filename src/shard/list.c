/* SPDX-License-Identifier: MIT
 * Lists a tree: walks the source once, and writes what it finds into the part, chunk by chunk, so
 * that other processes can begin.
 *
 * Each thread fills another chunk (read.c). The names of a file with hard links are collected
 * until the end: one of them is an entry, the others go to share.links.
 */
#include "endpoints/error.h"
#include "io/io.h"
#include "io/words.h"
#include "tree.h"
#include "tree/directory.h"
#include "tree/entry.h"
#include "tree/report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_SHARED ((off_t)256 << 20) /* such a file is divided into ranges */

/* Chunks grow with the tree, so that a small one is divided evenly, and a
 * large one has no more chunks than a directory can hold. */
#define CHUNK_LINES 160  /* at first; then a part of what was listed */
#define CHUNK_SHARE 16   /* ... this one, or a quarter of a share, if that is less */
#define CHUNK_MOST  8192 /* ... at most */
#define CHUNK_BYTES ((uint64_t)256 << 20)
#define CHUNK_PARTS 1024 /* ... or this part of what was listed, if that is more */
#define LIST_LINE   (4 * LIST_PATH)

/* What one thread has collected. */
struct buffer {
	unsigned thread;
	char *text;
	size_t used, room;
	unsigned lines;
	uint64_t bytes;
	char dir[LIST_PATH]; /* of the last line */
};

/* One of the names of a file with hard links. */
struct linked {
	struct stat st;
	char *path;
};

struct lister {
	struct tree *tree;
	struct job *job; /* NULL: only the sum is wanted */
	unsigned chunks; /* that are written */
	uint64_t lines, bytes;
	uint64_t sum; /* of all entries that were found */
	pthread_mutex_t lock;
	struct linked *linked;
	size_t links, room;
	struct buffer *last;
	struct table known; /* what an earlier process has listed: hashes of the entries */
	size_t unseen;
	int result; /* of the first chunk that could not be written */
};

/* Writes the buffer into a new file. Returns -errno with the call, or 0. It is flushed before it is
 * renamed: a power cut must not leave a list that no process can read. */
static int buffer_put(struct lister *l, struct buffer *b, const char *name, struct failure *fail)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	struct io io = {.cancel = NULL};
	size_t done;
	const uint64_t hash = list_hash_text(b->text, b->used);
	b->used += (size_t)sprintf(b->text + b->used, "end %u %016" PRIx64 "\n", b->lines, hash);
	int fd = openat(l->job->part.fd, name, flags, 0600);
	if (fd < 0)
		return fail_at(fail, "open");
	(void)!fchmod(fd, 0600); /* a umask or a default ACL may withhold rights of the owner */
	int r = fail_if(fail, io_write_all(&io, fd, b->text, b->used, -1, &done), "write");
	if (r == 0 && fdatasync(fd) < 0)
		r = fail_at(fail, "fdatasync");
	if (close(fd) < 0 && r == 0)
		r = fail_at(fail, "close");
	return r;
}

/* Writes what is in it as a file of the part: this one, or the next chunk. Other threads write at
 * the same time, but chunk K gets its name before chunk K + 1. */
static void buffer_write(struct lister *l, struct buffer *b, const char *name)
{
	char new[JOB_NAME], next[JOB_NAME];
	struct failure fail;
	if (b->lines == 0)
		return;
	job_chunk_name(new, "new", b->thread);
	int r = buffer_put(l, b, new, &fail);
	pthread_mutex_lock(&l->lock);
	job_chunk_name(next, "list", l->chunks);
	const int dir = l->job->part.fd;
	if (r == 0 && l->result == 0 && renameat(dir, new, dir, name ? name : next) < 0)
		r = fail_at(&fail, "rename");
	if (r < 0 && l->result == 0)
		__atomic_store_n(&l->result, job_fail(l->job, "write of its list", fail.call, -r),
				 __ATOMIC_RELAXED);
	l->chunks += l->result == 0 && !name;
	pthread_mutex_unlock(&l->lock);
	b->used = b->lines = 0;
	b->bytes = 0;
	b->dir[0] = '\0';
}

static void buffer_free(struct buffer *b)
{
	if (b)
		free(b->text);
	free(b);
}

/* Adds a name, and one more character. */
static void buffer_add_name(struct buffer *b, const char *name, char after)
{
	char *at = words_put_name(b->text + b->used, name, strlen(name));
	*at++ = after;
	b->used = (size_t)(at - b->text);
}

static void buffer_add_stat(struct buffer *b, char kind, const struct stat *st, off_t first,
			    off_t last)
{
	char *at = b->text + b->used;
	*at++ = kind;
	*at++ = ' ';
	at = words_put_unsigned(at, st->st_mode, 8, 1, ' ');
	at = words_put_unsigned(at, st->st_nlink, 10, 1, ' ');
	at = words_put(at, st->st_size, 10, 1, ' ');
	at = words_put_unsigned(at, st->st_ino, 10, 1, ' ');
	at = words_put_time(at, &st->st_mtim);
	at = words_put_time(at, &st->st_ctim);
	if (kind != 'e') {
		at = words_put_unsigned(at, st->st_uid, 10, 1, ' ');
		at = words_put_unsigned(at, st->st_gid, 10, 1, ' ');
		at = words_put_time(at, &st->st_atim);
		at = words_put(at, first, 10, 1, ' ');
		at = words_put(at, last, 10, 1, ' ');
	}
	b->used = (size_t)(at - b->text);
}

/* Makes room for two lines. Returns false if there is no memory; then the tree stops. */
static bool buffer_grow(struct lister *l, struct buffer *b)
{
	if (b->room - b->used > 2 * LIST_LINE)
		return true;
	const size_t room = b->room ? 2 * b->room : 4 * LIST_LINE;
	char *text = realloc(b->text, room);
	if (!text) {
		tree_stop(l->tree, ENOMEM);
		return false;
	}
	b->text = text;
	b->room = room;
	return true;
}

/* A range ends a chunk, which has what came before it; in a tree of many large files, only if the
 * chunk is not too small then. */
static bool buffer_is_full(struct lister *l, const struct buffer *b, bool range)
{
	const uint64_t parts = 4 * (uint64_t)l->job->shard.count;
	uint64_t most = __atomic_load_n(&l->lines, __ATOMIC_RELAXED) /
			(parts > CHUNK_SHARE ? parts : CHUNK_SHARE);
	most = most < CHUNK_LINES ? CHUNK_LINES : most > CHUNK_MOST ? CHUNK_MOST : most;
	const uint64_t part = __atomic_load_n(&l->bytes, __ATOMIC_RELAXED) /
			      (parts > CHUNK_PARTS ? parts : CHUNK_PARTS);
	const uint64_t bytes = range || part > CHUNK_BYTES ? part : CHUNK_BYTES;
	return b->lines >= most || b->bytes >= bytes;
}

/* Adds a line, and writes a chunk that is full. path: below the operand. */
static void buffer_add(struct lister *l, struct buffer *b, char kind, const char *path,
		       const struct stat *st, off_t first, off_t last)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char dir[LIST_PATH] = ".";
	if (!buffer_grow(l, b))
		return;
	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (strcmp(dir, b->dir) != 0) {
		strcpy(b->dir, dir);
		b->used += (size_t)sprintf(b->text + b->used, "in ");
		buffer_add_name(b, dir, '\n');
		b->lines++;
	}
	buffer_add_stat(b, kind, st, first, last);
	buffer_add_name(b, name, '\n');
	b->lines++;
	const uint64_t bytes = S_ISREG(st->st_mode) ? (uint64_t)(last - first) : 0;
	b->bytes += bytes;
	__atomic_add_fetch(&l->lines, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&l->bytes, bytes, __ATOMIC_RELAXED);
	if (buffer_is_full(l, b, kind == 'r'))
		buffer_write(l, b, NULL);
}

static struct lister *lister_of(const struct worker *w)
{
	return w->tree->share.state;
}

/* Is it listed already? What is listed with other attributes has changed since. */
static bool list_knows(struct lister *l, char kind, const char *path, off_t first,
		       const struct stat *st)
{
	struct table_row *k = table_find(&l->known, list_hash_path(path, first));
	if (!k)
		return false;
	if (k->value != list_hash_entry(path, kind, first, st))
		__atomic_store_n(&l->tree->share.differs, true, __ATOMIC_RELAXED);
	if (!__atomic_exchange_n(&k->mark, true, __ATOMIC_RELAXED))
		__atomic_sub_fetch(&l->unseen, 1, __ATOMIC_RELAXED);
	return true;
}

static void list_add_unit(struct lister *l, struct buffer *b, char kind, const char *path,
			  const struct stat *st, off_t first, off_t last)
{
	if (!list_knows(l, kind, path, first, st))
		buffer_add(l, b, kind, path, st, first, last);
}

/* A file, or anything else but a directory. */
static void list_add_file(struct lister *l, struct buffer *b, const char *path,
			  const struct stat *st, bool whole)
{
	const off_t size = S_ISREG(st->st_mode) ? st->st_size : 0;
	if (size < LARGE_SHARED || whole) {
		list_add_unit(l, b, 'e', path, st, 0, size);
		return;
	}
	const unsigned n = range_count(1, size);
	off_t first, last;
	for (unsigned i = 0; i < n; i++) {
		range_of(n, i, size, &first, &last);
		list_add_unit(l, b, 'r', path, st, first, last);
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

static struct buffer *list_buffer(struct worker *w)
{
	struct buffer *b = w->list;
	if (!b && (b = w->list = calloc(1, sizeof(*b))))
		b->thread = w->number;
	if (!b)
		tree_stop(w->tree, ENOMEM);
	return b;
}

/* By their sum a late shard knows what was copied: a file as a single one, by inode, size and
 * mtime. Mode and ctime do not count: chmod(2) may have made an entry readable during the job. */
static uint64_t list_hash_found(const char *path, const struct stat *st)
{
	const struct stat what = {.st_mode = st->st_mode & S_IFMT,
				  .st_ino = st->st_ino,
				  .st_size = st->st_size,
				  .st_mtim = st->st_mtim};
	return list_hash_entry(path, 'e', 0, &what);
}

int list_add(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct lister *l = lister_of(w);
	char path[LIST_PATH];
	const bool directory = S_ISDIR(st->st_mode);
	if (__atomic_load_n(&l->result, __ATOMIC_RELAXED) < 0)
		return -1; /* nothing more is needed */
	if (!entry_path_below(e, path, sizeof(path)))
		return report_call(w, e, "stat", entry_src, ENAMETOOLONG);
	__atomic_add_fetch(&l->sum, list_hash_found(path, st), __ATOMIC_RELAXED);
	struct buffer *b = l->job ? list_buffer(w) : NULL;
	if (!b)
		return 0;
	if (directory) {
		list_add_unit(l, b, 'd', path, st, 0, 0);
	} else if (links_may_exist(w, st)) {
		pthread_mutex_lock(&l->lock);
		bool added = list_add_linked(l, path, st);
		pthread_mutex_unlock(&l->lock);
		if (!added)
			tree_stop(w->tree, ENOMEM);
	} else {
		list_add_file(l, b, path, st, false);
	}
	return 0;
}

void list_leave(struct worker *w)
{
	struct buffer *b = w->list;
	buffer_write(lister_of(w), b, NULL);
	buffer_free(b);
	w->list = NULL;
}

static bool linked_same(const struct linked *a, const struct linked *b)
{
	return same_inode(&a->st, &b->st);
}

static int compare_linked(const void *a_, const void *b_)
{
	const struct linked *a = a_, *b = b_;
	if (linked_same(a, b))
		return strcmp(a->path, b->path);
	if (a->st.st_dev != b->st.st_dev)
		return a->st.st_dev < b->st.st_dev ? -1 : 1;
	return a->st.st_ino < b->st.st_ino ? -1 : 1;
}

static void list_add_link(struct lister *l, const char *first, const char *path)
{
	struct buffer *b = l->last;
	if (!buffer_grow(l, b))
		return;
	b->used += (size_t)sprintf(b->text + b->used, "link ");
	buffer_add_name(b, first, ' ');
	buffer_add_name(b, path, '\n');
	b->lines++;
}

/* Of each inode the first name, in the order of bytes, is copied; the others become links. */
static void list_inodes(struct lister *l)
{
	struct linked *n = l->linked;
	if (l->links > 0)
		qsort(n, l->links, sizeof(*n), compare_linked);
	for (size_t i = 0, end; i < l->links; i = end) {
		for (end = i + 1; end < l->links && linked_same(&n[i], &n[end]);)
			end++;
		list_add_file(l, l->last, n[i].path, &n[i].st, end > i + 1);
	}
	buffer_write(l, l->last, NULL);
	for (size_t i = 0, first = 0; i < l->links; i++) {
		if (!linked_same(&n[first], &n[i]))
			first = i;
		/* A directory may list a name twice. */
		else if (i > first && strcmp(n[i - 1].path, n[i].path) != 0)
			list_add_link(l, n[first].path, n[i].path);
	}
}

/* What follows the walk: hard links, and the end. */
static int list_end(struct lister *l)
{
	struct job *j = l->job;
	struct io io = {.cancel = NULL};
	size_t done;
	bool again;
	char text[64];
	l->last = calloc(1, sizeof(*l->last));
	if (!l->last || !buffer_grow(l, l->last))
		return job_fail(j, NULL, "malloc", ENOMEM);
	list_inodes(l);
	int r = l->result;
	if (r == 0 && tree_stopped(l->tree))
		return job_fail(j, NULL, "malloc", ENOMEM);
	if (l->unseen > 0) /* an entry that is listed is gone */
		l->tree->share.differs = true;
	if (r < 0 || l->tree->share.differs)
		return r;
	buffer_write(l, l->last, PART_SHARE "links");
	if (l->result < 0)
		return l->result;
	int n = snprintf(text, sizeof(text), "%u %" PRIx64 "\n", l->chunks, l->sum);
	int fd = job_create(j, PART_SHARE "new.end", &again);
	if (fd < 0)
		return fd;
	r = io_truncate(fd, 0);
	if (r == 0)
		r = io_write_all(&io, fd, text, (size_t)n, -1, &done);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(j->part.fd, PART_SHARE "new.end", j->part.fd, PART_SHARE "end") < 0)
		r = -errno;
	return r < 0 ? job_fail(j, "write of its list", "write", -r) : 0;
}

/* Reads what a process that was killed has listed. */
static int list_load(struct lister *l)
{
	struct chunk c;
	char path[LIST_PATH], name[JOB_NAME];
	struct stat st;
	size_t used = 0;
	int r = 0;
	for (; r == 0; l->chunks++) {
		job_chunk_name(name, "list", l->chunks);
		if (fstatat(l->job->part.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		if ((r = chunk_read(l->job, l->chunks, &c)) < 0)
			break;
		for (size_t i = 0; r == 0 && i < c.count; i++, used++) {
			const struct line *e = &c.line[i];
			list_path(e, path);
			struct table_row *k = table_add(&l->known, list_hash_path(path, e->first));
			if (!k)
				r = job_fail(l->job, NULL, "malloc", ENOMEM);
			else
				k->value = list_hash_entry(path, e->kind, e->first, &e->entry.st);
		}
		chunk_free(&c);
	}
	l->unseen = used;
	return r;
}

/* Walks the source as a copy does, but for the destination. */
static int list_walk(struct lister *l, const struct operand *from, int dst)
{
	struct tree *t = l->tree;
	struct stat st = {0};
	int src = openat(from->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory *d = src < 0 ? NULL : directory_new(NULL, "", src, -1, &from->place.st);
	if (!d) {
		if (src >= 0)
			close(src);
		return tree_fail(t, src < 0 ? "open" : "malloc", from->path,
				 src < 0 ? errno : ENOMEM);
	}
	if (dst >= 0)
		(void)!fstat(dst, &st);
	t->root.dst = inode_of(&st);
	d->src_path = from->path;
	d->dst_path = t->report->dst;
	const uint64_t failures = t->root.failures;
	t->root.ground = (struct ground){.fresh = true, .lists = true, .share = true};
	t->share.state = l;
	walk_tree(t, d);
	close(src);
	d->src = -1;
	directory_unref(d);
	if (tree_stopped(t) && l->result == 0)
		return t->stop ? t->stop : -EINTR;
	return t->root.failures > failures ? -EIO : l->result;
}

int list_make(struct tree *t, struct job *j, const struct operand *from, int dst)
{
	struct lister l = {.tree = t, .job = j, .lock = PTHREAD_MUTEX_INITIALIZER};
	int r = list_load(&l);
	if (r == 0)
		r = list_walk(&l, from, dst);
	if (r == 0)
		r = list_end(&l);
	for (size_t i = 0; i < l.links; i++)
		free(l.linked[i].path);
	free(l.linked);
	buffer_free(l.last);
	table_free(&l.known);
	return r;
}

int list_sum(struct tree *t, const struct operand *from, uint64_t *sum)
{
	struct lister l = {.tree = t, .lock = PTHREAD_MUTEX_INITIALIZER};
	int r = list_walk(&l, from, -1);
	*sum = l.sum;
	return r;
}
