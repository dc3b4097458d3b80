/* SPDX-License-Identifier: MIT
 * The paths of entries; what a caller gets for each entry (report_entries), and for each SRC.
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

void report_notify(const struct tree *t, const struct fcopy_event *event)
{
	const struct fcopy_options *o = &t->options->copy;
	if (o->notify)
		o->notify(o->user, event);
}

static bool report_is_wanted(const struct tree *t)
{
	return t->options->report_entries && t->options->copy.notify;
}

/* The path of an entry, for messages, filters and callers. */

/* Prepends `part` to the path that begins at *at. Truncates a long path at its start. */
static void path_prepend(char *path, size_t *at, const char *part)
{
	const size_t length = strlen(part), n = length < *at ? length : *at;
	*at -= n;
	memcpy(path + *at, part + length - n, n);
}

/* The name of this directory in a path that starts with `top`, the operand's, or below it (NULL).
 */
static const char *path_part(const struct directory *d, const char *top)
{
	return d->parent ? d->name : top;
}

static void path_make(const struct entry *e, const char *name, const char *top, char *path,
		      size_t size)
{
	size_t at = size - 1;
	path[at] = '\0';
	path_prepend(path, &at, name);
	for (const struct directory *d = e->dir; d && (d->parent || top); d = d->parent) {
		const char *part = path_part(d, top);
		const size_t length = strlen(part);
		if (path[at] && length > 0 && part[length - 1] != '/')
			path_prepend(path, &at, "/");
		path_prepend(path, &at, part);
	}
	memmove(path, path + at, size - at);
}

/* The same, of any length. The caller frees it. NULL: no memory. */
static char *path_new(const struct entry *e, const char *name, const char *top)
{
	size_t size = strlen(name) + 1;
	for (const struct directory *d = e->dir; d && (d->parent || top); d = d->parent)
		size += strlen(path_part(d, top)) + 1;
	char *path = malloc(size);
	if (path)
		path_make(e, name, top, path, size);
	return path;
}

void entry_path(const struct entry *e, bool src, char *path, size_t size)
{
	const struct directory *top = entry_top(e);
	path_make(e, src ? e->name : e->as, src ? top->src_path : top->dst_path, path, size);
}

bool entry_path_below(const struct entry *e, char *path, size_t size)
{
	path_make(e, e->name, NULL, path, size);
	return strlen(path) < size - 1;
}

/* The paths of an entry, made before the lock is taken. */
struct entry_paths {
	char *path, *dst;
};

static struct entry_paths report_make_paths(const struct tree *t, const struct entry *e)
{
	return (struct entry_paths){t->root.ground.single ? NULL : path_new(e, e->name, NULL),
				    path_new(e, e->as, entry_top(e)->dst_path)};
}

/* The lock is held, unless the caller does not need it. Frees the paths. */
static void report_send(struct tree *t, struct entry_paths p, const struct outcome *o,
			const struct fcopy_error *error)
{
	const struct fcopy_entry entry = {.action = o->action,
					  .operand = t->root.source,
					  .path = p.path && p.path[0] ? p.path : NULL,
					  .dst = p.dst,
					  .type = o->type,
					  .bytes = o->bytes,
					  .engine = o->engine,
					  .error = error};
	report_notify(
	    t, &(struct fcopy_event){.kind = FCOPY_EVENT_ENTRY, .text = p.dst, .entry = &entry});
	free(p.path);
	free(p.dst);
}

/* Of entries of SRC, as census.c counts them. */
static void report_add_progress(const struct tree *t)
{
	struct fcopy_progress *progress = t->options->copy.progress;
	if (progress)
		__atomic_add_fetch(&progress->entries, 1, __ATOMIC_RELAXED);
}

static void report_count(struct worker *w, const struct outcome *o)
{
	outcome_count(o, w->sum.count);
	if (o->action != FCOPY_ACTION_DELETED && !o->rest)
		report_add_progress(w->tree);
}

void report_outcome(struct worker *w, const struct entry *e, const struct outcome *o)
{
	struct tree *t = w->tree;
	report_count(w, o);
	if (!report_is_wanted(t) || o->rest)
		return;
	struct entry_paths p = report_make_paths(t, e);
	if (!t->options->report_at_once)
		pthread_mutex_lock(&t->lock);
	report_send(t, p, o, NULL);
	if (!t->options->report_at_once)
		pthread_mutex_unlock(&t->lock);
}

void report_failed_outcome(struct worker *w, const struct entry *e, const struct outcome *o,
			   const struct fcopy_error *error)
{
	report_count(w, o);
	if (report_is_wanted(w->tree))
		report_send(w->tree, report_make_paths(w->tree, e), o, error);
}

void report_operand_outcome(struct tree *t, const struct outcome *o, const char *dst,
			    const struct fcopy_error *error)
{
	const struct fcopy_entry entry = {.action = o->action,
					  .operand = t->root.source,
					  .dst = dst,
					  .type = o->type,
					  .bytes = o->bytes,
					  .engine = o->engine,
					  .error = error};
	outcome_count(o, t->report->count);
	report_add_progress(t);
	if (report_is_wanted(t))
		report_notify(t, &(struct fcopy_event){
				     .kind = FCOPY_EVENT_ENTRY, .text = dst, .entry = &entry});
}

void report_directory(struct worker *w, struct directory *d, const struct outcome *o)
{
	if (__atomic_load_n(&d->failed, __ATOMIC_RELAXED))
		return;
	if (o->action != FCOPY_ACTION_UNCHANGED)
		report_outcome(w, &ENTRY(d, ""), o);
	else
		report_add_progress(w->tree);
}

static enum fcopy_state report_operand_state(const struct tree *t, const char *part)
{
	if (t->options->dry_run)
		return FCOPY_STATE_UNCHANGED;
	if (t->root.committed || t->root.landed)
		return t->root.failures > 0 && !t->root.landed ? FCOPY_STATE_INCOMPLETE
							       : FCOPY_STATE_COMPLETE;
	if (ground_merges(&t->root.ground) || t->root.in_place)
		return FCOPY_STATE_INCOMPLETE;
	return part_is_name(part) ? FCOPY_STATE_PART : FCOPY_STATE_UNCHANGED;
}

void report_operand_begin(struct tree *t, const char *src, struct fcopy_tree_report *before)
{
	struct fcopy_tree_report *r = t->report;
	*before = *r;
	r->dst[0] = r->part[0] = '\0';
	t->root = (struct root){.source = src};
}

void report_operand_end(struct tree *t, size_t index, const struct fcopy_tree_report *before)
{
	struct fcopy_tree_report *r = t->report;
	struct fcopy_operand o = {.index = index,
				  .src = t->root.source,
				  .dst = r->dst[0] ? r->dst : NULL,
				  .part = r->part[0] ? r->part : NULL,
				  .state = report_operand_state(t, r->part),
				  .committed = t->root.committed && !t->options->dry_run,
				  .merged = ground_merges(&t->root.ground) && !t->options->dry_run,
				  .existed = t->root.existed,
				  .part_is_tree = t->operands->src[index].kind ==
						  OPERAND_DIRECTORY};
	for (int i = 0; i < FCOPY_COUNTS; i++)
		o.count[i] = r->count[i] - before->count[i];
	if (o.state == FCOPY_STATE_COMPLETE && o.count[FCOPY_COUNT_SKIPPED] > 0)
		o.state = FCOPY_STATE_SKIPPED;
	if (t->options->copy.notify)
		report_notify(t, &(struct fcopy_event){.kind = FCOPY_EVENT_OPERAND, .operand = &o});
	if (!r->part[0])
		strcpy(r->part, before->part);
	t->root.source = NULL;
}
