/* SPDX-License-Identifier: MIT
 * Implements buffer.h. Chunks grow with the tree, so that a small one is divided evenly, and a
 * large one has no more chunks than a directory can hold.
 */
#define _GNU_SOURCE
#include "buffer.h"
#include "io/words.h"
#include "tree/report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_LINES 160  /* at first; then a part of what was listed */
#define CHUNK_SHARE 16   /* ... this one, or a quarter of a share, if that is less */
#define CHUNK_MOST  8192 /* ... at most */
#define CHUNK_BYTES ((uint64_t)256 << 20)
#define CHUNK_PARTS 1024 /* ... or this part of what was listed, if that is more */
#define LIST_LINE   (4 * LIST_PATH)

/* Writes the buffer into a new file. Returns -errno with the call, or 0. It is flushed before it is
 * renamed: a power cut must not leave a list that no process can read. */
static int buffer_put(struct lister *l, struct buffer *b, const char *name, const char **call)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	struct io io = {.cancel = NULL};
	size_t done;
	const uint64_t hash = list_hash_text(b->text, b->used);
	b->used += (size_t)sprintf(b->text + b->used, "end %u %016" PRIx64 "\n", b->lines, hash);
	*call = "open";
	int fd = openat(l->job->part.fd, name, flags, 0600);
	if (fd < 0)
		return -errno;
	(void)!fchmod(fd, 0600); /* a umask or a default ACL may withhold rights of the owner */
	*call = "write";
	int r = io_write_all(&io, fd, b->text, b->used, -1, &done);
	if (r == 0) {
		*call = "fdatasync";
		r = fdatasync(fd) < 0 ? -errno : 0;
	}
	if (close(fd) < 0 && r == 0) {
		*call = "close";
		r = -errno;
	}
	return r;
}

void buffer_write(struct lister *l, struct buffer *b, const char *name)
{
	char new[JOB_NAME], next[JOB_NAME];
	const char *call;
	if (b->lines == 0)
		return;
	job_chunk_name(new, "new", b->thread);
	int r = buffer_put(l, b, new, &call);
	pthread_mutex_lock(&l->lock);
	job_chunk_name(next, "list", l->chunks);
	const int dir = l->job->part.fd;
	if (r == 0 && l->result == 0 && renameat(dir, new, dir, name ? name : next) < 0) {
		call = "rename";
		r = -errno;
	}
	if (r < 0 && l->result == 0)
		__atomic_store_n(&l->result, job_fail(l->job, "write of its list", call, -r),
				 __ATOMIC_RELAXED);
	l->chunks += l->result == 0 && !name;
	pthread_mutex_unlock(&l->lock);
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

void buffer_add_name(struct buffer *b, const char *name, char after)
{
	char *at = words_put_name(b->text + b->used, name, strlen(name));
	*at++ = after;
	b->used = (size_t)(at - b->text);
}

static void buffer_add_stat(struct buffer *b, char kind, const struct stat *st, off_t first,
			    off_t last)
{
	char *at = b->text + b->used;
	*at++ = kind;
	*at++ = ' ';
	at = words_put_unsigned(at, st->st_mode, 8, 1, ' ');
	at = words_put_unsigned(at, st->st_nlink, 10, 1, ' ');
	at = words_put(at, st->st_size, 10, 1, ' ');
	at = words_put_unsigned(at, st->st_ino, 10, 1, ' ');
	at = words_put_time(at, &st->st_mtim);
	at = words_put_time(at, &st->st_ctim);
	if (kind != 'e') {
		at = words_put_unsigned(at, st->st_uid, 10, 1, ' ');
		at = words_put_unsigned(at, st->st_gid, 10, 1, ' ');
		at = words_put_time(at, &st->st_atim);
		at = words_put(at, first, 10, 1, ' ');
		at = words_put(at, last, 10, 1, ' ');
	}
	b->used = (size_t)(at - b->text);
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

/* A range ends a chunk, which has what came before it; in a tree of many large files, only if the
 * chunk is not too small then. */
static bool buffer_is_full(struct lister *l, const struct buffer *b, bool range)
{
	const uint64_t parts = 4 * (uint64_t)l->job->shard.count;
	uint64_t most = __atomic_load_n(&l->lines, __ATOMIC_RELAXED) /
			(parts > CHUNK_SHARE ? parts : CHUNK_SHARE);
	most = most < CHUNK_LINES ? CHUNK_LINES : most > CHUNK_MOST ? CHUNK_MOST : most;
	const uint64_t part = __atomic_load_n(&l->bytes, __ATOMIC_RELAXED) /
			      (parts > CHUNK_PARTS ? parts : CHUNK_PARTS);
	const uint64_t bytes = range || part > CHUNK_BYTES ? part : CHUNK_BYTES;
	return b->lines >= most || b->bytes >= bytes;
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
		buffer_add_name(b, dir, '\n');
		b->lines++;
	}
	buffer_add_stat(b, kind, st, first, last);
	buffer_add_name(b, name, '\n');
	b->lines++;
	const uint64_t bytes = S_ISREG(st->st_mode) ? (uint64_t)(last - first) : 0;
	b->bytes += bytes;
	__atomic_add_fetch(&l->lines, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&l->bytes, bytes, __ATOMIC_RELAXED);
	if (buffer_is_full(l, b, kind == 'r'))
		buffer_write(l, b, NULL);
}
