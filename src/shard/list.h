/* SPDX-License-Identifier: MIT
 *
 * The list of a tree: what its chunks have.
 *
 *   in PATH                                      the directory of what follows; ".": the operand's
 *   e MODE LINKS SIZE INODE MTIME CTIME NAME     an entry
 *   d … UID GID ATIME 0 0 NAME                   a directory
 *   r … UID GID ATIME FIRST LAST NAME            the bytes [FIRST, LAST) of a large file
 *   link PATH PATH                               of share.links: one copied file, two names
 *   end LINES HASH                               the last line: the file is whole
 */
#ifndef SHARD_LIST_H
#define SHARD_LIST_H

#include "io/hash.h"
#include "job.h"
#include "tree/tree.h"

#define LIST_PATH ((size_t)32 << 10) /* the longest path below the operand, with its 0 */

struct job;

/* A line, except "in". */
struct line {
	struct listed entry;  /* first: see line_of() */
	struct listed **tail; /* of a directory: where the next name in it is added */
	struct work *of;      /* of entries.c */
	char kind; /* 0: a directory that is not listed in this chunk, but leads to others */
	const char *dir;
	char *from; /* of a link: the path of its copy; otherwise NULL */
	off_t first, last;
};

static inline struct line *line_of(const struct entry *e)
{
	return (struct line *)(void *)e->listed;
}

struct chunk {
	unsigned number;
	char *text;
	struct line *line;
	size_t count;
};

/* outline.c: lines as a tree of directories, as a walk needs them. All zero: empty. */
struct outline {
	struct line root;       /* the operand's directory */
	struct table directory; /* by the hash of its path */
	struct outlined *made;  /* ... and copied lines */
	size_t lines;           /* that were added; one of a directory that is listed twice */
};
/* The directory of this path below the operand, which is added with those above it if need be; ".":
 * the operand's. It is of any attributes as long as its line is not added. NULL: no memory. */
struct line *outline_open(struct outline *, const char *path);
/* Adds a line to its directory; that of a directory is copied. Returns false without memory. */
bool outline_add(struct outline *, struct line *);
/* Adds a copy of a line. */
bool outline_copy(struct outline *, const struct line *);
void outline_free(struct outline *); /* but for the lines that were added */

#define LIST_DAMAGED "its .fcopy-part has a damaged list"

/* read.c: reads share.list.K, or share.links (K = LIST_LINKS). Returns 0, or -errno, recorded. */
#define LIST_LINKS ((unsigned)-1)
int chunk_read(const struct job *, unsigned number, struct chunk *);
void chunk_free(struct chunk *);
/* What identifies an entry, or a range of it: of its path alone, and with its attributes. */
uint64_t list_hash_path(const char *path, off_t first);
uint64_t list_hash_bytes(const char *path, size_t length); /* the same of a path, with first 0 */
uint64_t list_hash_entry(const char *path, char kind, off_t first, const struct stat *);

/* Of the lines of a file. */
uint64_t list_hash_text(const char *text, size_t size);

/* list.c: of what a line of a list names, the path below the operand. */
void list_path(const struct line *, char path[LIST_PATH]);

/* list.c: of shared_copy. */
int list_add(struct worker *, const struct entry *, const struct stat *);
void list_leave(struct worker *);

/* Walks the source and writes the list. The caller has claimed that. Returns 0; or -errno, reported
 * or recorded in the job; t->differs: the source is not what is listed already. */
int list_make(struct tree *, struct job *, const struct operand *from, int dst);
/* A sum of what a walk finds; writes nothing. */
int list_sum(struct tree *, const struct operand *from, uint64_t *sum);

/* The lines of a list, until a chunk of them is written. Private to list.c. */

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
	uint64_t lines, bytes;
	uint64_t sum; /* of all entries that were found */
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
