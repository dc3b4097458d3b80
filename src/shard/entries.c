/* SPDX-License-Identifier: MIT
 * Copies the chunks of a tree, with the pool of threads.
 *
 * The item at the bottom of the pool's stack claims a chunk, and pushes its directories on top of
 * itself. So a thread claims the next chunk as soon as it finds nothing else to do.
 */
#define _GNU_SOURCE
#include "copy/settle.h"
#include "copy/verify.h"
#include "endpoints/error.h"
#include "range.h"
#include "tree.h"
#include "tree/directory.h"
#include "tree/entry.h"
#include "tree/flush.h"
#include "tree/opened.h"
#include "tree/pool.h"
#include "tree/report.h"
#include "tree/tuning.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS   5  /* at most, for the next chunk of a list that is not complete */
#define WAIT_PART 8  /* at first 1 ms; then this part of what it has waited */
#define PATIENCE  60 /* seconds: where there are no locks, for the process that lists */

/* What is done of a chunk. */
struct work {
	struct chunk list;
	struct shard_tree *shard;
	bool again;       /* an earlier attempt may have begun it */
	bool failed;      /* atomic */
	unsigned pending; /* directories that are not finished; atomic */
	uint64_t sum;     /* what the restated entries add to that of the list; atomic */
};

/* Is no entry started any more? */
static bool entries_end(const struct shard_tree *s)
{
	return tree_stopped(s->root.tree) || __atomic_load_n(&s->failed, __ATOMIC_RELAXED) < 0;
}

static void work_release(struct work *k)
{
	if (__atomic_sub_fetch(&k->pending, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	struct shard_tree *s = k->shard;
	const bool complete = !k->failed && !entries_end(s) &&
			      (k->sum == 0 || job_restate(&s->job, k->list.number, k->sum) == 0);
	pthread_mutex_lock(&s->lock);
	job_claim_ends(&s->job, k->list.number, complete);
	pthread_mutex_unlock(&s->lock);
	chunk_free(&k->list);
	free(k);
}

static void entries_release(struct directory *d)
{
	struct work *k = d->list;
	if (__atomic_sub_fetch(&d->pending, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	path_free(d);
	work_release(k);
}

/* Its mode and owner must be what was listed: they may protect what is below. */
static bool entries_make_directory(struct worker *w, const struct entry *e, const struct stat *then)
{
	struct stat now;
	const int flags = e->follow ? 0 : AT_SYMLINK_NOFOLLOW;
	bool same = then->st_ino == 0; /* a mount of another user */
	if (!same && fstatat(e->dir->src, e->name, &now, flags) == 0) {
		source_hide_mode(&now, &w->options);
		same = now.st_ino == then->st_ino && now.st_mode == then->st_mode &&
		       now.st_uid == then->st_uid && now.st_gid == then->st_gid;
	} else if (!same && errno != ENOENT) {
		report_call(w, e, "stat", entry_src, errno);
		return false;
	}
	if (!same) {
		__atomic_store_n(&w->tree->differs, true, __ATOMIC_RELAXED);
		return false;
	}
	int r = path_make_directory(w->tree, e->dir->dst, e->as);
	if (r < 0)
		report_call(w, e, "mkdir", entry_dst, -r);
	return r == 0;
}

static int entries_run_range(struct worker *w, const struct entry *e, const struct listed *l,
			     bool again)
{
	struct copy *c = &w->copy;
	struct stat now;
	const off_t size = c->src.st.st_size;
	c->first = l->first;
	c->last = l->last;
	int r = range_fill(c, size, again);
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
		report_failure(w, e, &w->file.error);
	return r;
}

static bool entries_same_file(const struct stat *a, const struct stat *b)
{
	return S_ISREG(a->st_mode) && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       same_mtime(a, b) && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Opens both files of a range. Returns whether both are open. */
static bool entries_open_range(struct worker *w, const struct entry *e, const struct listed *l,
			       int fd[2], struct stat st[2])
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
			  (e->follow ? 0 : O_NOFOLLOW);
	fd[0] = openat(e->dir->src, e->name, flags);
	if ((fd[0] < 0 && (errno == ENOENT || errno == ELOOP)) ||
	    (fd[0] >= 0 && fstat(fd[0], &st[0]) == 0 && !entries_same_file(&st[0], &l->st))) {
		__atomic_store_n(&w->tree->differs, true, __ATOMIC_RELAXED);
		w->outcome->stage = OUTCOME_NONE;
		return false;
	}
	if (fd[0] < 0) {
		report_call(w, e, "open", entry_src, errno);
		return false;
	}
	fd[1] = openat(e->dir->dst, e->as, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		       (l->st.st_mode & 0777) | 0600);
	if (fd[1] >= 0 && fstat(fd[1], &st[1]) == 0)
		return true;
	report_call(w, e, fd[1] < 0 ? "open" : "fstat", entry_dst, errno);
	return false;
}

/* A range of a large file. It has its name from the start; the commit gives it its attributes. */
static void entries_copy_range(struct worker *w, const struct entry *e, const struct listed *l,
			       bool again)
{
	int fd[2] = {-1, -1};
	struct stat st[2];
	if (!entries_open_range(w, e, l, fd, st)) {
		for (int i = 0; i < 2; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		return;
	}
	/* The umask or a default ACL may lack a right of the owner. */
	if (0600 & ~st[1].st_mode)
		(void)!fchmod(fd[1], (st[1].st_mode & 07777) | 0600);
	struct copy *c = pool_start_copy(w);
	c->helpers = &w->helpers;
	c->share = c->no_clone = true;
	source_adopt(&c->src, fd[0], entry_src, &st[0]);
	source_adopt(&c->dst, fd[1], entry_dst, &st[1]);
	int r = entries_run_range(w, e, l, again);
	report_file(w, &st[0], r == 0);
	c->src.ops->abort(&c->src);
	if (close(fd[1]) < 0 && r == 0)
		report_call(w, e, "close", entry_dst, errno);
}

/* Makes the outcome of a range, as entry_copy() does of an entry. Returns whether it is complete.
 */
static bool entries_run_outcome(struct worker *w, const struct entry *e, const struct listed *l,
				bool again)
{
	struct outcome o = {.type = S_IFREG, .rest = l->first > 0};
	w->entry = e;
	w->outcome = &o;
	entries_copy_range(w, e, l, again);
	w->entry = NULL;
	w->outcome = NULL;
	if (o.stage == OUTCOME_FINAL)
		report_outcome(w, e, &o);
	return outcome_is_there(&o);
}

/* An entry was copied with another ctime than it is listed with. */
static void entries_restate(struct worker *w, struct work *k, const struct listed *l,
			    struct stat *now)
{
	char path[LIST_PATH];
	list_path(l, path);
	source_hide_mode(now, &w->options);
	__atomic_add_fetch(
	    &k->sum, list_hash_entry(path, 'e', 0, now) - list_hash_entry(path, 'e', 0, &l->st),
	    __ATOMIC_RELAXED);
}

static void entries_copy_one(struct worker *w, struct directory *d, const struct listed *l)
{
	struct work *k = d->list;
	struct stat now = {0};
	const struct entry e = {.dir = d,
				.name = l->name,
				.as = l->name,
				.type = IFTODT(l->st.st_mode),
				.follow = w->tree->options->follow == FCOPY_FOLLOW_ALWAYS,
				.listed = &l->st,
				.restated = k->again ? &now : NULL};
	struct outcome o;
	bool done;
	tuning_begin_entry(w);
	switch (l->kind) {
	case 'd': done = entries_make_directory(w, &e, &l->st); break;
	case 'r': done = entries_run_outcome(w, &e, l, k->again); break;
	default:
		o = entry_copy(w, &e);
		done = outcome_is_there(&o);
		if (now.st_ino)
			entries_restate(w, k, l, &now);
		break;
	}
	tuning_end_entry(w, d->src);
	if (!done)
		__atomic_store_n(&k->failed, true, __ATOMIC_RELAXED);
}

/* The lines of one directory. If another thread is idle, it gets the second half of what is left.
 */
static void entries_run(struct worker *w, const struct item *item)
{
	struct directory *d = item->dir;
	struct work *k = d->list;
	const struct listed *l = &k->list.entry[item->first];
	int r = d->src < 0 ? path_open(k->shard, w, d, l->dir, true) : 0;
	if (r < 0)
		__atomic_store_n(&k->failed, true, __ATOMIC_RELAXED);
	for (unsigned left = item->count; r == 0 && left > 0 && !entries_end(k->shard);
	     left--, l++) {
		const unsigned half = left / 2;
		if (half > 0 && pool_idle(w->tree) > 0) {
			__atomic_add_fetch(&d->pending, 1, __ATOMIC_RELAXED);
			pool_push(
			    w, (struct item){.dir = d,
					     .first = (unsigned)(l - k->list.entry) + left - half,
					     .count = half});
			pool_wake_one(w->tree);
			left -= half;
		}
		entries_copy_one(w, d, l);
	}
	tuning_end_item(w);
	entries_release(d);
}

/* Pushes the directories of a chunk. */
static void entries_push(struct worker *w, struct work *k)
{
	static const struct stat none;
	const struct listed *l = k->list.entry;
	k->pending = 1;
	for (size_t at = 0, end; at < k->list.count; at = end) {
		for (end = at + 1; end < k->list.count && l[end].dir == l[at].dir;)
			end++;
		struct directory *d = path_directory(k->shard, l[at].dir, &none);
		if (!d) {
			tree_stop(w->tree, ENOMEM);
			break;
		}
		d->list = k;
		k->pending++;
		pool_push(w, (struct item){
				 .dir = d, .first = (unsigned)at, .count = (unsigned)(end - at)});
	}
	pool_wake(w->tree);
	work_release(k);
}

/* Flushes what is copied, and marks it. The lock is held. */
static int entries_mark(struct shard_tree *s)
{
	const char *call;
	job_before_flush(&s->job);
	int r = flush_tree(s->root.dst, s->root.tree->root.ground.flush == FLUSH_EACH, &call);
	return r < 0 ? job_fail(&s->job, NULL, call, -r) : job_mark(&s->job);
}

/* If an entry is not what was listed, the job starts over, or is refused. */
static bool entries_are_stopped(const struct shard_tree *s)
{
	return entries_end(s) || __atomic_load_n(&s->root.tree->differs, __ATOMIC_RELAXED);
}

/* Claims the next chunk. Returns NULL if there is none now. */
static struct work *entries_claim(struct shard_tree *s)
{
	unsigned chunk = 0;
	bool again = false;
	struct work *k = NULL;
	pthread_mutex_lock(&s->lock);
	int r = job_must_mark(&s->job) ? entries_mark(s) : 0;
	if (r == 0)
		r = job_claim(&s->job, &chunk, &again);
	if (r == 1)
		k = calloc(1, sizeof(*k));
	if (r == 1 && !k)
		r = job_fail(&s->job, NULL, "malloc", ENOMEM);
	if (k) {
		k->shard = s;
		k->again = again;
		r = chunk_read(&s->job, chunk, &k->list);
	}
	if (r < 0) {
		free(k);
		k = NULL;
		__atomic_store_n(&s->failed, r, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&s->lock);
	return k;
}

/* Other processes have what is listed so far. Is there more to come from a process that lives? */
static bool entries_wait(struct shard_tree *s, double *since)
{
	int fd, r = 0;
	if (s->job.listed || entries_are_stopped(s))
		return false;
	if (*since == 0)
		*since = io_now();
	long ms = (long)((io_now() - *since) * 1000 / WAIT_PART) + 1;
	nanosleep(&(struct timespec){.tv_nsec = (ms < WAIT_MS ? ms : WAIT_MS) * 1000000L}, NULL);
	if (s->job.locks && (r = job_claim_list(&s->job, &fd)) == 1) {
		close(fd); /* it has ended; or it was killed, and this process lists the rest */
		private_refresh(s->job.part.fd);
		return false;
	}
	return r >= 0 && (s->job.locks || io_now() - *since < PATIENCE);
}

static void entries_feed(struct worker *w, const struct item *item)
{
	struct shard_tree *s = item->dir->list;
	double since = 0;
	struct work *k;
	do
		k = entries_are_stopped(s) ? NULL : entries_claim(s);
	while (!k && entries_wait(s, &since));
	if (!k)
		return;
	pool_push(w, *item);
	entries_push(w, k);
}

static void entries_item(struct worker *w, const struct item *item)
{
	if (item->count == 0)
		entries_feed(w, item);
	else
		entries_run(w, item);
}

int entries_copy(struct shard_tree *s)
{
	struct tree *t = s->root.tree;
	struct stat st = {0};
	const uint64_t failures = t->root.failures;
	struct directory *feed = path_top(s);
	if (!feed)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	feed->list = s;
	(void)!fstat(s->root.dst, &st);
	t->root.dst_dev = st.st_dev;
	t->root.dst_ino = st.st_ino;
	t->root.ground = s->ground;
	s->failed = 0;
	opened_start(t, feed);
	pool_run(t, feed, entries_item);
	path_free(feed);
	int r = s->error.err ? -s->error.err : s->failed;
	if (r == 0 && s->job.claims > 0 && !t->differs)
		r = entries_mark(s);
	if (r == 0 && tree_stopped(t))
		return t->stop ? t->stop : -EINTR;
	return r < 0 ? r : t->root.failures > failures ? -EIO : 0;
}
