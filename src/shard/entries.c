/* SPDX-License-Identifier: MIT
 * The chunks of a tree are the batches of a walk, which copies their entries as those of any tree.
 * A thread that finds nothing else to do claims the next chunk.
 */
#include "copy/copy.h"
#include "endpoints/error.h"
#include "job.h"
#include "shard_tree.h"
#include "tree/directory.h"
#include "tree/entry.h"
#include "tree/pool.h"
#include "tree/report.h"
#include "tree/root.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS   5 /* at most, for the next chunk of a list that is not complete */
#define WAIT_PART 8 /* at first 1 ms; then this part of what it has waited */
#define ASK_S     0.05

/* A chunk at work: from its claim, or from the moment when the commit looks at it, until none of
 * its lines is left, or the walk has ended. */
struct work {
	struct chunk list;
	struct outline outline;
	struct work *next; /* in shard->working */
	bool failed;       /* atomic */
	size_t left;       /* lines that are not finished; atomic */
};

static void work_free(struct work *k)
{
	outline_free(&k->outline);
	chunk_free(&k->list);
	free(k);
}

/* Ends and frees it. The lock is held, unless no thread works any more. */
static void work_end(struct shard_tree *s, struct work **at)
{
	struct work *k = *at;
	*at = k->next;
	job_claim_ends(&s->job, k->list.number, k->left == 0 && !k->failed);
	work_free(k);
}

static void work_end_all(struct shard_tree *s)
{
	while (s->working)
		work_end(s, &s->working);
}

/* A line is finished. */
static void work_release(struct shard_tree *s, struct work *k)
{
	struct work **at = &s->working;
	if (__atomic_sub_fetch(&k->left, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	pthread_mutex_lock(&s->lock);
	while (*at != k)
		at = &(*at)->next;
	work_end(s, at);
	pthread_mutex_unlock(&s->lock);
}

/* Is no entry started any more? */
static bool entries_end(const struct shard_tree *s)
{
	return tree_stopped(s->root.tree) || __atomic_load_n(&s->failed, __ATOMIC_RELAXED) < 0;
}

static int entries_run_range(struct worker *w, const struct entry *e)
{
	struct copy *c = &w->file.copy;
	const struct line *l = line_of(e);
	struct stat now;
	const off_t size = c->src.st.st_size;
	c->first = l->first;
	c->last = l->last;
	int r = range_fill(c, size, l->entry.again);
	if (r == 0 && fstat(c->src.fd, &now) < 0)
		return report_call(w, e, "fstat", entry_src, errno);
	if (r == 0 &&
	    (c->all.offset < c->last || now.st_size != size || !same_mtime(&now, &c->src.st)))
		return report_refusal(w, e, entry_src, EBUSY, "changed while it was copied");
	if (r == 0 && w->options.fsync)
		r = copy_flush(c, false);
	if (r == 0 && w->options.verify && c->first < c->last)
		r = verify_copy(c);
	if (r < 0)
		report_failure(w, e, &w->file.report.error);
	return r;
}

/* Opens, or makes, the copy of which a range is written. The umask or a default ACL may lack a
 * right of the owner, and another thread or shard may have made it just before it gives that. */
static int entries_open(const struct entry *e)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	const mode_t mode = (line_of(e)->entry.st.st_mode & 0777) | 0600;
	struct stat old;
	const int fd = openat(e->dir->dst, e->as, flags, mode);
	if (fd >= 0 || errno != EACCES)
		return fd;
	const int path = openat(e->dir->dst, e->as, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path >= 0 && fstat(path, &old) == 0 && S_ISREG(old.st_mode))
		(void)!chmod(io_proc_path(path).text, (old.st_mode & 07777) | 0600);
	io_close(path);
	return openat(e->dir->dst, e->as, flags, mode);
}

/* A range of a large file, which has its name from the start; the commit gives it its attributes.
 * The other files are copied as any file. */
static bool entries_take(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	const struct line *l = line_of(e);
	struct stat old;
	if (l->kind != 'r')
		return false;
	w->work.outcome.rest = l->first > 0;
	const int dst = entries_open(e);
	if (dst < 0 || fstat(dst, &old) < 0) {
		report_call(w, e, dst < 0 ? "open" : "fstat", entry_dst, errno);
		if (dst >= 0)
			close(dst);
		close(fd);
		return true;
	}
	if (0600 & ~old.st_mode)
		(void)!fchmod(dst, (old.st_mode & 07777) | 0600);
	struct copy *c = pool_start_copy(w);
	c->helpers = &w->file.helpers;
	c->share = c->skips_clone = true;
	source_adopt(&c->src, fd, entry_src, st);
	source_adopt(&c->dst, dst, entry_dst, &old);
	int r = entries_run_range(w, e);
	report_file(w, st, r == 0);
	c->src.ops->abort(&c->src);
	if (close(dst) < 0 && r == 0)
		report_call(w, e, "close", entry_dst, errno);
	return true;
}

/* A directory is complete when it is entered: what is listed in it has other lines. */
static void entries_copy_one(struct worker *w, const struct entry *e)
{
	struct shard_tree *s = w->tree->share.state;
	struct line *l = line_of(e);
	struct outcome o = {.stage = OUTCOME_NONE};
	if (!entries_end(s))
		o = entry_copy(w, e);
	const bool entered = S_ISDIR(l->entry.st.st_mode) && o.stage == OUTCOME_LATER;
	if (!l->kind) /* if it could not be entered, lines below it stay unfinished */
		return;
	if (!entered && !outcome_is_there(&o))
		__atomic_store_n(&l->of->failed, true, __ATOMIC_RELAXED);
	work_release(s, l->of);
}

/* Flushes what is copied, and marks it. The lock is held. */
static int entries_mark(struct shard_tree *s)
{
	struct failure fail;
	int r = flush_tree(s->root.dst, s->ground.flush == FLUSH_EACH, &fail);
	return r < 0 ? job_fail(&s->job, NULL, fail.call, -r) : job_mark(&s->job);
}

/* If an entry is not what was listed, the job starts over, or is refused. */
static bool entries_are_stopped(const struct shard_tree *s)
{
	return entries_end(s) || __atomic_load_n(&s->root.tree->share.differs, __ATOMIC_RELAXED);
}

static int work_read(struct job *j, struct work *k, unsigned chunk, bool again)
{
	int r = chunk_read(j, chunk, &k->list);
	for (size_t i = 0; r == 0 && i < k->list.count; i++) {
		struct line *l = &k->list.line[i];
		l->of = k;
		l->entry.again = again;
		l->entry.part = l->kind == 'r';
		if (l->kind != 'l' && !outline_add(&k->outline, l)) /* the commit makes links */
			r = job_fail(j, NULL, "malloc", ENOMEM);
	}
	k->left = k->outline.lines;
	return r == 0 && k->left == 0 ? job_refuse_part(j, LIST_DAMAGED) : r;
}

/* Reads a chunk. Returns what is listed in the operand's directory; NULL after a failure, recorded.
 * The lock is held. */
static struct listed *work_begin(struct shard_tree *s, unsigned chunk, bool again)
{
	struct work *k = calloc(1, sizeof(*k));
	const int r = k ? work_read(&s->job, k, chunk, again)
			: job_fail(&s->job, NULL, "malloc", ENOMEM);
	if (k && r == 0) {
		k->next = s->working;
		s->working = k;
		return k->outline.root.entry.below;
	}
	if (k)
		work_free(k);
	__atomic_store_n(&s->failed, r, __ATOMIC_RELAXED);
	return NULL;
}

/* Claims the next chunk. Returns NULL if there is none now. */
static struct listed *entries_claim(struct shard_tree *s)
{
	unsigned chunk = 0;
	bool again = false;
	struct listed *l = NULL;
	pthread_mutex_lock(&s->lock);
	int r = job_must_mark(&s->job) ? entries_mark(s) : 0;
	if (r == 0)
		r = job_claim(&s->job, &chunk, &again);
	if (r == 1)
		l = work_begin(s, chunk, again);
	if (r < 0)
		__atomic_store_n(&s->failed, r, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s->lock);
	return l;
}

/* Has the process that lists been killed? Then this one lists the rest, when the walk has ended. */
static void entries_ask_list(struct shard_tree *s)
{
	int fd;
	pthread_mutex_lock(&s->lock);
	const bool asks = !s->orphaned && !s->job.listed && io_now() - s->asked > ASK_S;
	const int r = asks ? job_claim_list(&s->job, &fd) : 0;
	if (r == 1)
		close(fd);
	if (r < 0)
		__atomic_store_n(&s->failed, r, __ATOMIC_RELAXED);
	if (asks)
		s->asked = io_now();
	__atomic_store_n(&s->orphaned, s->orphaned || (r == 1 && !s->job.listed), __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s->lock);
}

/* Other processes have what is listed so far. May there be more to come? */
static bool entries_wait(struct shard_tree *s, double *since)
{
	if (s->job.listed || entries_are_stopped(s))
		return false;
	if (*since == 0)
		*since = io_now();
	long ms = (long)((io_now() - *since) * 1000 / WAIT_PART) + 1;
	nanosleep(&(struct timespec){.tv_nsec = (ms < WAIT_MS ? ms : WAIT_MS) * 1000000L}, NULL);
	entries_ask_list(s);
	return !__atomic_load_n(&s->orphaned, __ATOMIC_RELAXED);
}

static struct listed *entries_next(struct worker *w)
{
	struct shard_tree *s = w->tree->share.state;
	double since = 0;
	struct listed *l;
	do
		l = entries_are_stopped(s) ? NULL : entries_claim(s);
	while (!l && entries_wait(s, &since));
	return l;
}

/* A walk that copies: of a share, unless it ends the directories. */
static int entries_walk(struct shard_tree *s, const struct batches *chunks)
{
	struct ground ground = s->ground;
	ground.share = true;
	s->failed = 0;
	s->orphaned = false;
	s->asked = 0;
	return shard_walk(s, &ground, chunks, NULL);
}

int entries_copy(struct shard_tree *s)
{
	static const struct batches chunks = {entries_next, entries_copy_one, entries_take};
	struct tree *t = s->root.tree;
	const int r = entries_walk(s, &chunks);
	/* The walk has not met a line, and nothing was reported: the way to it is another one. */
	if (r == 0 && s->working && !entries_are_stopped(s))
		t->share.differs = true;
	work_end_all(s);
	if (s->failed == 0 && s->job.claims > 0 && !t->share.differs)
		s->failed = entries_mark(s);
	return s->failed < 0 ? s->failed : r;
}

static struct listed *entries_next_check(struct worker *w)
{
	struct shard_tree *s = w->tree->share.state;
	struct listed *l = NULL;
	pthread_mutex_lock(&s->lock);
	if (!entries_are_stopped(s) && s->checked < s->job.chunks)
		l = work_begin(s, s->checked++, false);
	pthread_mutex_unlock(&s->lock);
	return l;
}

/* Has each line a copy of its type and size, which no other line has? Hard links are not among
 * these lines. */
static void entries_check_line(struct worker *w, const struct entry *e)
{
	struct shard_tree *s = w->tree->share.state;
	const struct line *l = line_of(e);
	struct stat st;
	int new = 1;
	const bool there = fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT)
		report_call(w, e, "stat", entry_dst, errno);
	else if (there && l->first == 0 && (new = inodes_add(&s->copies, &st)) <= 0)
		report_refusal(w, e, entry_dst, new < 0 ? -new : EEXIST,
			       "is the copy of another entry, too");
	else if (!there || (st.st_mode ^ l->entry.st.st_mode) & S_IFMT ||
		 (S_ISREG(st.st_mode) && st.st_size != l->entry.st.st_size))
		__atomic_store_n(&w->tree->root.doubt, DOUBT_COMMIT, __ATOMIC_RELAXED);
}

static void entries_check_one(struct worker *w, const struct entry *e)
{
	const struct line *l = line_of(e);
	if (l->kind)
		entries_check_line(w, e);
	if (S_ISDIR(l->entry.st.st_mode))
		entry_copy(w, e);
	if (l->kind)
		work_release(w->tree->share.state, l->of);
}

int entries_check(struct shard_tree *s)
{
	static const struct batches chunks = {entries_next_check, entries_check_one, NULL};
	struct tree *t = s->root.tree;
	t->root.doubt = DOUBT_NONE;
	s->checked = 0;
	s->copies = (struct inodes)INODES_EMPTY;
	const int r = entries_walk(s, &chunks);
	if (s->working) /* a line was not met */
		t->root.doubt = DOUBT_COMMIT;
	work_end_all(s);
	inodes_free(&s->copies);
	if (s->failed < 0 || r < 0)
		return s->failed < 0 ? s->failed : r;
	return t->root.doubt != DOUBT_NONE && !t->share.differs
		   ? job_refuse_part(&s->job, "its .fcopy-part was changed by something else")
		   : 0;
}

/* The walk of what is listed. */

void shard_top_free(struct directory *d)
{
	io_close(d->src);
	directory_unref(d);
}

struct directory *shard_top(struct shard_tree *s, bool lists)
{
	const struct building *r = &s->root;
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	struct directory *d = directory_new(NULL, "", -1, -1, &r->from->place.st);
	if (!d) {
		job_fail(&s->job, NULL, "malloc", ENOMEM);
		return NULL;
	}
	d->src_path = r->from->path;
	d->dst_path = r->to->path;
	d->state = lists ? DIRECTORY_OLD : DIRECTORY_RESUMED;
	d->src = openat(r->from->fd, ".", flags);
	if (d->src >= 0 && (lists || (d->dst = openat(r->dst, ".", flags)) >= 0))
		return d;
	job_fail(&s->job, NULL, "open", errno);
	shard_top_free(d);
	return NULL;
}

int shard_walk(struct shard_tree *s, const struct ground *ground, const struct batches *batches,
	       struct line *root)
{
	struct tree *t = s->root.tree;
	struct stat st = {0};
	struct directory *d = shard_top(s, ground->lists);
	const uint64_t failures = t->root.failures;
	if (!d)
		return -s->error.err;
	(void)!fstat(s->root.dst, &st);
	t->root.inodes.dst = inode_of(&st);
	t->root.ground = *ground;
	t->share.state = s;
	t->share.batches = batches;
	d->list = root ? &root->entry : NULL;
	d->rest = root ? root->entry.below : NULL;
	walk_tree(t, d);
	t->share.batches = NULL;
	shard_top_free(d);
	if (tree_stopped(t))
		return t->stop ? t->stop : -EINTR;
	return t->root.failures > failures ? -EIO : 0;
}
