/* SPDX-License-Identifier: MIT
 *
 * A set of inodes.
 */
#ifndef TREE_INODES_H
#define TREE_INODES_H

#include "source/reader.h"

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

/* Lists of the names of directories, kept by directory. With --parents, each SRC has a separate
 * struct directory, even if they mean one directory of DST: that is read once. */

/* *lists is NULL at first. dir: the directory that the list is of. Keeps *list, and sets it to
 * NULL; or leaves it where it is, if the directory has one already, or there is no memory. */
void lists_keep(void **lists, int dir, struct name_list **list);
/* Returns the list of the directory, which is not kept any more; NULL: there is none. */
struct name_list *lists_take(void **lists, int dir);
void lists_free(void **lists);

#endif
