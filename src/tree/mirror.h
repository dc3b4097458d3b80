/* SPDX-License-Identifier: MIT
 *
 * Merges that leave entries alone (update.c), and that remove what SRC lacks (mirror.c).
 */
#ifndef TREE_MIRROR_H
#define TREE_MIRROR_H

#include "tree.h"

/* update.c: is it certain, before the source is opened, that the entry is an unchanged file? Counts
 * it. */
bool update_is_untouched(struct worker *, const struct entry *);
/* Is the existing entry of DST left alone? fd is the open source, or -1 for a symlink or a special
 * file. Returns 1: yes, and it was counted; 0: it is absent or has to be copied; or -errno,
 * reported. */
int update_leave(struct worker *, const struct entry *, int fd, const struct stat *);

/* link_dest.c: opens options.link_dest for an operand whose destination is the open directory dst.
 * *fd is -1 without the option. Returns 0 or -errno, reported. */
int link_dest_open(struct tree *, int dst, int *fd);
/* The directory `name` below it, or -1. */
int link_dest_enter(const struct directory *parent, const char *name);
/* Links the entry to its unchanged earlier copy. Returns 1 if it did, otherwise 0: with
 * options.reflink, *fd and *st are those of the earlier copy then, which is cloned. */
int link_dest_make(struct worker *, const struct entry *, int *fd, struct stat *st);

/* mirror.c: before the first entry of the operand that is merged into the open directory dst. */
void mirror_begin(struct tree *, const struct operand *, int dst);
/* Notes what a directory of DST has and its source lacks, when all of its entries are copied. */
void mirror_collect(struct worker *, struct directory *);
/* Removes an entry of DST that has another type than its source. Returns 0 or -errno, reported. */
int mirror_remove_conflict(struct worker *, const struct entry *, const struct stat *old);
/* After the last entry: removes what was noted, and flushes DST. */
void mirror_end(struct tree *, struct directory *root);
/* Is it the marker of a mirror, which is never copied? */
bool mirror_is_marker(const struct entry *);

#endif
