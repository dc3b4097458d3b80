/* SPDX-License-Identifier: MIT
 * The chunks of the list of a tree, as text: writes and reads them.
 */
#include "io/hash.h"
#include "io/words.h"
#include "shard_tree.h"
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

/* As of a single source: by inode, and of a file by size and mtime. Mode and ctime do not count:
 * chmod(2) may have made an entry readable during the job. */
uint64_t list_hash_entry(const char *path, char kind, off_t first, const struct stat *st)
{
	const bool directory = S_ISDIR(st->st_mode);
	const uint64_t seen[] = {(uint64_t)kind,
				 st->st_mode & S_IFMT,
				 st->st_ino,
				 directory ? 0 : (uint64_t)st->st_size,
				 directory ? 0 : (uint64_t)st->st_mtim.tv_sec,
				 directory ? 0 : (uint64_t)st->st_mtim.tv_nsec};
	uint64_t hash = list_hash_path(path, first) * 0x9e3779b97f4a7c15u;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++)
		hash = hash_mix(hash ^ seen[i]) + i;
	return hash;
}

/* Writes a chunk. */

/* Makes room for two lines, a link, and the last one. */
static bool chunk_grow(struct chunk_text *c)
{
	if (c->room - c->used > 2 * LIST_LINE)
		return true;
	const size_t room = c->room ? 2 * c->room : 4 * LIST_LINE;
	char *text = realloc(c->text, room);
	if (!text)
		return false;
	c->text = text;
	c->room = room;
	return true;
}

/* Adds a name, and one more character. */
static void chunk_put_name(struct chunk_text *c, const char *name, char after)
{
	char *at = words_put_name(c->text + c->used, name, strlen(name));
	*at++ = after;
	c->used = (size_t)(at - c->text);
}

/* Begins a line. */
static void chunk_put_kind(struct chunk_text *c, const char *kind)
{
	c->used += (size_t)sprintf(c->text + c->used, "%s ", kind);
	c->lines++;
}

static void chunk_put_stat(struct chunk_text *c, char kind, const struct stat *st, off_t first,
			   off_t last)
{
	char *at = c->text + c->used;
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
	c->used = (size_t)(at - c->text);
	c->lines++;
}

/* Makes room for a line, and adds the directory of its path if need be. Returns the name in it;
 * NULL: no memory. */
static const char *chunk_put_directory(struct chunk_text *c, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[LIST_PATH] = ".";
	if (!chunk_grow(c))
		return NULL;
	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (strcmp(dir, c->dir) != 0) {
		strcpy(c->dir, dir);
		chunk_put_kind(c, "in");
		chunk_put_name(c, dir, '\n');
	}
	return slash ? slash + 1 : path;
}

bool chunk_add(struct chunk_text *c, char kind, const char *path, const struct stat *st,
	       off_t first, off_t last)
{
	const char *name = chunk_put_directory(c, path);
	if (!name)
		return false;
	chunk_put_stat(c, kind, st, first, last);
	chunk_put_name(c, name, '\n');
	c->bytes += (uint64_t)(last - first);
	return true;
}

bool chunk_add_link(struct chunk_text *c, const char *first, const char *path)
{
	const char *name = chunk_put_directory(c, path);
	if (!name)
		return false;
	chunk_put_kind(c, "link");
	chunk_put_name(c, first, ' ');
	chunk_put_name(c, name, '\n');
	return true;
}

/* It is flushed before the caller renames it: a power cut must not leave a list that no process can
 * read. */
static int chunk_save(int fd, const char *text, size_t size, struct failure *fail)
{
	struct io io = {.cancel = NULL};
	size_t done;
	(void)!fchmod(fd, 0600); /* a umask or a default ACL may withhold rights of the owner */
	int r = fail_if(fail, io_write_all(&io, fd, text, size, -1, &done), "write");
	if (r == 0 && fdatasync(fd) < 0)
		r = fail_at(fail, "fdatasync");
	if (close(fd) < 0 && r == 0)
		r = fail_at(fail, "close");
	return r;
}

int chunk_write(const struct job *j, struct chunk_text *c, const char *name, struct failure *fail)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const int dir = j->part.fd;
	const uint64_t hash = list_hash_text(c->text, c->used);
	c->used += (size_t)sprintf(c->text + c->used, "end %u %016" PRIx64 "\n", c->lines, hash);
	int fd = openat(dir, name, flags, 0600);
	/* That of a process that was killed may be a chunk by now, too. */
	if (fd < 0 && errno == EEXIST && unlinkat(dir, name, 0) == 0)
		fd = openat(dir, name, flags, 0600);
	const int r = fd < 0 ? fail_at(fail, "open") : chunk_save(fd, c->text, c->used, fail);
	c->used = c->lines = 0;
	c->bytes = 0;
	c->dir[0] = '\0';
	return r;
}

/* Reads a chunk. */

/* A name, with a null byte, where it stands. */
static char *list_name(struct words *w, char *text)
{
	size_t length;
	char *name = text + (words_text(w, &length) - text);
	words_name(name, length, name, &w->wrong);
	return name;
}

static bool chunk_parse_entry(struct words *w, struct line *e)
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
	return !w->wrong;
}

/* Does the path stay in the operand? */
static bool is_below(const char *path)
{
	if (!path[0] || path[0] == '/')
		return false;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += at > path;
		if (strncmp(at, "..", 2) == 0 && (!at[2] || at[2] == '/'))
			return false;
	}
	return true;
}

static bool chunk_parse_line(char *line, const char *end, struct line *e, const char **dir)
{
	struct words w = {.at = line, .end = end};
	const char *kind = list_name(&w, line);
	*e = (struct line){.kind = kind[0], .dir = *dir};
	if (strcmp(kind, "in") == 0) {
		*dir = list_name(&w, line);
		return !w.wrong && is_below(*dir);
	}
	if (strcmp(kind, "link") == 0)
		e->from = list_name(&w, line);
	else if (!kind[0] || kind[1] || !strchr("edr", kind[0]) || !chunk_parse_entry(&w, e))
		return false;
	const char *name = e->entry.name = list_name(&w, line);
	return !w.wrong && *dir && (!e->from || is_below(e->from)) && !strchr(name, '/') &&
	       !name_is_dot(name) && strlen(name) < PATH_MAX;
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

/* It exists. An NFS client may remember that it does not, but asks the server when it creates it.
 */
static int chunk_open(const struct job *j, const char *name)
{
	bool again = true;
	int fd = openat(j->part.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		/* cppcheck-suppress resourceLeak ; the caller closes it */
		return fd < 0 ? job_fail(j, "read of its list", "openat", errno) : fd;
	fd = job_create(j, name, &again);
	if (fd < 0 || again)
		return fd;
	close(fd);
	unlinkat(j->part.fd, name, 0);
	return job_fail(j, "read of its list", "openat", ENOENT);
}

int chunk_read(const struct job *j, unsigned k, struct chunk *c)
{
	char name[JOB_NAME];
	size_t size = 0;
	*c = (struct chunk){.number = k};
	job_chunk_name(name, "list", k);
	const int fd = chunk_open(j, name);
	if (fd < 0)
		return fd;
	int r = chunk_load(fd, c, &size);
	close(fd);
	if (r == 0)
		r = chunk_parse(c, size);
	if (r == 0)
		return 0;
	chunk_free(c);
	return r == -EBADMSG ? job_refuse_part(j, LIST_DAMAGED)
			     : job_fail(j, "read of its list", "read", -r);
}

void chunk_free(struct chunk *c)
{
	free(c->text);
	free(c->line);
	c->text = NULL;
	c->line = NULL;
	c->count = 0;
}

void list_path(const struct line *l, char path[LIST_PATH])
{
	const bool top = strcmp(l->dir, ".") == 0;
	snprintf(path, LIST_PATH, "%s%s%s", top ? "" : l->dir, top ? "" : "/", l->entry.name);
}
