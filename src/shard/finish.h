/* SPDX-License-Identifier: MIT
 *
 * What the commit of a tree does before the rename.
 */
#ifndef SHARD_FINISH_H
#define SHARD_FINISH_H

#include "tree.h"

/* Work for the pool. */
struct finish {
	struct shard_tree *shard;
	void (*run)(struct worker *, struct directory *, const struct listed *, unsigned count);
	const struct listed *line;
	size_t count;
	bool each; /* an item for each line, a directory; otherwise for the lines of a directory */
};

/* finish_run.c: runs f->run with all threads. Returns 0, or -errno, recorded or reported. */
int finish_run(struct finish *);

/* finish_check.c: the names that each directory of the copy must have. Adds one; false: no memory.
 * dir: its path below the operand. */
bool finish_expect(struct shard_tree *, const char *dir, const char *name);
/* Reads the names in d->dst, whose offset is 0. If they are not the expected ones, the tree is
 * doubtful. Unfinished files of copies that were killed are removed. */
void finish_check_names(const struct shard_tree *, struct worker *, struct directory *,
			const char *path);
/* The tree is doubtful: looks at each copy. Returns 0, or -errno as above. */
int finish_check_all(struct shard_tree *);

#endif
