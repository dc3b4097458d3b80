/* SPDX-License-Identifier: MIT
 * Idle threads help to copy a large file: see tuning.h.
 */
#include "copy/move.h"
#include "tuning.h"

#define HELPERS 15 /* of one file: FUSE reads ahead 12 times at once, and disks gain no more */

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
	struct helped *file = &w->helped;
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
	helping_close(p, &w->helped);
	while (w->helped.helpers > 0)
		pthread_cond_wait(&w->helped.left, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

void helping_prepare(struct worker *w)
{
	w->helpers = (struct helpers){w, &w->tree->pool.idle, helping_invite, helping_dismiss};
	pthread_cond_init(&w->helped.left, NULL);
}

struct helped *helping_join(struct worker *w)
{
	const struct pool *p = &w->tree->pool;
	struct helped *file = w->number < p->helpers ? p->files : NULL;
	while (file && file->helpers >= HELPERS)
		file = file->next;
	if (file)
		file->helpers++;
	return file;
}

void helping_run(struct worker *w, struct helped *file)
{
	struct pool *p = &w->tree->pool;
	if (move_enlarge(&w->copy, ranges_buffer_size(file->ranges)))
		ranges_help(file->ranges, w->copy.buffer);
	w->time.change = 0; /* of tuning.c: its measurement starts over */
	pthread_mutex_lock(&p->lock);
	helping_close(p, file); /* no piece is left, or there is too little memory */
	if (--file->helpers == 0)
		pthread_cond_signal(&file->left);
	pthread_mutex_unlock(&p->lock);
}
