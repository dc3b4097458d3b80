/* SPDX-License-Identifier: MIT
 * Reads the list of a tree.
 */
#define _GNU_SOURCE
#include "io/hash.h"
#include "io/words.h"
#include "job.h"
#include "list.h"
#include "tree/report.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t list_hash_bytes(const char *path, size_t length)
{
	return hash_mix(hash_add(HASH_START, path, length) ^ hash_mix(0));
}

uint64_t list_hash_path(const char *path, off_t first)
{
	return hash_mix(hash_add(HASH_START, path, strlen(path)) ^ hash_mix((uint64_t)first));
}

/* Eight bytes at a time, in the order of a little-endian machine. */
uint64_t list_hash_text(const char *text, size_t size)
{
	uint64_t hash = HASH_START ^ size, eight;
	for (; size > 0; text += sizeof(eight), size -= sizeof(eight)) {
		if (size < sizeof(eight))
			return hash_mix(hash_add(hash, text, size));
		memcpy(&eight, text, sizeof(eight));
		hash = (hash ^ le64toh(eight)) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return hash_mix(hash);
}

/* The size and times of a directory change when entries appear in it. The owner of a file is not
 * listed: its ctime changes, too. */
uint64_t list_hash_entry(const char *path, char kind, off_t first, const struct stat *st)
{
	const bool directory = S_ISDIR(st->st_mode);
	const uint64_t seen[] = {(uint64_t)kind,
				 st->st_mode,
				 directory ? 0 : (uint64_t)st->st_size,
				 directory ? 0 : (uint64_t)st->st_mtim.tv_sec,
				 directory ? 0 : (uint64_t)st->st_mtim.tv_nsec,
				 directory ? 0 : (uint64_t)st->st_ctim.tv_sec,
				 directory ? 0 : (uint64_t)st->st_ctim.tv_nsec,
				 directory ? st->st_uid : 0,
				 directory ? st->st_gid : 0,
				 st->st_ino};
	uint64_t hash = list_hash_path(path, first) * 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++)
		hash = hash_mix(hash ^ seen[i]) + i;
	return hash;
}

/* A name, with a null byte, where it stands. */
static char *list_name(struct words *w, char *text)
{
	size_t length;
	char *name = text + (words_text(w, &length) - text);
	words_name(name, length, name, &w->wrong);
	return name;
}

static bool chunk_parse_entry(struct words *w, char *text, struct line *e)
{
	struct stat *st = &e->entry.st;
	st->st_mode = (mode_t)words_number(w, ' ', 8);
	st->st_nlink = (nlink_t)words_unsigned(w);
	st->st_size = (off_t)words_number(w, ' ', 10);
	st->st_ino = (ino_t)words_unsigned(w);
	st->st_mtim = words_time(w);
	st->st_ctim = words_time(w);
	e->last = S_ISREG(st->st_mode) ? st->st_size : 0;
	if (e->kind != 'e') {
		st->st_uid = (uid_t)words_unsigned(w);
		st->st_gid = (gid_t)words_unsigned(w);
		st->st_atim = words_time(w);
		e->first = (off_t)words_number(w, ' ', 10);
		e->last = (off_t)words_number(w, ' ', 10);
	}
	const char *name = e->entry.name = list_name(w, text);
	return !w->wrong && !strchr(name, '/') && !name_is_dot(name) && strlen(name) < PATH_MAX;
}

static bool chunk_parse_line(char *line, const char *end, struct line *e, const char **dir)
{
	struct words w = {.at = line, .end = end};
	const char *kind = list_name(&w, line);
	*e = (struct line){.kind = kind[0], .dir = *dir};
	if (strcmp(kind, "in") == 0)
		*dir = list_name(&w, line);
	else if (strcmp(kind, "link") == 0) {
		e->from = list_name(&w, line);
		e->entry.name = list_name(&w, line);
	} else if (!kind[0] || kind[1] || !strchr("edr", kind[0]) || !*dir ||
		   !chunk_parse_entry(&w, line, e))
		return false;
	return !w.wrong;
}

/* The hash of the last line shows that everything before it is there. Returns its offset, or 0. */
static size_t chunk_check(const char *text, size_t size, size_t *lines)
{
	uint64_t hash;
	if (size < 2 || text[size - 1] != '\n')
		return 0;
	const char *last = memrchr(text, '\n', size - 1);
	last = last ? last + 1 : text;
	if (sscanf(last, "end %zu %" SCNx64, lines, &hash) != 2 ||
	    hash != list_hash_text(text, (size_t)(last - text)))
		return 0;
	return (size_t)(last - text) + 1;
}

static int chunk_parse(struct chunk *c, size_t size)
{
	size_t lines = 0, end = chunk_check(c->text, size, &lines);
	const char *dir = NULL;
	if (end == 0 || lines > size || memchr(c->text, '\0', end))
		return -EBADMSG;
	c->line = calloc(lines + 1, sizeof(*c->line));
	if (!c->line)
		return -ENOMEM;
	for (char *line = c->text, *stop = c->text + end - 1; line < stop;) {
		char *next = strchr(line, '\n');
		*next = '\0';
		if (c->count > lines || !chunk_parse_line(line, next, &c->line[c->count], &dir))
			return -EBADMSG;
		c->count += c->line[c->count].kind != 'i';
		line = next + 1;
	}
	return 0;
}

static int chunk_load(int fd, struct chunk *c, size_t *size)
{
	struct stat st;
	ssize_t n = 1;
	if (fstat(fd, &st) < 0)
		return -errno;
	c->text = malloc((size_t)st.st_size + 1);
	if (!c->text)
		return -ENOMEM;
	for (*size = 0; *size < (size_t)st.st_size && n > 0; *size += n > 0 ? (size_t)n : 0) {
		do
			n = read(fd, c->text + *size, (size_t)st.st_size - *size);
		while (n < 0 && errno == EINTR);
	}
	c->text[*size] = '\0';
	return n < 0 ? -errno : 0;
}

int chunk_read(const struct job *j, unsigned k, struct chunk *c)
{
	char name[JOB_NAME];
	size_t size = 0;
	*c = (struct chunk){.number = k};
	if (k == LIST_LINKS)
		strcpy(name, PART_SHARE "links");
	else
		job_chunk_name(name, "list", k);
	int fd = job_open(j, name, k == LIST_LINKS ? j->listed : k < j->chunks);
	int r = fd < 0 ? fd : chunk_load(fd, c, &size);
	if (fd >= 0)
		close(fd);
	if (r == 0)
		r = chunk_parse(c, size);
	if (r == 0)
		return 0;
	chunk_free(c);
	return r == -EBADMSG ? job_refuse_part(j, LIST_DAMAGED)
			     : job_fail(j, "read of its list", "open", -r);
}

void chunk_free(struct chunk *c)
{
	free(c->text);
	free(c->line);
	c->text = NULL;
	c->line = NULL;
	c->count = 0;
}

/* Chunks grow with the tree, so that a small one is divided evenly, and a
 * large one has no more chunks than a directory can hold. */

#define CHUNK_LINES 160  /* at first; then a part of what was listed */
#define CHUNK_SHARE 16   /* ... this one, or a quarter of a share, if that is less */
#define CHUNK_MOST  8192 /* ... at most */
#define CHUNK_BYTES ((uint64_t)256 << 20)
#define CHUNK_PARTS 1024 /* ... or this part of what was listed, if that is more */
#define LIST_LINE   (4 * LIST_PATH)

/* Writes the buffer into a new file. Returns -errno with the call, or 0. It is flushed before it is
 * renamed: a power cut must not leave a list that no process can read. */
static int buffer_put(struct lister *l, struct buffer *b, const char *name, struct failure *fail)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	struct io io = {.cancel = NULL};
	size_t done;
	const uint64_t hash = list_hash_text(b->text, b->used);
	b->used += (size_t)sprintf(b->text + b->used, "end %u %016" PRIx64 "\n", b->lines, hash);
	int fd = openat(l->job->part.fd, name, flags, 0600);
	if (fd < 0)
		return fail_at(fail, "open");
	(void)!fchmod(fd, 0600); /* a umask or a default ACL may withhold rights of the owner */
	int r = fail_if(fail, io_write_all(&io, fd, b->text, b->used, -1, &done), "write");
	if (r == 0 && fdatasync(fd) < 0)
		r = fail_at(fail, "fdatasync");
	if (close(fd) < 0 && r == 0)
		r = fail_at(fail, "close");
	return r;
}

void buffer_write(struct lister *l, struct buffer *b, const char *name)
{
	char new[JOB_NAME], next[JOB_NAME];
	struct failure fail;
	if (b->lines == 0)
		return;
	job_chunk_name(new, "new", b->thread);
	int r = buffer_put(l, b, new, &fail);
	pthread_mutex_lock(&l->lock);
	job_chunk_name(next, "list", l->chunks);
	const int dir = l->job->part.fd;
	if (r == 0 && l->result == 0 && renameat(dir, new, dir, name ? name : next) < 0)
		r = fail_at(&fail, "rename");
	if (r < 0 && l->result == 0)
		__atomic_store_n(&l->result, job_fail(l->job, "write of its list", fail.call, -r),
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
