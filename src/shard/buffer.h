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
	unsigned thread;
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

struct lister {
	struct tree *tree;
	struct job *job; /* NULL: only the sum is wanted */
	unsigned chunks; /* that are written */
	uint64_t lines, bytes, sum;
	pthread_mutex_t lock;
	struct linked *linked;
	size_t links, room;
	struct buffer *last;
	struct table known; /* what an earlier process has listed: hashes of the entries */
	size_t unseen;
	int result; /* of the first chunk that could not be written */
};

/* Makes room for two lines. Returns false if there is no memory; then the tree stops. */
bool buffer_grow(struct lister *, struct buffer *);
/* Adds a name, and one more character. */
void buffer_add_name(struct buffer *, const char *name, char after);
/* Adds a line, and writes a chunk that is full. path: below the operand. */
void buffer_add(struct lister *, struct buffer *, char kind, const char *path, const struct stat *,
		off_t first, off_t last);
/* Writes what is in it as a file of the part: this one, or the next chunk. Other threads write at
 * the same time, but chunk K gets its name before chunk K + 1. */
void buffer_write(struct lister *, struct buffer *, const char *name);
void buffer_free(struct buffer *);

#endif
