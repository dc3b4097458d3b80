/* SPDX-License-Identifier: MIT
 *
 * The end of a directory that an operand names.
 */
#ifndef TREE_COMMIT_H
#define TREE_COMMIT_H

#include "root.h"

/* Sets the attributes of the complete directory, flushes and renames it. Returns 0 or -errno,
 * reported. */
int commit_root(struct building *, struct directory *, struct outcome *);
/* Commits, keeps or removes the directory, after the pool has ended. Returns 0 or -errno,
 * reported. */
int commit_end(struct building *, struct directory *);
/* Nothing was copied: closes the open directory, and removes it if it is empty. */
void commit_abort(struct building *);
/* Flushes the directory that holds the destination. Returns 0 or -errno, reported. */
int commit_flush_parent(const struct building *);
/* Warns that this name beside the destination could not be removed. */
void commit_warn_left(const struct building *, const char *name, int err);

#endif
