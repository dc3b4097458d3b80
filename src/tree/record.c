/* SPDX-License-Identifier: MIT
 * Notes in the journal of a part which files of a tree are complete, and what their sources were.
 *
 * Each worker collects lines in a buffer. With --resume the part has its journal from the start,
 * and a buffer is appended as soon as it has a few lines: they are what a kill costs.
 * Otherwise a full buffer creates the journal, and only a tree that is kept needs the rest: a small
 * tree costs no system call.
 */
#include "report.h"
#include "resume.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE ((size_t)64 << 10)
#define EAGER_SIZE  ((size_t)512) /* of each thread, of which a slow file system gets 64 */

/* The first line creates the journal. A failure never fails the copy. */
static void record_append(struct record *r, const char *lines, size_t size)
{
	if (r->part->log < 0 && !r->part->lost &&
	    part_describe(r->part, r->name, r->src, r->options, r->data, r->mode) < 0)
		r->part->lost = true;
	part_append(r->part, lines, size);
}

static void record_flush(struct worker *w)
{
	pthread_mutex_lock(&w->tree->lock);
	record_append(w->tree->record, w->record, w->recorded);
	pthread_mutex_unlock(&w->tree->lock);
	w->recorded = 0;
}

void record_add(struct worker *w, const struct entry *e, const struct stat *st)
{
	char path[PATH_MAX];
	const bool eager = w->tree->record->part->published;
	if (__atomic_load_n(&w->tree->record->part->lost, __ATOMIC_RELAXED))
		return;
	entry_path_below(e, path, sizeof(path));
	if (!w->record && !(w->record = malloc(BUFFER_SIZE)))
		return;
	if (w->recorded + JOURNAL_LINE > BUFFER_SIZE)
		record_flush(w);
	w->recorded += journal_format(&(struct journal_fact){.kind = JOURNAL_ENTRY,
							     .source = journal_source_of(st),
							     .when = w->opened,
							     .text = path,
							     .size = strlen(path)},
				      w->record + w->recorded);
	if (eager && w->recorded >= EAGER_SIZE)
		record_flush(w);
}

void record_leave(struct worker *w)
{
	struct record *r = w->tree->record;
	if (!w->record)
		return;
	pthread_mutex_lock(&w->tree->lock);
	r->buffer[r->buffers++] = (struct record_buffer){w->record, w->recorded};
	pthread_mutex_unlock(&w->tree->lock);
}

void record_keep(struct record *r)
{
	for (unsigned i = 0; i < r->buffers; i++)
		record_append(r, r->buffer[i].data, r->buffer[i].size);
	if (r->part->log < 0)
		record_append(r, "", 0);
}

void record_end(struct record *r)
{
	for (unsigned i = 0; i < r->buffers; i++)
		free(r->buffer[i].data);
}
