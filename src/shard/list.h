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

#include "tree/tree.h"

#define LIST_PATH ((size_t)32 << 10) /* the longest path below the operand, with its 0 */

struct job;

struct listed {
	char kind;
	const char *dir, *name; /* of a link: the two paths */
	struct stat st;
	off_t first, last;
};

struct chunk {
	unsigned number;
	char *text;
	struct listed *entry;
	size_t count;
};

/* read.c: reads share.list.K, or share.links (K = LIST_LINKS). Returns 0, or -errno, recorded. */
#define LIST_LINKS ((unsigned)-1)
int chunk_read(const struct job *, unsigned number, struct chunk *);
void chunk_free(struct chunk *);
/* What identifies an entry, or a range of it: of its path alone, and with its attributes. */
uint64_t list_hash_path(const char *path, off_t first);
uint64_t list_hash_entry(const char *path, char kind, off_t first, const struct stat *);

/* Of the lines of a file. */
uint64_t list_hash_text(const char *text, size_t size);

/* list.c: of what a line of a list names, the path below the operand. */
void list_path(const struct listed *, char path[LIST_PATH]);

/* list.c: of shared_copy. */
int list_add(struct worker *, const struct entry *, const struct stat *);
void list_leave(struct worker *);

/* Walks the source and writes the list. The caller has claimed that. Returns 0; or -errno, reported
 * or recorded in the job; t->differs: the source is not what is listed already. */
int list_make(struct tree *, struct job *, const struct operand *from, int dst);
/* A sum of what a walk finds; writes nothing. */
int list_sum(struct tree *, const struct operand *from, uint64_t *sum);

#endif
