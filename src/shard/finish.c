/* SPDX-License-Identifier: MIT
 * The commit of a tree: everything that one process has to do when all chunks are complete.
 */
#define _GNU_SOURCE
#include "finish.h"
#include "endpoints/error.h"
#include "endpoints/temporary.h"
#include "tree/commit.h"
#include "tree/directory.h"
#include "tree/flush.h"
#include "tree/permissions.h"
#include "tree/pool.h"
#include "tree/preserve.h"
#include "tree/report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines that are kept after their chunk: each has its own copy of the two names. */
struct finish_lines {
	struct listed *line;
	size_t count, room;
};

/* A large file gets its attributes when all its ranges are complete. */
static int finish_large_file(struct worker *w, struct directory *d, const struct listed *l)
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
		r = preserve_open(w, &e, src, dst, &l->st);
	if (r == 0 && w->tree->root.ground.flush == FLUSH_EACH && fsync(dst) < 0)
		r = report_call(w, &e, "fsync", entry_dst, errno);
	if (src >= 0)
		close(src);
	if (dst >= 0)
		close(dst);
	return r;
}

static void finish_large(struct worker *w, struct directory *d, const struct listed *l,
			 unsigned count)
{
	const struct shard_tree *s = ((struct finish *)d->list)->shard;
	int r = path_open(s, w, d, l->dir, false);
	for (; r == 0 && count > 0; count--, l++)
		r = finish_large_file(w, d, l);
}

/* A directory gets its attributes after everything below it. */
static void finish_directory(struct worker *w, struct directory *d, const struct listed *l,
			     unsigned count)
{
	const struct shard_tree *s = ((struct finish *)d->list)->shard;
	struct stat now;
	(void)count;
	if (l->st.st_ino == 0) { /* a mount of another user */
		if (!s->checked)
			report_directory(w, d, &(struct outcome){.type = S_IFDIR});
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
	if (!s->checked)
		finish_check_names(s, w, d, l->name);
	directory_set_attributes(w, d);
	if (w->tree->root.ground.flush == FLUSH_EACH && io_flush_directory(d->dst) < 0)
		report_call(w, &(struct entry){.dir = d, .name = "", .as = ""}, "fsync", entry_dst,
			    errno);
	if (w->tree->root.failures == failures && !s->checked)
		report_directory(w, d, &(struct outcome){.type = S_IFDIR});
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

/* Of a directory, name becomes its whole path. */
static bool finish_keep(struct finish_lines *of, const struct listed *l)
{
	const bool whole = l->kind == 'd' && strcmp(l->dir, ".") != 0;
	if (of->count == of->room) {
		size_t room = of->room ? 2 * of->room : 256;
		struct listed *more = realloc(of->line, room * sizeof(*more));
		if (!more)
			return false;
		of->line = more;
		of->room = room;
	}
	const size_t length = strlen(l->dir);
	char *text = malloc(2 * length + strlen(l->name) + 3);
	if (!text)
		return false;
	char *name = text + length + 1;
	strcpy(text, l->dir);
	stpcpy(stpcpy(stpcpy(name, whole ? l->dir : ""), whole ? "/" : ""), l->name);
	struct listed *kept = &of->line[of->count++];
	*kept = *l;
	kept->dir = text;
	kept->name = name;
	return true;
}

static void finish_forget(struct finish_lines *of)
{
	for (size_t i = 0; i < of->count; i++)
		free((char *)of->line[i].dir);
	free(of->line);
}

/* The chunks once more: notes which names there must be, and keeps directories and large files. */
static int finish_chunks(struct shard_tree *s, struct finish_lines *directories,
			 struct finish_lines *large)
{
	struct chunk c;
	int r = 0;
	s->job.restated = 0;
	for (unsigned k = 0; r == 0 && k < s->job.chunks; k++) {
		if ((r = job_add_restated(&s->job, k)) < 0 || (r = chunk_read(&s->job, k, &c)) < 0)
			break;
		bool kept = true;
		for (size_t i = 0; kept && i < c.count; i++) {
			const struct listed *l = &c.entry[i];
			if (l->first == 0)
				kept = finish_expect(s, l->dir, l->name);
			if (kept && l->first == 0 && l->kind != 'e')
				kept = finish_keep(l->kind == 'd' ? directories : large, l);
		}
		if (!kept)
			r = job_fail(&s->job, NULL, "malloc", ENOMEM);
		chunk_free(&c);
	}
	return r;
}

/* Deepest first; those of one depth at once. */
static int finish_directories(struct shard_tree *s, struct finish_lines *of)
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

static int finish_root_names(struct shard_tree *s)
{
	struct directory *d = path_top(s);
	struct worker *w = d ? pool_join(s->root.tree) : NULL;
	const uint64_t failures = s->root.tree->root.failures;
	if (w) {
		finish_check_names(s, w, d, ".");
		pool_leave(w);
	}
	if (d)
		path_free(d);
	if (!w)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	return s->root.tree->root.failures > failures ? -EIO : 0;
}

/* The directory of the operand, and the rename. */
static int finish_root(struct shard_tree *s)
{
	struct building *r = &s->root;
	struct tree *t = r->tree;
	struct stat st;
	struct outcome o = {.type = S_IFDIR};
	struct directory *d = path_top(s);
	if (!d)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	d->state = DIRECTORY_RESUMED;
	int result = fstat(r->dst, &st) < 0 ? job_fail(&s->job, NULL, "fstat", errno)
					    : job_note_commit(&s->job, &st);
	if (result == 0) {
		r->mode = temporary_mode(r->to->place.dir, r->from->place.st.st_mode & 01777,
					 NULL) |
			  (st.st_mode & S_ISGID);
		result = commit_root(r, d, &o);
	}
	if (result == 0)
		report_operand_outcome(t, &o, r->to->path, NULL);
	path_free(d);
	return result;
}

/* What has to be known before the first directory gets its attributes. */
static int finish_files(struct shard_tree *s, struct finish_lines *directories)
{
	struct finish_lines large = {NULL, 0, 0};
	int r = finish_links(s);
	if (r == 0)
		r = finish_chunks(s, directories, &large);
	struct finish f = {
	    .shard = s, .run = finish_large, .line = large.line, .count = large.count};
	if (r == 0 && large.count > 0)
		r = finish_run(&f);
	finish_forget(&large);
	return r;
}

int finish_tree(struct shard_tree *s)
{
	struct finish_lines directories = {NULL, 0, 0};
	struct tree *t = s->root.tree;
	double start = io_now();
	const bool all = job_was_left(&s->job);
	s->checked = false;
	int r = finish_files(s, &directories);
	if (r == 0 && all)
		r = finish_check_all(s);
	t->root.doubtful = false;
	if (r == 0)
		r = finish_directories(s, &directories);
	if (r == 0)
		r = finish_root_names(s);
	if (r == 0 && t->root.doubtful && !all && (r = finish_check_all(s)) == 0) {
		s->checked = true; /* it may have made directories accessible */
		r = finish_directories(s, &directories);
	}
	if (r == 0 && t->differs)
		r = job_refuse_source(&s->job);
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	if (r == 0)
		r = finish_root(s);
	finish_forget(&directories);
	known_free(&s->names);
	return r;
}
