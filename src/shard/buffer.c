/* SPDX-License-Identifier: MIT
 * Implements buffer.h. Chunks grow with the tree, so that a small one is divided evenly, and a
 * large one has no more chunks than a directory can hold.
 */
#define _GNU_SOURCE
#include "buffer.h"
#include "tree/report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_LINES 256  /* at first; then a part of what was listed */
#define CHUNK_SHARE 64   /* ... this one */
#define CHUNK_MOST  8192 /* ... at most */
#define CHUNK_BYTES ((uint64_t)256 << 20)
#define LIST_LINE   (4 * LIST_PATH)

int buffer_put(int fd, const char *text, size_t size)
{
	struct io io = {.cancel = NULL};
	size_t done;
	return io_write_all(&io, fd, text, size, -1, &done);
}

int buffer_write_file(struct lister *l, const char *name, char *text, size_t size, size_t lines)
{
	struct job *j = l->job;
	char end[64];
	const char *call = "open";
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	int n = snprintf(end, sizeof(end), "end %zu %016" PRIx64 "\n", lines,
			 hash_add(HASH_START, text, size));
	int fd = openat(j->part.fd, PART_SHARE "new", flags, 0600);
	int r = fd < 0 ? -errno : 0;
	if (r == 0) {
		call = "write";
		r = buffer_put(fd, text, size);
		r = r < 0 ? r : buffer_put(fd, end, (size_t)n);
	}
	if (r == 0 && l->tree->root.flush_each) {
		call = "fsync";
		r = fsync(fd) < 0 ? -errno : 0;
	}
	if (fd >= 0 && close(fd) < 0 && r == 0) {
		call = "close";
		r = -errno;
	}
	if (r == 0 && renameat(j->part.fd, PART_SHARE "new", j->part.fd, name) < 0) {
		call = "rename";
		r = -errno;
	}
	return r < 0 ? job_fail(j, "write of its list", call, -r) : 0;
}

void buffer_write(struct lister *l, struct buffer *b)
{
	char name[JOB_NAME];
	pthread_mutex_lock(&l->lock);
	job_chunk_name(name, "list", l->chunks);
	if (b->lines > 0 && l->result == 0) {
		l->result = buffer_write_file(l, name, b->text, b->used, b->lines);
		l->chunks += l->result == 0;
	}
	bool failed = l->result < 0;
	pthread_mutex_unlock(&l->lock);
	if (failed)
		tree_stop(l->tree, -l->result);
	b->used = b->lines = 0;
	b->bytes = 0;
	b->dir[0] = '\0';
}

void buffer_free(struct buffer *b)
{
	if (b)
		free(b->text);
	free(b);
}

void buffer_add_escaped(struct buffer *b, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;
		if (c > ' ' && c != '\\' && c != 0x7f)
			b->text[b->used++] = (char)c;
		else
			b->used += (size_t)sprintf(b->text + b->used, "\\%03o", c);
	}
}

bool buffer_grow(struct lister *l, struct buffer *b)
{
	if (b->room - b->used > 2 * LIST_LINE)
		return true;
	const size_t room = b->room ? 2 * b->room : 4 * LIST_LINE;
	char *text = realloc(b->text, room);
	if (!text) {
		tree_stop(l->tree, ENOMEM);
		return false;
	}
	b->text = text;
	b->room = room;
	return true;
}

/* A range ends a chunk, which has what came before it. */
static bool buffer_is_full(struct lister *l, const struct buffer *b, bool range)
{
	uint64_t most = __atomic_load_n(&l->lines, __ATOMIC_RELAXED) / CHUNK_SHARE;
	most = most < CHUNK_LINES ? CHUNK_LINES : most > CHUNK_MOST ? CHUNK_MOST : most;
	return b->lines >= most || b->bytes >= CHUNK_BYTES || range;
}

void buffer_add(struct lister *l, struct buffer *b, char kind, const char *path,
		const struct stat *st, off_t first, off_t last)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char dir[LIST_PATH] = ".";
	if (!buffer_grow(l, b))
		return;
	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (strcmp(dir, b->dir) != 0) {
		strcpy(b->dir, dir);
		b->used += (size_t)sprintf(b->text + b->used, "in ");
		buffer_add_escaped(b, dir);
		b->text[b->used++] = '\n';
		b->lines++;
	}
	b->used += (size_t)sprintf(
	    b->text + b->used, "%c %o %ju %ju %jd %ju %jd.%09ld %jd.%09ld %jd.%09ld %jd %jd ", kind,
	    (unsigned)st->st_mode, (uintmax_t)st->st_uid, (uintmax_t)st->st_gid,
	    (intmax_t)st->st_size, (uintmax_t)st->st_ino, (intmax_t)st->st_atim.tv_sec,
	    st->st_atim.tv_nsec, (intmax_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
	    (intmax_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec, (intmax_t)first, (intmax_t)last);
	buffer_add_escaped(b, name);
	b->text[b->used++] = '\n';
	b->lines++;
	b->bytes += S_ISREG(st->st_mode) ? (uint64_t)(last - first) : 0;
	__atomic_add_fetch(&l->lines, 1, __ATOMIC_RELAXED);
	if (buffer_is_full(l, b, kind == 'r'))
		buffer_write(l, b);
}
