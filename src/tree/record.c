/* SPDX-License-Identifier: MIT
 * Which files of a new tree are complete, and the modification time that the source of each one had
 * when it was copied. A tree that is kept as DST.fcopy-part needs this: --resume takes a file for
 * complete that has the size and the modification time of its source, but files of `fcopy -r` are
 * created with the present time.
 *
 * Each worker collects records in a buffer. A full buffer is appended to a file without a name on
 * the disk of the destination, so memory is bounded. When the tree is kept, each file gets its
 * time. In every other case the records are discarded: a small tree costs no system call.
 */
#define _GNU_SOURCE
#include "endpoints/endpoint.h"
#include "resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)64 << 10)

/* Followed by the path of the file below the destination, which ends with a 0. */
struct head {
	struct timespec mtime;
	uint32_t size; /* of the path */
};

/* Writes the path in front of path[PATH_MAX - 1]. Returns where it starts, or NULL if it does not
 * fit. */
static const char *record_path(const struct entry *e, char path[PATH_MAX])
{
	size_t at = PATH_MAX - 1;
	const char *part = e->as;
	path[at] = '\0';
	for (const struct directory *d = e->dir;; d = d->parent) {
		size_t length = strlen(part), slash = path[at] != '\0';
		if (length + slash > at)
			return NULL;
		if (slash)
			path[--at] = '/';
		at -= length;
		memcpy(path + at, part, length);
		if (!d->parent)
			return path + at;
		part = d->name;
	}
}

/* Component by component: if the commit failed late, the tree was already open to other users, and
 * one of them could have put a symlink there. Without its time --resume copies the file again. */
static void record_apply_one(int dst, const struct head *head, const char *path)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, head->mtime};
	int dir = dst;
	for (const char *slash; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		char name[NAME_MAX + 1];
		snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		int below = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir != dst)
			close(dir);
		dir = below;
	}
	if (dir < 0)
		return;
	(void)!utimensat(dir, path, times, AT_SYMLINK_NOFOLLOW);
	if (dir != dst)
		close(dir);
}

/* Returns how many bytes of whole records there were. */
static size_t record_apply(int dst, const char *data, size_t size)
{
	struct head head;
	size_t at = 0;
	while (at + sizeof(head) <= size) {
		memcpy(&head, data + at, sizeof(head));
		if (at + sizeof(head) + head.size > size)
			break;
		record_apply_one(dst, &head, data + at + sizeof(head));
		at += sizeof(head) + head.size;
	}
	return at;
}

static int record_create(int parent)
{
	char name[TEMPORARY_SIZE];
	int fd = openat(parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || temporary_draw(name) < 0)
		return fd;
	fd = openat(parent, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlinkat(parent, name, 0);
	return fd;
}

/* A failure ends the file: what it has so far stays valid. */
static void record_append(struct tree *t, const char *data, size_t size)
{
	struct record *r = t->record;
	pthread_mutex_lock(&t->lock);
	if (r->fd < 0)
		r->fd = record_create(r->parent);
	if (r->fd < 0 || pwrite(r->fd, data, size, r->size) != (ssize_t)size)
		__atomic_store_n(&r->failed, true, __ATOMIC_RELAXED);
	else
		r->size += (off_t)size;
	pthread_mutex_unlock(&t->lock);
}

void record_add(struct worker *w, const struct entry *e, const struct stat *st)
{
	char path[PATH_MAX];
	const char *start = record_path(e, path);
	if (!start || __atomic_load_n(&w->tree->record->failed, __ATOMIC_RELAXED))
		return;
	if (!w->record && !(w->record = malloc(BUFFER_SIZE)))
		return;
	struct head head;
	memset(&head, 0, sizeof(head)); /* padding is written, too */
	head.mtime = st->st_mtim;
	head.size = (uint32_t)(path + PATH_MAX - start);
	if (w->recorded + sizeof(head) + head.size > BUFFER_SIZE) {
		record_append(w->tree, w->record, w->recorded);
		w->recorded = 0;
	}
	memcpy(w->record + w->recorded, &head, sizeof(head));
	memcpy(w->record + w->recorded + sizeof(head), start, head.size);
	w->recorded += sizeof(head) + head.size;
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

void record_keep(const struct record *r)
{
	char *data = r->fd >= 0 ? malloc(BUFFER_SIZE) : NULL;
	off_t at = 0;
	for (unsigned i = 0; i < r->buffers; i++)
		record_apply(r->dst, r->buffer[i].data, r->buffer[i].size);
	while (data && at < r->size) {
		ssize_t n = pread(r->fd, data, BUFFER_SIZE, at);
		size_t whole = n > 0 ? record_apply(r->dst, data, (size_t)n) : 0;
		if (whole == 0)
			break;
		at += (off_t)whole;
	}
	free(data);
}

void record_end(struct record *r)
{
	for (unsigned i = 0; i < r->buffers; i++)
		free(r->buffer[i].data);
	if (r->fd >= 0)
		close(r->fd);
}
