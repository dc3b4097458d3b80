/* SPDX-License-Identifier: MIT
 * The commit of a tree: everything that one process has to do when all chunks are complete.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "endpoints/temporary.h"
#include "tree.h"
#include "tree/commit.h"
#include "tree/directory.h"
#include "tree/flush.h"
#include "tree/inodes.h"
#include "tree/opened.h"
#include "tree/permissions.h"
#include "tree/pool.h"
#include "tree/report.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Work for the pool: lines [at, end) of a chunk, or of the directories. */
struct finish {
	struct shard_tree *shard;
	void (*run)(struct worker *, struct directory *, const struct listed *, unsigned count);
	const struct listed *line;
	size_t count;
	bool each; /* an item for each line; otherwise for each directory */
};

/* A directory that was listed; its path is of the chunk's text, which is kept. */
struct finish_directories {
	struct listed *line; /* name: the whole path */
	size_t count, room;
};

static void finish_item(struct worker *w, const struct item *item)
{
	struct finish *f = item->dir->list;
	if (item->count > 0) {
		f->run(w, item->dir, &f->line[item->first], item->count);
		path_free(item->dir);
		return;
	}
	for (size_t at = 0, end; at < f->count && !tree_stopped(w->tree); at = end) {
		for (end = at + 1;
		     !f->each && end < f->count && f->line[end].dir == f->line[at].dir;)
			end++;
		const struct listed *l = &f->line[at];
		struct directory *d = path_directory(f->shard, f->each ? l->name : l->dir, &l->st);
		if (!d) {
			tree_stop(w->tree, ENOMEM);
			return;
		}
		d->list = f;
		pool_push(w, (struct item){
				 .dir = d, .first = (unsigned)at, .count = (unsigned)(end - at)});
	}
	pool_wake(w->tree);
}

/* Runs f->run with all threads. Returns 0, or -errno, reported. */
static int finish_run(struct finish *f)
{
	struct shard_tree *s = f->shard;
	struct tree *t = s->root.tree;
	const uint64_t failures = t->root.failures;
	struct directory *feed = path_top(s);
	if (!feed)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	feed->list = f;
	opened_start(t, feed);
	pool_run(t, feed, finish_item);
	path_free(feed);
	if (tree_stopped(t))
		return t->stop ? t->stop : -EINTR;
	return t->root.failures > failures ? -EIO : 0;
}

/* A large file gets its attributes when all its ranges are complete. */
static int finish_large(struct worker *w, struct directory *d, const struct listed *l)
{
	const struct entry e = {.dir = d,
				.name = l->name,
				.as = l->name,
				.follow = w->tree->options->follow == FCOPY_FOLLOW_ALWAYS};
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	/* First: it changes errno. */
	mode_t extra = 0600 & ~(l->st.st_mode & permissions_left(w->tree, d->dst));
	struct stat now;
	int src = openat(d->src, e.name, flags | (e.follow ? 0 : O_NOFOLLOW));
	int dst = src < 0 ? -1 : openat(d->dst, e.as, flags | O_NOFOLLOW);
	int r = 0;
	if (dst < 0)
		r = report_call(w, &e, "open", src < 0 ? entry_src : entry_dst, errno);
	else if (fstat(dst, &now) < 0)
		r = report_call(w, &e, "fstat", entry_dst, errno);
	else if (extra && fchmod(dst, now.st_mode & 07777 & ~extra) < 0)
		r = report_call(w, &e, "fchmod", entry_dst, errno);
	if (r == 0)
		r = directory_preserve(w, &e, src, dst, &l->st);
	if (r == 0 && w->tree->root.flush_each && fsync(dst) < 0)
		r = report_call(w, &e, "fsync", entry_dst, errno);
	if (src >= 0)
		close(src);
	if (dst >= 0)
		close(dst);
	return r;
}

/* Are the copies there that the markers promise? */
static void finish_check(struct worker *w, struct directory *d, const struct listed *l,
			 unsigned count)
{
	const struct shard_tree *s = ((struct finish *)d->list)->shard;
	struct stat st;
	int r = path_open(s, w, d, l->dir, false), new = 1;
	for (unsigned i = 0; r == 0 && i < count; i++, l++) {
		const struct entry e = {.dir = d, .name = l->name, .as = l->name};
		const bool there = fstatat(d->dst, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		if (!there && errno != ENOENT) {
			(void)report_call(w, &e, "stat", entry_dst, errno);
			break;
		}
		/* Hard links are not among these lines. */
		if (there && l->first == 0 && (new = inodes_add(s->copies, &st)) <= 0) {
			(void)report_refusal(w, &e, entry_dst, new < 0 ? -new : EEXIST,
					     "is the copy of another entry, too");
			break;
		}
		if (!there || (st.st_mode ^ l->st.st_mode) & S_IFMT ||
		    (S_ISREG(st.st_mode) && st.st_size != l->st.st_size))
			__atomic_store_n(&w->tree->root.doubtful, true, __ATOMIC_RELAXED);
		else if (l->kind == 'r' && l->first == 0)
			r = finish_large(w, d, l);
	}
}

/* A directory gets its attributes after everything below it. */
static void finish_directory(struct worker *w, struct directory *d, const struct listed *l,
			     unsigned count)
{
	const struct shard_tree *s = ((struct finish *)d->list)->shard;
	struct stat now;
	(void)count;
	if (l->st.st_ino == 0) { /* a mount of another user */
		w->sum.directories++;
		return;
	}
	if (path_open(s, w, d, l->name, false) < 0)
		return;
	if (fstat(d->src, &now) < 0) {
		report_call(w, &(struct entry){.dir = d, .name = "", .as = ""}, "fstat", entry_src,
			    errno);
		return;
	}
	source_hide_mode(&now, &w->options);
	if (now.st_ino != l->st.st_ino || now.st_mode != l->st.st_mode ||
	    now.st_uid != l->st.st_uid || now.st_gid != l->st.st_gid)
		__atomic_store_n(&w->tree->differs, true, __ATOMIC_RELAXED);
	d->state = DIRECTORY_RESUMED;
	const uint64_t failures = w->tree->root.failures;
	directory_set_attributes(w, d);
	if (w->tree->root.flush_each && io_flush_directory(d->dst) < 0)
		report_call(w, &(struct entry){.dir = d, .name = "", .as = ""}, "fsync", entry_dst,
			    errno);
	if (w->tree->root.failures == failures)
		report_directory(w, d);
}

static unsigned finish_depth(const char *path)
{
	unsigned n = 0;
	for (; *path; path++)
		n += *path == '/';
	return n;
}

static int finish_compare_depth(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	unsigned m = finish_depth(x->name), n = finish_depth(y->name);
	return m > n ? -1 : m < n;
}

static bool finish_keep(struct finish_directories *of, const struct listed *l)
{
	const bool top = strcmp(l->dir, ".") == 0;
	if (of->count == of->room) {
		size_t room = of->room ? 2 * of->room : 256;
		struct listed *more = realloc(of->line, room * sizeof(*more));
		if (!more)
			return false;
		of->line = more;
		of->room = room;
	}
	char *path = malloc(strlen(l->dir) + strlen(l->name) + 2);
	if (!path)
		return false;
	stpcpy(stpcpy(stpcpy(path, top ? "" : l->dir), top ? "" : "/"), l->name);
	of->line[of->count] = *l;
	of->line[of->count++].name = path;
	return true;
}

/* The chunks once more: checks what was copied, and collects the directories. */
static int finish_chunks(struct shard_tree *s, struct finish_directories *of)
{
	struct chunk c;
	int r = 0;
	for (unsigned k = 0; r == 0 && k < s->job.chunks; k++) {
		if ((r = chunk_read(&s->job, k, &c)) < 0)
			break;
		struct finish f = {
		    .shard = s, .run = finish_check, .line = c.entry, .count = c.count};
		r = finish_run(&f);
		for (size_t i = 0; r == 0 && i < c.count; i++)
			if (c.entry[i].kind == 'd' && !finish_keep(of, &c.entry[i]))
				r = job_fail(&s->job, NULL, "malloc", ENOMEM);
		chunk_free(&c);
	}
	return r;
}

/* Deepest first; those of one depth at once. */
static int finish_directories(struct shard_tree *s, struct finish_directories *of)
{
	int r = 0;
	if (of->count == 0)
		return 0;
	qsort(of->line, of->count, sizeof(*of->line), finish_compare_depth);
	for (size_t at = 0, end; r == 0 && at < of->count; at = end) {
		for (end = at + 1;
		     end < of->count && finish_compare_depth(&of->line[at], &of->line[end]) == 0;)
			end++;
		struct finish f = {.shard = s,
				   .run = finish_directory,
				   .line = of->line + at,
				   .count = end - at,
				   .each = true};
		r = finish_run(&f);
	}
	return r;
}

/* The directory of the operand, and the rename. */
static int finish_root(struct shard_tree *s)
{
	struct building *r = &s->root;
	struct tree *t = r->tree;
	struct stat st;
	struct directory *d = path_top(s);
	if (!d)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	d->state = DIRECTORY_RESUMED;
	int result = fstat(r->dst, &st) < 0 ? job_fail(&s->job, NULL, "fstat", errno)
					    : job_note_commit(&s->job, &st);
	if (result == 0) {
		r->mode = temporary_mode(r->to->place.dir, r->from->place.st.st_mode & 01777) |
			  (st.st_mode & S_ISGID);
		result = commit_root(r, d);
	}
	if (result == 0)
		t->report->directories++;
	path_free(d);
	return result;
}

int finish_tree(struct shard_tree *s)
{
	struct finish_directories of = {NULL, 0, 0};
	struct tree *t = s->root.tree;
	double start = io_now();
	t->root.doubtful = false;
	int r = finish_links(s);
	s->copies = inodes_new();
	if (r == 0 && !s->copies)
		r = job_fail(&s->job, NULL, "malloc", ENOMEM);
	if (r == 0)
		r = finish_chunks(s, &of);
	inodes_free(s->copies);
	if (r == 0 && t->root.doubtful)
		r = job_refuse_part(&s->job, "its .fcopy-part was changed by something else");
	if (r == 0)
		r = finish_directories(s, &of);
	if (r == 0 && t->differs)
		r = job_refuse_source(&s->job);
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	if (r == 0)
		r = finish_root(s);
	for (size_t i = 0; i < of.count; i++)
		free((char *)of.line[i].name);
	free(of.line);
	return r;
}
