/* SPDX-License-Identifier: MIT
 *
 * Which directories are open, and which are closed for now.
 */
#ifndef TREE_OPENED_H
#define TREE_OPENED_H

#include "tree.h"

#include <errno.h>

/* Opens a directory of the destination; as O_PATH if it cannot be read but searched, and
 * is neither flushed nor given attributes. Returns a descriptor, or -1 with errno. */
int directory_open(const struct tree *, int parent, const char *name);
/* Opens the directory that a symlink of this user or of root leads to. Returns a descriptor, or -1
 * with errno. EPERM: it is another user's, and could lead to any directory of this user; ENOTDIR:
 * it is no symlink, or leads to no directory. */
int directory_follow(int parent, const char *name);
/* The same for one that was there, and may be a symlink with options.keep_directory_symlink. EPERM:
 * it is another user's. */
int directory_open_old(const struct tree *, int parent, const char *name);
/* For one walk below the operand's directory, which stays open. */
void opened_start(struct tree *, const struct directory *root);
/* A subdirectory was opened; until opened_use it may be closed again. */
void opened_add(struct tree *, struct directory *);
/* Opens it again if need be, and keeps it open until opened_unuse. Returns 0, -ESTALE if its name
 * is of another directory now, or -errno. */
int opened_use(struct tree *, struct directory *);
void opened_unuse(struct tree *, struct directory *);
/* Closes a subdirectory that is in use, for ever. */
void opened_end(struct tree *, struct directory *);
/* Should directories be read to their end, so that they can be closed? */
bool opened_are_many(struct tree *);
/* Which inode the directory in the destination is. Returns false if that is unknown. */
bool opened_identity(struct tree *, struct directory *, dev_t *, ino_t *);
/* Does the name of this directory in SRC, which is open, still lead to it? Not after it was moved,
 * replaced or removed: then what it lists no longer says what SRC has. If not, errno is that of the
 * look, or ESTALE. */
bool opened_has_name(struct tree *, struct directory *);
/* Has SRC nothing of this name now? False of the operand's directory, and if that cannot be seen.
 */
bool opened_is_lacking(struct tree *, const struct directory *);
/* Does this errno mean that it was moved, replaced or removed? */
static inline bool opened_is_gone(int err)
{
	return err == ESTALE || err == ENOENT || err == ENOTDIR || err == ELOOP;
}

#endif
