/* SPDX-License-Identifier: MIT
 *
 * A directory of DST that belongs to this user, who may not change the names in it: for the moment
 * the copy gives its owner that right, as rsync -a does.
 */
#ifndef TREE_ADMIT_H
#define TREE_ADMIT_H

#include "tree.h"

/* Is it such a directory, and may the copy change its mode? It may if it also sets the mode that
 * the directory has in the end, or if it is a mirror. st: of the directory. */
bool admit_is_closed(const struct tree *, const struct directory *, const struct stat *st);
/* Before the first change of a name in it. */
void admit_changes(struct tree *, struct directory *);
/* After the last one, and after the attributes of SRC were set: unless its mode is SRC's now, the
 * directory gets the one back that it had. */
void admit_end(struct tree *, struct directory *);

/* The same for a directory that was finished: gives the owner of the open directory the right to
 * change names. fd may be O_PATH. Returns false if nothing was changed; otherwise admit_close()
 * restores the mode that *st has. */
bool admit_open(int fd, const struct stat *st);
void admit_close(int fd, const struct stat *st);

#endif
