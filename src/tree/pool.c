/* SPDX-License-Identifier: MIT
 * The threads of a tree, and their stack of work.
 */
#define _GNU_SOURCE
#include "resume.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define STACK_START 256 /* items */

/* One more than there are CPUs: creating a file waits for its directory's lock while another thread
 * holds it (12,000 files, 2 CPUs, minima: ext4 0.33 s instead of 0.45, tmpfs 0.116 instead of
 * 0.125). Not on btrfs, where threads wait for the locks of its trees: 0.52 s instead of 0.45.
 */
static unsigned pool_default_threads(int dst)
{
	struct statfs fs;
	unsigned n = cpus_allowed();
	if (fstatfs(dst, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC)
		return n < TREE_THREADS_MAX ? n : TREE_THREADS_MAX;
	return n < TREE_THREADS_MAX ? n + 1 : TREE_THREADS_MAX;
}

static bool pool_grow(struct pool *p)
{
	size_t size = p->size ? 2 * p->size : STACK_START;
	struct item *stack = realloc(p->stack, size * sizeof(*stack));
	if (!stack)
		return false;
	p->stack = stack;
	p->size = size;
	return true;
}

void pool_push(struct worker *w, struct item item)
{
	struct pool *p = &w->tree->pool;
	pthread_mutex_lock(&p->lock);
	bool room = p->used < p->size || pool_grow(p);
	if (room)
		p->stack[p->used++] = item;
	pthread_mutex_unlock(&p->lock);
	if (room)
		return;
	tree_stop(w->tree, ENOMEM);
	p->run(w, &item);
}

unsigned pool_idle(const struct tree *t)
{
	return __atomic_load_n(&t->pool.idle, __ATOMIC_RELAXED);
}

void pool_wake(struct tree *t)
{
	struct pool *p = &t->pool;
	pthread_mutex_lock(&p->lock);
	if (p->idle > 0)
		pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

/* Takes the item on top; waits while others may push more. False: everything is done. */
static bool pool_pop(struct pool *p, struct item *item)
{
	pthread_mutex_lock(&p->lock);
	__atomic_add_fetch(&p->idle, 1, __ATOMIC_RELAXED);
	while (p->used == 0 && !p->done) {
		if (p->idle == p->workers) {
			p->done = true;
			pthread_cond_broadcast(&p->wake);
			break;
		}
		pthread_cond_wait(&p->wake, &p->lock);
	}
	__atomic_sub_fetch(&p->idle, 1, __ATOMIC_RELAXED);
	bool more = p->used > 0;
	if (more)
		*item = p->stack[--p->used];
	pthread_mutex_unlock(&p->lock);
	return more;
}

/* The options of each file. */
static void pool_set_options(struct worker *w)
{
	const struct tree *t = w->tree;
	struct fcopy_options *o = &w->options;
	*o = t->options->copy;
	o->progress = NULL;
	o->shard = (struct fcopy_shard){0}; /* of the tree, not of a file */
	if (t->shard)
		o->force = o->strict = true; /* an existing file is of an earlier attempt */
	if (!t->single)
		o->threads = 1; /* the pool's threads copy several files at once instead */
	/* A new tree is flushed as a whole, but only what is on the disk can be read back. */
	o->fsync = o->verify || t->flush_each || (o->fsync && t->atomic && !t->shard);
	o->notify = report_event;
	o->user = w;
}

struct worker *pool_join(struct tree *t)
{
	struct worker *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->tree = t;
	pool_set_options(w);
	return w;
}

void pool_leave(struct worker *w)
{
	pthread_mutex_lock(&w->tree->lock);
	report_add(w->tree->report, &w->sum);
	pthread_mutex_unlock(&w->tree->lock);
	record_leave(w);
	cached_free(&w->copy);
	free(w);
}

struct copy *pool_start_copy(struct worker *w)
{
	struct copy *c = &w->copy;
	memset(&w->file, 0, offsetof(struct fcopy_report, dst));
	*c = (struct copy){.options = &w->options,
			   .report = &w->file,
			   .mode = w->options.mode ? w->options.mode : fcopy_modes(),
			   .shared = &w->tree->monitor,
			   .storage = &w->tree->storage,
			   .keeps_buffer = true,
			   .buffer = c->buffer,
			   .buffer_size = c->buffer_size};
	return c;
}

static void pool_work(struct worker *w)
{
	struct pool *p = &w->tree->pool;
	struct item item;
	while (pool_pop(p, &item))
		p->run(w, &item);
	pool_leave(w);
}

static void *pool_thread(void *arg)
{
	struct tree *t = arg;
	struct worker *w = pool_join(t);
	if (w) {
		pool_work(w);
		return NULL;
	}
	/* Without memory this thread does not take part. */
	pthread_mutex_lock(&t->pool.lock);
	t->pool.workers--;
	pthread_cond_broadcast(&t->pool.wake);
	pthread_mutex_unlock(&t->pool.lock);
	return NULL;
}

/* The caller is one of the threads. If a thread cannot start, fewer threads do the same work. */
static void pool_start(struct tree *t, struct worker *w)
{
	pthread_t thread[FCOPY_THREADS_MAX];
	struct pool *p = &t->pool;
	unsigned started = 0;
	p->workers = 1;
	while (started + 1 < t->threads) {
		pthread_mutex_lock(&p->lock);
		p->workers++;
		pthread_mutex_unlock(&p->lock);
		if (cpus_start_thread(&thread[started], pool_thread, t) != 0) {
			pthread_mutex_lock(&p->lock);
			p->workers--;
			pthread_mutex_unlock(&p->lock);
			break;
		}
		started++;
	}
	pool_work(w);
	while (started > 0)
		pthread_join(thread[--started], NULL);
}

void pool_run(struct tree *t, struct directory *root,
	      void (*run)(struct worker *, const struct item *))
{
	struct worker *w = pool_join(t);
	if (!w) {
		tree_stop(t, ENOMEM);
		return;
	}
	if (t->threads == 0)
		t->threads = pool_default_threads(root->dst);
	t->pool = (struct pool){
	    .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .run = run};
	pool_push(w, (struct item){.dir = root});
	pool_start(t, w);
	free(t->pool.stack);
}
