/* SPDX-License-Identifier: MIT
 * The stack of work, what threads take from it, and what each thread has for its files.
 */
#include "pool.h"
#include "copy/move.h"
#include "report.h"
#include "resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACK_START 256 /* items */
#define HELPERS     15  /* of one file: FUSE reads ahead 12 times at once, and disks gain no more */

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
		p->stack[p->used] = item;
	__atomic_store_n(&p->used, p->used + room, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&p->lock);
	if (room)
		return;
	tree_stop(w->tree, ENOMEM);
	p->run(w, &item);
}

unsigned pool_idle(const struct pool *p)
{
	return __atomic_load_n(&p->idle, __ATOMIC_RELAXED);
}

bool pool_dismissed(const struct worker *w)
{
	return w->number >= __atomic_load_n(&w->tree->pool.threads.active, __ATOMIC_RELAXED);
}

unsigned pool_unserved(const struct pool *p)
{
	const unsigned idle = __atomic_load_n(&p->idle, __ATOMIC_RELAXED);
	if (idle == 0)
		return 0;
	const size_t used = __atomic_load_n(&p->used, __ATOMIC_RELAXED);
	return used < idle ? idle - (unsigned)used : 0;
}

void pool_wake(struct pool *p, bool all)
{
	if (pool_idle(p) == 0) /* one that is about to sleep sees what was pushed */
		return;
	pthread_mutex_lock(&p->lock);
	if (p->idle > 0)
		(all ? pthread_cond_broadcast : pthread_cond_signal)(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void pool_push_own(struct worker *w, struct item item)
{
	if (w->own.dir || pool_idle(&w->tree->pool) > 0) {
		pool_push(w, item);
		pool_wake(&w->tree->pool, false);
	} else {
		w->own = item;
	}
}

/* Idle threads help with large files, so that a large file among small ones does not end as the
 * work of one thread. The thread that opened the file offers the pieces of a range, and copies
 * pieces itself. It commits the file when the last helper has left. */

/* No more threads join it. The caller holds the lock. */
static void helping_close(struct pool *p, struct helped *file)
{
	struct helped **at = &p->files;
	if (!file->open)
		return;
	while (*at != file)
		at = &(*at)->next;
	*at = file->next;
	file->open = false;
}

static void helping_invite(void *user, struct ranges *ranges)
{
	struct worker *w = user;
	struct pool *p = &w->tree->pool;
	struct helped *file = &w->file.helped;
	pthread_mutex_lock(&p->lock);
	file->ranges = ranges;
	file->next = p->files;
	file->open = true;
	p->files = file;
	if (p->idle > 0)
		pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

static void helping_dismiss(void *user, struct ranges *ranges)
{
	struct worker *w = user;
	struct pool *p = &w->tree->pool;
	(void)ranges;
	pthread_mutex_lock(&p->lock);
	helping_close(p, &w->file.helped);
	while (w->file.helped.helpers > 0)
		pthread_cond_wait(&w->file.helped.left, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static void helping_prepare(struct worker *w)
{
	w->file.helpers = (struct helpers){w, &w->tree->pool.idle, helping_invite, helping_dismiss};
	pthread_cond_init(&w->file.helped.left, NULL);
}

/* Is there a file that this thread can help with? Then joins it. The caller holds the lock. Returns
 * NULL if there is none. */
static struct helped *helping_join(struct worker *w)
{
	const struct pool *p = &w->tree->pool;
	struct helped *file = w->number < p->helpers ? p->files : NULL;
	while (file && file->helpers >= HELPERS)
		file = file->next;
	if (file)
		file->helpers++;
	return file;
}

/* Copies pieces of the file that this thread has joined until none is left. */
static void helping_run(struct worker *w, struct helped *file)
{
	struct pool *p = &w->tree->pool;
	if (move_enlarge(&w->file.copy, ranges_buffer_size(file->ranges)))
		ranges_help(file->ranges, w->file.copy.buffer);
	w->time.change = 0; /* of threads.c: its measurement starts over */
	pthread_mutex_lock(&p->lock);
	helping_close(p, file); /* no piece is left, or there is too little memory */
	if (--file->helpers == 0)
		pthread_cond_signal(&file->left);
	pthread_mutex_unlock(&p->lock);
}

/* Waits for work, or until this thread may copy. The caller holds the lock. */
static void pool_sleep(struct worker *w)
{
	struct pool *p = &w->tree->pool;
	if (w->number < p->threads.active) {
		pthread_cond_wait(&p->wake, &p->lock);
		return;
	}
	__atomic_sub_fetch(&p->idle, 1, __ATOMIC_RELAXED);
	p->threads.asleep++;
	/* It may have pushed an item for itself, or taken the signal that was for another thread.
	 */
	if (p->used > 0)
		pthread_cond_signal(&p->wake);
	pthread_cond_wait(&p->threads.needed, &p->lock);
	p->threads.asleep--;
	__atomic_add_fetch(&p->idle, 1, __ATOMIC_RELAXED);
}

/* Takes the item that belongs to this thread, or hands it over if this one may copy no more. */
static bool pool_pop_own(struct worker *w, struct item *item)
{
	*item = w->own;
	w->own.dir = NULL;
	if (!item->dir)
		return false;
	if (!pool_dismissed(w))
		return true;
	pool_push(w, *item);
	pool_wake(&w->tree->pool, false);
	return false;
}

/* Takes the item on top, or joins a large file if there is none; waits while others may push more.
 * False: everything is done. */
static bool pool_pop(struct worker *w, struct item *item, struct helped **file)
{
	struct pool *p = &w->tree->pool;
	*file = NULL;
	if (pool_pop_own(w, item))
		return true;
	pthread_mutex_lock(&p->lock);
	if ((p->used == 0 || w->number >= p->threads.active) && record_has_rest(w)) {
		pthread_mutex_unlock(&p->lock);
		record_write_rest(w);
		pthread_mutex_lock(&p->lock);
	}
	__atomic_add_fetch(&p->idle, 1, __ATOMIC_RELAXED);
	while (!p->done && (p->used == 0 || w->number >= p->threads.active)) {
		if (w->number < p->threads.active && (*file = helping_join(w)))
			break;
		if (p->used == 0 && p->idle + p->threads.asleep == p->threads.workers) {
			p->done = true;
			pthread_cond_broadcast(&p->wake);
			pthread_cond_broadcast(&p->threads.needed);
			break;
		}
		pool_sleep(w);
	}
	__atomic_sub_fetch(&p->idle, 1, __ATOMIC_RELAXED);
	bool more = *file || p->used > 0;
	if (more && !*file) {
		*item = p->stack[p->used - 1];
		__atomic_store_n(&p->used, p->used - 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&p->lock);
	return more;
}

/* The options of each file. */
static void pool_set_options(struct worker *w)
{
	const struct tree *t = w->tree;
	struct fcopy_options *o = &w->options;
	*o = t->options->copy;
	o->mode = o->mode ? o->mode : fcopy_modes();
	o->progress = NULL;
	o->shard = (struct fcopy_shard){0}; /* of the tree, not of a file */
	if (t->share.by)
		o->force = o->strict = true; /* an existing file is of an earlier attempt */
	if (!t->root.ground.single) {
		o->threads = 1;    /* the pool's threads copy several files at once instead */
		o->resume = false; /* of the tree */
	}
	/* A new tree is flushed as a whole, but only what is on the storage can be read back. */
	o->fsync = o->verify || t->root.ground.flush >= FLUSH_FILES;
	o->notify = report_event;
	o->user = w;
}

struct worker *pool_join(struct tree *t)
{
	struct worker *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->tree = t;
	helping_prepare(w);
	pool_set_options(w);
	return w;
}

void pool_leave(struct worker *w)
{
	pthread_mutex_lock(&w->tree->lock);
	report_add(w->tree->report, &w->sum);
	pthread_mutex_unlock(&w->tree->lock);
	if (w->list)
		w->tree->share.by->leave(w);
	record_leave(w);
	pthread_cond_destroy(&w->file.helped.left);
	move_free(&w->file.copy);
	free(w);
}

/* Clears what a copy does not set: both are large, and a small file takes 20 us. source_adopt()
 * sets all of c->src. */
struct copy *pool_start_copy(struct worker *w)
{
	struct copy *c = &w->file.copy;
	memset(&w->file.report, 0,
	       offsetof(struct fcopy_report, step)); /* each step clears itself */
	memset(w->file.report.seconds, 0, sizeof(w->file.report.seconds));
	memset(c, 0, offsetof(struct copy, src));
	memset(&c->dst, 0, offsetof(struct endpoint, state));
	c->options = &w->options;
	c->report = &w->file.report;
	c->mode = w->options.mode;
	c->shared = &w->tree->monitor;
	c->storage = w->tree->known.storage;
	c->read_ahead = w->tree->pool.read_ahead;
	c->many = true;
	return c;
}

void pool_work(struct worker *w)
{
	struct pool *p = &w->tree->pool;
	struct helped *file;
	struct item item;
	while (pool_pop(w, &item, &file))
		if (file)
			helping_run(w, file);
		else
			p->run(w, &item);
	pool_leave(w);
}
