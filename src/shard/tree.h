/* SPDX-License-Identifier: MIT
 *
 * A new tree that several processes copy.
 *
 *   tree.c: shared_copy ---> finish.c, finish_*.c: the commit -\
 *        \-----------------> entries.c: the chunks ------------+-> paths.c: directories, by paths
 *         \----------------> list.c, known.c, read.c: the list --> job.c, claims.c
 */
#ifndef SHARD_TREE_H
#define SHARD_TREE_H

#include "job.h"
#include "known.h"
#include "list.h"
#include "tree/root.h"

struct shard_tree {
	struct building root; /* root.dst: data */
	struct job job;
	struct fcopy_error error; /* of the job; other failures are reported where they happen */
	char reason[128];
	pthread_mutex_t lock;     /* of the job, while several threads copy */
	struct directory *top;    /* the operand's: above those of path_directory */
	struct ground ground;     /* of the walks that copy */
	int failed;               /* why the job ends in this pass, or 0; atomic */
	struct known_table names; /* that the commit expects, by directory */
	struct inodes *copies;    /* those that the commit has found, if it looks at each */
	bool checked;             /* ... it has, and directories get their attributes again */
};

/* tree.c: of shared_copy. */
int shard_copy_root(struct tree *, const struct operand *from, const struct operand *to);
int shard_names_copy(struct tree *, const struct operand *from, const struct operand *to);

/* entries.c: copies chunks until none is free. Returns 0, or -errno, recorded in the job or
 * reported. */
int entries_copy(struct shard_tree *);

/* finish.c: all chunks are complete, and the part is locked: links, attributes and the rename.
 * Returns 0, JOB_AGAIN or -errno as above. */
int finish_tree(struct shard_tree *);

/* finish_links.c: makes what share.links lists. The same result. */
int finish_links(struct shard_tree *);

/* paths.c: opens a directory of the source, or of the copy, by its path below the operand; "." is
 * the operand's. No symlink is followed, unless all of the source are. make: creates what is
 * missing in the copy. Returns a descriptor or -errno. */
int path_open_source(const struct shard_tree *, const char *path);
int path_open_copy(const struct shard_tree *, const char *path, bool make);
/* Makes a directory of the copy; it may exist. */
int path_make_directory(const struct tree *, int dir, const char *name);
/* A directory, not open yet, that is not part of a walk; NULL without memory. path_free closes it.
 */
struct directory *path_directory(const struct shard_tree *, const char *path, const struct stat *);
void path_free(struct directory *);
/* The operand's directory, open; NULL without memory or descriptors. */
struct directory *path_top(const struct shard_tree *);
/* Opens both. Returns 0, or -errno, reported; t->differs: the source's is another one now. */
int path_open(const struct shard_tree *, struct worker *, struct directory *, const char *path,
	      bool make);

#endif
