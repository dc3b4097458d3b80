/* SPDX-License-Identifier: MIT
 *
 * A new tree that several processes copy.
 *
 *   tree.c: shared_copy --> finish.c: the commit, by walks --\
 *        \----------------> entries.c: the chunks, by walks --+-> read.c, outline.c: what is listed
 *         \---------------> list.c, read.c: the list ----------> job.c, claims.c
 */
#ifndef SHARD_TREE_H
#define SHARD_TREE_H

#include "job.h"
#include "list.h"
#include "tree/root.h"

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

/* tree.c: of shared_copy. */
int shard_copy_root(struct tree *, const struct operand *from, const struct operand *to);

/* entries.c: walks the batches, and before them what the list has of the operand's directory,
 * unless that is NULL. Returns 0 if they could be walked, or -errno, recorded. */
int shard_walk(struct shard_tree *, const struct batches *, struct line *root);

/* entries.c: copies chunks until none is free. Returns 0, or -errno, recorded in the job or
 * reported. */
int entries_copy(struct shard_tree *);
/* Looks at each copy: is it there, and of its type and size? The same result. */
int entries_check(struct shard_tree *);

/* finish.c: all chunks are complete, and the part is locked: links, attributes and the rename.
 * Returns 0, RESULT_AGAIN or -errno as above. */
int finish_tree(struct shard_tree *);

/* entries.c: opens a directory of the copy by its path below the operand; "." is the operand's. No
 * symlink is followed. Returns a descriptor or -errno. */
int path_open_copy(const struct shard_tree *, const char *path);
/* The operand's directory, open; NULL without memory or descriptors. path_free closes it. */
struct directory *path_top(const struct shard_tree *);
void path_free(struct directory *);

#endif
