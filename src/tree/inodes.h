/* SPDX-License-Identifier: MIT
 *
 * A set of inodes.
 */
#ifndef TREE_INODES_H
#define TREE_INODES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Takes 16 bytes for each 64 inodes whose numbers are close together, as those of new files on a
 * local disk are. All functions are thread-safe. */
struct inodes;
struct inodes *inodes_new(void); /* NULL: no memory */
void inodes_free(struct inodes *);
/* Returns 1 if the inode was not in the set, 0 if it was, or -ENOMEM. */
int inodes_add(struct inodes *, const struct stat *);
void inodes_remove(struct inodes *, const struct stat *);
bool inodes_has(struct inodes *, const struct stat *);

#endif
