/* SPDX-License-Identifier: MIT
 *
 * The lines of a list, until a chunk of them is written. Private to list.c.
 */
#ifndef SHARD_BUFFER_H
#define SHARD_BUFFER_H

#include "job.h"
#include "list.h"

/* What one thread has collected. */
struct buffer {
	char *text;
	size_t used, room;
	unsigned lines;
	uint64_t bytes;
	char dir[LIST_PATH]; /* of the last line */
};

/* One of the names of a file with hard links. */
struct linked {
	struct stat st;
	char *path;
};

/* What an earlier process has listed. */
struct known {
	uint64_t path, entry;
	bool seen;
};

struct lister {
	struct tree *tree;
	struct job *job; /* NULL: only the sum is wanted */
	unsigned chunks; /* that are written */
	uint64_t lines, sum;
	pthread_mutex_t lock;
	struct linked *linked;
	size_t links, room;
	struct buffer *last;
	struct known *known;
	size_t slots, unseen;
	int result; /* of the first chunk that could not be written */
};

/* Appends to a file. Returns 0 or -errno. */
int buffer_put(int fd, const char *text, size_t size);
/* Writes a file of the part in one step. The lock is held, or no other thread runs. Returns 0 or
 * -errno, recorded in the job. */
int buffer_write_file(struct lister *, const char *name, char *text, size_t size, size_t lines);

/* Makes room for two lines. Returns false if there is no memory; then the tree stops. */
bool buffer_grow(struct lister *, struct buffer *);
/* Adds a name. As in a journal: white space, control characters and backslashes are escaped. */
void buffer_add_escaped(struct buffer *, const char *name);
/* Adds a line, and writes a chunk that is full. path: below the operand. */
void buffer_add(struct lister *, struct buffer *, char kind, const char *path, const struct stat *,
		off_t first, off_t last);
/* Writes what is in it as a chunk. */
void buffer_write(struct lister *, struct buffer *);
void buffer_free(struct buffer *);

#endif
