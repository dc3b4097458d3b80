/* SPDX-License-Identifier: MIT
 *
 * A new tree that several processes copy.
 *
 *   tree.c: shared_copy --> finish.c: the commit, by walks --\
 *        \----------------> entries.c: the chunks, by walks --+-> read.c: what is listed
 *         \---------------> list.c: the list ----------------/--> job.c, claims.c
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
#ifndef SHARD_TREE_H
#define SHARD_TREE_H

#include "io/hash.h"
#include "job.h"
#include "tree/root.h"

#define LIST_PATH ((size_t)32 << 10) /* the longest path below the operand, with its 0 */

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

/* read.c: lines as a tree of directories, as a walk needs them. All zero: empty. */
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
uint64_t list_hash_entry(const char *path, char kind, off_t first, const struct stat *);
/* Of the lines of a file. */
uint64_t list_hash_text(const char *text, size_t size);
/* Of what a line names, the path below the operand. */
void list_path(const struct line *, char path[LIST_PATH]);

/* list.c: of shared_copy. */
int list_add(struct worker *, const struct entry *, const struct stat *);
void list_leave(struct worker *);

/* Walks the source and writes the list. The caller has claimed that. Returns 0; or -errno, reported
 * or recorded in the job; t->share.differs: the source is not what is listed already. */
int list_make(struct tree *, struct job *, const struct operand *from, int dst);
/* A sum of what a walk finds; writes nothing. */
int list_sum(struct tree *, const struct operand *from, uint64_t *sum);

struct shard_tree {
	struct building root; /* root.dst: data */
	struct job job;
	struct fcopy_error error; /* of the job; other failures are reported where they happen */
	char reason[128];
	pthread_mutex_t lock; /* of the job, while several threads copy */
	struct ground ground; /* of the walks that copy */
	int failed;           /* why the job ends in this pass, or 0; atomic */
	struct work *working; /* chunks of entries.c that are not finished; under the lock */
	struct inodes copies; /* those that the commit has found, if it looks at each ... */
	unsigned checked;     /* ... and of how many chunks it has */
};

/* entries.c: walks the batches, and before them what the list has of the operand's directory,
 * unless that is NULL. ends: directories do. Returns 0 if they could be walked, or -errno,
 * recorded. */
int shard_walk(struct shard_tree *, const struct batches *, struct line *root, bool ends);
/* The operand's directory, open; NULL without memory or descriptors. path_free closes it. */
struct directory *path_top(const struct shard_tree *);
void path_free(struct directory *);
/* Copies chunks until none is free. Returns 0, or -errno, recorded in the job or reported. */
int entries_copy(struct shard_tree *);
/* Looks at each copy: is it there, and of its type and size? The same result. */
int entries_check(struct shard_tree *);

/* finish.c: all chunks are complete, and the part is locked: links, attributes and the rename.
 * Returns 0, RESULT_AGAIN or -errno as above. */
int finish_tree(struct shard_tree *);

#endif
