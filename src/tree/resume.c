/* SPDX-License-Identifier: MIT
 * A tree in DST.fcopy-part that an earlier run did not complete. The journal says which files are
 * complete, and what their sources were: a file is copied again unless its source still has the
 * same size, mtime and ctime. What the journal does not prove is compared: see part/part.h.
 */
#include "resume.h"
#include "io/io.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* With --fsync, and after a flush of the part failed, reads from the storage: the page cache may
 * contain data that the disk does not, and the flush at the end would succeed. */
bool resume_are_same_bytes(struct worker *w, int fd, int dst, off_t size)
{
	struct copy c = {.options = &w->options,
			 .report = &w->file.report,
			 .src = {.fd = fd, .path = entry_src},
			 .dst = {.fd = dst, .path = entry_dst}};
	const struct record *record = w->tree->root.record;
	const bool past_cache = w->tree->options->copy.fsync ||
				(record && record->part && record->part->unflushed);
	bool cached;
	const bool same = compare_files(&c, 0, size, past_cache, false, &cached) == size;
	w->file.report.error = (struct fcopy_error){0};
	return same;
}

bool resume_has_same_bytes(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	int dst = openat(e->dir->dst, e->as, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const bool same = dst >= 0 && resume_are_same_bytes(w, fd, dst, st->st_size);
	io_close(dst);
	return same;
}

/* Opened for writing: SMB ignores fsync(2) otherwise (cifs_strict_fsync in fs/smb/client/file.c).
 */
bool resume_flush(const struct worker *w, const struct entry *e)
{
	if (w->tree->root.ground.flush != FLUSH_EACH)
		return true;
	int dst = openat(e->dir->dst, e->as, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool flushed = dst >= 0 && fsync(dst) == 0;
	io_close(dst);
	return flushed;
}

/* A file that was compared is noted again: from then on its bytes are known. */
static bool resume_may_reuse(struct worker *w, const struct entry *e, int fd, const struct stat *st,
			     const struct journal_fact *done, bool sure)
{
	/* --verify promises that every file of the copy was read back, and --fsync that it was
	 * flushed: a writeback that failed is reported only once. */
	if (sure && !w->options.verify && !journal_is_recent(&done->source, &done->when))
		return resume_flush(w, e);
	if (!resume_has_same_bytes(w, e, fd, st) || !resume_flush(w, e))
		return false;
	record_add(w, e, st);
	return true;
}

/* What identifies the source of an entry, with this stat. */
static struct journal_source record_source(const struct record *r, const struct stat *st)
{
	struct journal_source s = journal_source_of(st);
	s.inode = r->numbers ? s.inode : 0;
	return s;
}

bool resume_is_flushed(const struct tree *t, const struct entry *e)
{
	const struct record *r = t->root.record;
	struct journal_fact done;
	char path[PATH_MAX];
	bool sure;
	return r && r->part && entry_path_below(e, path, sizeof(path)) &&
	       journal_find(&r->part->journal, path, true, &done, &sure) && sure;
}

bool resume_is_complete(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct part *part = w->tree->root.record->part;
	const struct journal_source now = record_source(w->tree->root.record, st);
	struct journal_fact done;
	struct stat old;
	char path[PATH_MAX];
	bool sure;
	if (fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	const bool noted = entry_path_below(e, path, sizeof(path)) &&
			   journal_find(&part->journal, path, w->tree->options->copy.fsync, &done,
					&sure) &&
			   journal_same_source(&done.source, &now);
	if (noted && S_ISREG(old.st_mode) && old.st_size == st->st_size &&
	    resume_may_reuse(w, e, fd, st, &done, sure))
		return true;
	/* A comparison that was interrupted does not show that the copy differs. */
	if (tree_stopped(w->tree))
		return false;
	if (noted)
		part_note_again(part, path);
	remove_entry(e->dir->dst, e->as); /* if this fails, its creation reports it */
	return false;
}

/* Notes in the journal of a part which files of a tree are complete, and what their sources were.
 *
 * Each worker collects in a buffer what their lines say. With --resume the part has its journal
 * from the start: the line of a large file is appended at once, and others when there are a few or
 * before the worker does something that may take long. So a kill costs at most a few small files of
 * each thread.
 *
 * Otherwise only a tree that is kept needs the lines, and a kill leaves nothing that is continued:
 * a full buffer goes to an unnamed file. A small tree costs no system call. */

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
		part_lose(r->part, r->part->err);
	part_append(r->part, lines, size);
}

/* What a line says; the path follows. */
struct raw {
	struct journal_source source;
	struct timespec when;
	size_t length; /* of the path, rounded up: the next one is aligned */
};

#define RAW_ROOM (sizeof(struct raw) + PATH_MAX + sizeof(size_t))

/* lock: held while lines are appended; NULL: the caller holds it, or no other thread runs. */
static void record_write_lines(struct record *r, const char *raw, size_t size,
			       pthread_mutex_t *lock)
{
	char *text = malloc(BUFFER_SIZE);
	for (size_t at = 0; text && at < size;) {
		size_t used = 0;
		while (at < size && used + JOURNAL_LINE <= BUFFER_SIZE) {
			const struct raw *x = (const void *)(raw + at);
			const char *path = (const char *)(x + 1);
			used += journal_format(&(struct journal_fact){.kind = JOURNAL_ENTRY,
								      .source = x->source,
								      .when = x->when,
								      .text = path,
								      .size = strlen(path)},
					       text + used);
			at += sizeof(*x) + x->length;
		}
		if (lock)
			pthread_mutex_lock(lock);
		record_append(r, text, used);
		if (lock)
			pthread_mutex_unlock(lock);
	}
	if (!text)
		part_lose(r->part, ENOMEM);
	free(text);
}

/* A file system without unnamed files, or a full one, gets the lines. */
static void record_set_aside(struct record *r, const char *raw, size_t size)
{
	if (!r->set_aside) {
		r->set_aside = true;
		r->aside = openat(r->part->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	}
	const off_t at = (off_t)r->aside_size;
	if (r->aside >= 0 && pwrite(r->aside, raw, size, at) == (ssize_t)size) {
		r->aside_size += size;
		return;
	}
	if (r->aside >= 0)
		(void)!ftruncate(r->aside, at); /* what a full disk took is needed for the lines */
	record_write_lines(r, raw, size, NULL);
}

static bool record_is_eager(const struct worker *w)
{
	return w->tree->root.record->part->published;
}

static void record_flush(struct worker *w)
{
	struct record *r = w->tree->root.record;
	pthread_mutex_t *lock = &w->tree->lock;
	if (record_is_eager(w)) {
		record_write_lines(r, w->lines.data, w->lines.size, lock);
	} else {
		pthread_mutex_lock(lock);
		record_set_aside(r, w->lines.data, w->lines.size);
		pthread_mutex_unlock(lock);
	}
	w->lines.size = 0;
}

static bool record_is_due(const struct worker *w, off_t size)
{
	return size >= LARGE_SIZE || io_now() - w->lines.began >= PATIENCE;
}

bool record_has_rest(const struct worker *w)
{
	return w->lines.size > 0 && record_is_eager(w);
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
	if (__atomic_load_n(&w->tree->root.record->part->lost, __ATOMIC_RELAXED) ||
	    (!w->lines.data && !(w->lines.data = malloc(BUFFER_SIZE))))
		return;
	const bool eager = record_is_eager(w);
	if (w->lines.size + RAW_ROOM > BUFFER_SIZE)
		record_flush(w);
	if (eager && w->lines.size == 0)
		w->lines.began = io_now();
	struct raw *x = (void *)(w->lines.data + w->lines.size);
	char *path = (char *)(x + 1);
	if (!entry_path_below(e, path, PATH_MAX)) /* it is copied again */
		return;
	const size_t size = strlen(path) + 1;
	*x = (struct raw){.source = record_source(w->tree->root.record, st),
			  .when = w->work.opened,
			  .length = (size + sizeof(size_t) - 1) / sizeof(size_t) * sizeof(size_t)};
	w->lines.size += sizeof(*x) + x->length;
	if (eager && (w->lines.size >= EAGER_SIZE || record_is_due(w, st->st_size)))
		record_flush(w);
}

void record_leave(struct worker *w)
{
	struct record *r = w->tree->root.record;
	if (!w->lines.data)
		return;
	pthread_mutex_lock(&w->tree->lock);
	r->buffer[r->buffers++] = (struct record_buffer){w->lines.data, w->lines.size};
	pthread_mutex_unlock(&w->tree->lock);
}

/* Writes the lines of what was set aside. */
static void record_read_aside(struct record *r)
{
	void *raw = r->aside_size > 0
			? mmap(NULL, r->aside_size, PROT_READ, MAP_PRIVATE, r->aside, 0)
			: NULL;
	if (raw == MAP_FAILED)
		part_lose(r->part, errno);
	else if (raw)
		record_write_lines(r, raw, r->aside_size, NULL);
	if (raw && raw != MAP_FAILED)
		munmap(raw, r->aside_size);
	r->aside_size = 0;
}

void record_keep(struct record *r)
{
	record_read_aside(r);
	for (unsigned i = 0; i < r->buffers; i++)
		record_write_lines(r, r->buffer[i].data, r->buffer[i].size, NULL);
	if (r->part->log < 0)
		record_append(r, "", 0);
}

void record_end(struct record *r)
{
	for (unsigned i = 0; i < r->buffers; i++)
		free(r->buffer[i].data);
	if (r->set_aside && r->aside >= 0)
		close(r->aside);
}
