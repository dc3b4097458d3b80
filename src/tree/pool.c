/* SPDX-License-Identifier: MIT
 * The threads of a tree, and their stack of work.
 */
#define _GNU_SOURCE
#include "pool.h"
#include "copy/move.h"
#include "report.h"
#include "resume.h"
#include "tuning.h"
#include "walk.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define READERS       8                   /* of large files at once, in most trees */
#define STACK_START   256                 /* items */
#define THREAD_MEMORY ((size_t)512 << 10) /* its buffer, its stack and its worker */
#define HELPER_MEMORY ((size_t)1 << 20)   /* the same of one that helps with large files */
#define MAY_HELP      32                  /* threads; helping.c limits those of one file */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* As many as fit into a quarter of the cgroup's memory, of which each takes `size` bytes. opened.c
 * limits them, too. */
static unsigned pool_most_threads(size_t size, unsigned most)
{
	uint64_t n = cpus_memory(CPUS_CGROUP, CPUS_CGROUP_ROOT) / 4 / size;
	return n < most ? (unsigned)n : most;
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
		p->stack[p->used] = item;
	__atomic_store_n(&p->used, p->used + room, __ATOMIC_RELAXED);
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

unsigned pool_unserved(const struct tree *t)
{
	const unsigned idle = pool_idle(t);
	if (idle == 0)
		return 0;
	const size_t used = __atomic_load_n(&t->pool.used, __ATOMIC_RELAXED);
	return used < idle ? idle - (unsigned)used : 0;
}

void pool_wake(struct tree *t)
{
	struct pool *p = &t->pool;
	if (pool_idle(t) == 0) /* one that is about to sleep sees what was pushed */
		return;
	pthread_mutex_lock(&p->lock);
	if (p->idle > 0)
		pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void pool_wake_one(struct tree *t)
{
	struct pool *p = &t->pool;
	if (pool_idle(t) == 0)
		return;
	pthread_mutex_lock(&p->lock);
	if (p->idle > 0)
		pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void pool_push_own(struct worker *w, struct item item)
{
	if (w->own.dir || pool_idle(w->tree) > 0) {
		pool_push(w, item);
		pool_wake_one(w->tree);
	} else {
		w->own = item;
	}
}

/* Waits for work, or until this thread may copy. The caller holds the lock. */
static void pool_sleep(struct worker *w)
{
	struct pool *p = &w->tree->pool;
	if (w->number < p->active) {
		pthread_cond_wait(&p->wake, &p->lock);
		return;
	}
	__atomic_sub_fetch(&p->idle, 1, __ATOMIC_RELAXED);
	p->asleep++;
	/* It may have pushed an item for itself, or taken the signal that was for another thread.
	 */
	if (p->used > 0)
		pthread_cond_signal(&p->wake);
	pthread_cond_wait(&p->needed, &p->lock);
	p->asleep--;
	__atomic_add_fetch(&p->idle, 1, __ATOMIC_RELAXED);
}

/* Takes the item that belongs to this thread, or hands it over if this one may copy no more. */
static bool pool_pop_own(struct worker *w, struct item *item)
{
	const struct pool *p = &w->tree->pool;
	*item = w->own;
	w->own.dir = NULL;
	if (!item->dir)
		return false;
	if (w->number < __atomic_load_n(&p->active, __ATOMIC_RELAXED))
		return true;
	pool_push(w, *item);
	pool_wake_one(w->tree);
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
	if ((p->used == 0 || w->number >= p->active) && record_has_rest(w)) {
		pthread_mutex_unlock(&p->lock);
		record_write_rest(w);
		pthread_mutex_lock(&p->lock);
	}
	__atomic_add_fetch(&p->idle, 1, __ATOMIC_RELAXED);
	while (!p->done && (p->used == 0 || w->number >= p->active)) {
		if (w->number < p->active && (*file = helping_join(w)))
			break;
		if (p->used == 0 && p->idle + p->asleep == p->workers) {
			p->done = true;
			pthread_cond_broadcast(&p->wake);
			pthread_cond_broadcast(&p->needed);
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
	o->progress = NULL;
	o->shard = (struct fcopy_shard){0}; /* of the tree, not of a file */
	if (t->shared)
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
		w->tree->shared->leave(w);
	record_leave(w);
	pthread_cond_destroy(&w->helped.left);
	move_free(&w->copy);
	free(w);
}

/* Clears what a copy does not set: both are large, and a small file takes 20 us. source_adopt()
 * sets all of c->src. */
struct copy *pool_start_copy(struct worker *w)
{
	struct copy *c = &w->copy;
	void *buffer = c->buffer;
	struct kept *kept = c->kept;
	const size_t buffer_size = c->buffer_size;
	memset(&w->file, 0, offsetof(struct fcopy_report, step)); /* each step clears itself */
	memset(w->file.seconds, 0, sizeof(w->file.seconds));
	memset(c, 0, offsetof(struct copy, src));
	memset(&c->dst, 0, offsetof(struct endpoint, state));
	c->options = &w->options;
	c->report = &w->file;
	c->mode = w->options.mode ? w->options.mode : fcopy_modes();
	c->shared = &w->tree->monitor;
	c->storage = w->tree->storage;
	c->read_ahead = w->tree->pool.read_ahead;
	c->keeps_buffer = c->many = true;
	c->buffer = buffer;
	c->buffer_size = buffer_size;
	c->kept = kept;
	return c;
}

static void pool_work(struct worker *w)
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

static void *pool_thread(void *arg)
{
	struct tree *t = arg;
	struct pool *p = &t->pool;
	struct worker *w = pool_join(t);
	pthread_mutex_lock(&p->lock);
	if (w) {
		w->number = ++p->joined;
	} else { /* without memory this thread does not take part */
		__atomic_sub_fetch(&p->workers, 1, __ATOMIC_RELAXED);
		pthread_cond_broadcast(&p->wake);
	}
	pthread_mutex_unlock(&p->lock);
	if (w)
		pool_work(w);
	return NULL;
}

/* Starts the threads that are missing. If one cannot start, fewer threads do the same work. The
 * caller holds the lock. */
static void pool_start_missing(struct tree *t)
{
	struct pool *p = &t->pool;
	while (p->started + 1 < p->active) {
		if (cpus_start_thread(&p->thread[p->started], pool_thread, t) != 0) {
			__atomic_store_n(&p->active, p->started + 1, __ATOMIC_RELAXED);
			tuner_lower_limit(&p->tuner, p->active);
			break;
		}
		p->started++;
		__atomic_add_fetch(&p->workers, 1, __ATOMIC_RELAXED);
	}
	if (t->report->threads_most < p->active)
		t->report->threads_most = p->active;
}

/* Adds up the time with this number of threads. */
static void pool_count_time(struct tree *t)
{
	struct pool *p = &t->pool;
	double now = io_now();
	t->pool_seconds += now - p->since;
	t->thread_seconds += (now - p->since) * p->active;
	p->since = now;
}

/* The tuner has another number of threads. The caller holds the lock. */
static void pool_change(struct tree *t)
{
	struct pool *p = &t->pool;
	pool_count_time(t);
	__atomic_store_n(&p->active, p->tuner.threads, __ATOMIC_RELAXED);
	pool_start_missing(t);
	__atomic_add_fetch(&p->change, 1, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&p->wake);
	pthread_cond_broadcast(&p->needed);
}

/* Is there work for more threads? Each may open several directories. The caller holds the lock. */
static bool pool_has_more(const struct worker *w, int fd)
{
	const struct pool *p = &w->tree->pool;
	return (p->used > 0 || w->left > 1 || w->own.dir) && fd < p->descriptors / 4;
}

void pool_report(struct worker *w, const struct tuner_report *report, int fd)
{
	struct pool *p = &w->tree->pool;
	pthread_mutex_lock(&p->lock);
	if (tuner_note(&p->tuner, report, pool_has_more(w, fd)))
		pool_change(w->tree);
	pthread_mutex_unlock(&p->lock);
}

void pool_begin(struct worker *w, const struct tuner_report *report, int fd)
{
	struct pool *p = &w->tree->pool;
	pthread_mutex_lock(&p->lock);
	if (pool_has_more(w, fd) && tuner_begin(&p->tuner, report))
		pool_change(w->tree);
	pthread_mutex_unlock(&p->lock);
}

static void pool_prepare(struct tree *t)
{
	struct pool *p = &t->pool;
	struct rlimit files;
	*p = (struct pool){.lock = PTHREAD_MUTEX_INITIALIZER,
			   .wake = PTHREAD_COND_INITIALIZER,
			   .needed = PTHREAD_COND_INITIALIZER,
			   .workers = 1,
			   .change = 1,
			   .tunes = t->threads == 0,
			   .read_ahead = cpus_read_ahead(READERS),
			   .helpers = pool_most_threads(HELPER_MEMORY, MAY_HELP),
			   .since = io_now()};
	/* With one more than there are CPUs, 12,000 files take 1.5 times as long on XFS, 1.04 on
	 * ext4 and 0.99 on tmpfs (2 CPUs, median of paired times). */
	p->active = least(p->tunes ? cpus_allowed() : t->threads, t->opened.threads);
	p->active = least(p->active, FCOPY_THREADS_MAX);
	const unsigned most = least(pool_most_threads(THREAD_MEMORY, FCOPY_THREADS_MAX),
				    t->opened.threads);
	/* Threads that wait for a limited rate do not wait for storage. */
	const bool grows = p->tunes && !t->options->copy.limit_rate;
	tuner_start(&p->tuner, p->active, grows ? most : 0);
	bool known = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < INT_MAX;
	p->descriptors = known ? (int)files.rlim_cur : INT_MAX;
}

static void pool_end(struct tree *t)
{
	struct pool *p = &t->pool;
	static const char *const reasons[] = {[TUNER_CPUS] = "the CPUs are the limit",
					      [TUNER_WAITING] = "more threads were faster",
					      [TUNER_NO_GAIN] = "more threads were not faster",
					      [TUNER_LIMIT] = "the limit of threads was reached"};
	pool_count_time(t);
	free(p->stack);
	t->report->threads_average = t->thread_seconds / t->pool_seconds;
	t->report->threads_reason = !p->tunes  ? NULL
				    : p->blind ? "without schedstat, waiting cannot be measured"
					       : reasons[p->tuner.reason];
}

/* The caller is one of the threads. */
void pool_run(struct tree *t, struct directory *root,
	      void (*run)(struct worker *, const struct item *))
{
	struct pool *p = &t->pool;
	struct worker *w = pool_join(t);
	if (!w) {
		tree_stop(t, ENOMEM);
		return;
	}
	pool_prepare(t);
	p->run = run;
	pool_push(w, (struct item){.dir = root});
	/* First, because it takes what has been copied by now for that of earlier operands. */
	struct census *census = census_start(t, root);
	pthread_mutex_lock(&p->lock);
	pool_start_missing(t);
	pthread_mutex_unlock(&p->lock);
	pool_work(w);
	while (p->started > 0)
		pthread_join(p->thread[--p->started], NULL);
	census_stop(census);
	pool_end(t);
}
