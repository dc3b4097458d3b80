/* SPDX-License-Identifier: MIT
 * Notes in the journal of a part which files of a tree are complete, and what their sources were.
 *
 * Each worker collects lines in a buffer. With --resume the part has its journal from the start:
 * the line of a large file is appended at once, and others when there are a few or before the
 * worker does something that may take long. So a kill costs at most a few small files of each
 * thread. Otherwise a full buffer creates the journal, and only a tree that is kept needs the rest:
 * a small tree costs no system call.
 */
#include "io/io.h"
#include "report.h"
#include "resume.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE ((size_t)64 << 10)
#define EAGER_SIZE  ((size_t)512) /* of each thread, of which a slow file system gets 64 */
#define PATIENCE    1.0           /* seconds */
/* Its copy takes a hundred times as long as its line, which took 0.7 us on ext4 and tmpfs. */
#define LARGE_SIZE ((off_t)1 << 20)

/* The first line creates the journal. A failure never fails the copy. */
static void record_append(struct record *r, const char *lines, size_t size)
{
	if (r->part->log < 0 && !r->part->lost &&
	    part_describe(r->part, r->name, &r->source, r->options, r->data, r->mode) < 0)
		r->part->lost = true;
	part_append(r->part, lines, size);
}

static void record_flush(struct worker *w)
{
	pthread_mutex_lock(&w->tree->lock);
	record_append(w->tree->root.record, w->record, w->recorded);
	pthread_mutex_unlock(&w->tree->lock);
	w->recorded = 0;
}

static bool record_is_eager(const struct worker *w)
{
	return w->tree->root.record->part->published;
}

static bool record_is_due(const struct worker *w, off_t size)
{
	return size >= LARGE_SIZE || io_now() - w->record_began >= PATIENCE;
}

bool record_has_rest(const struct worker *w)
{
	return w->recorded > 0 && record_is_eager(w);
}

void record_write_rest(struct worker *w)
{
	if (record_has_rest(w))
		record_flush(w);
}

void record_before(struct worker *w, off_t size)
{
	if (record_has_rest(w) && record_is_due(w, size))
		record_flush(w);
}

void record_add(struct worker *w, const struct entry *e, const struct stat *st)
{
	char path[PATH_MAX];
	if (__atomic_load_n(&w->tree->root.record->part->lost, __ATOMIC_RELAXED))
		return;
	entry_path_below(e, path, sizeof(path));
	if (!w->record && !(w->record = malloc(BUFFER_SIZE)))
		return;
	if (w->recorded + JOURNAL_LINE > BUFFER_SIZE)
		record_flush(w);
	if (w->recorded == 0 && record_is_eager(w))
		w->record_began = io_now();
	w->recorded += journal_format(&(struct journal_fact){.kind = JOURNAL_ENTRY,
							     .source = journal_source_of(st),
							     .when = w->opened,
							     .text = path,
							     .size = strlen(path)},
				      w->record + w->recorded);
	if (record_has_rest(w) && (w->recorded >= EAGER_SIZE || record_is_due(w, st->st_size)))
		record_flush(w);
}

void record_leave(struct worker *w)
{
	struct record *r = w->tree->root.record;
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
