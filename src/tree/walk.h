/* SPDX-License-Identifier: MIT
 *
 * Reads directories, and passes what is in them to the pool.
 */
#ifndef TREE_WALK_H
#define TREE_WALK_H

#include "tree.h"

/* Copies everything below root, whose `pending` is 1, in tree->threads threads. */
void walk_tree(struct tree *, struct directory *root);
void walk_entry(struct tree *, const struct entry *); /* copies one entry in this thread */
/* Reports each name of options.files that root does not have. */
void walk_report_missing(struct tree *, struct directory *root);

/* Subdirectories. */

/* Opens or creates a subdirectory; pushes what is in it. Takes fd. */
void directory_enter(struct worker *, const struct entry *, int fd, const struct stat *);
/* Creates an empty directory with mode 0700, for a mount point that cannot be read. */
void directory_make_mount_point(struct worker *, const struct entry *);

/* One name of a directory. */

/* Copies one name, whatever it is. Returns its outcome, which was counted and sent if it is final.
 */
struct outcome entry_copy(struct worker *, const struct entry *);

/* Counts what a tree will copy, for the progress line. */

/* Starts to count the entries and bytes of a tree for options.progress, if the caller
 * wants that; stops it. NULL: nothing is counted. */
struct census;
struct census *census_start(const struct tree *, const struct directory *root);
void census_stop(struct census *);

#endif
