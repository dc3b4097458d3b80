/* SPDX-License-Identifier: MIT
 * Divides what the commit of a tree does among the threads of the pool.
 */
#define _GNU_SOURCE
#include "finish.h"
#include "tree/opened.h"
#include "tree/pool.h"
#include "tree/report.h"

#include <errno.h>

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

int finish_run(struct finish *f)
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
