/* SPDX-License-Identifier: MIT
 *
 * Links to unchanged files of an earlier copy.
 */
#ifndef TREE_LINK_DEST_H
#define TREE_LINK_DEST_H

#include "tree.h"

/* Opens options.link_dest, the counterpart of DST, for the open directory dst: with a name, the
 * directory of this name if the copy goes into DST. *fd is -1 without the option, or, after a
 * warning, if there is none. Returns 0 or -errno, reported. */
int link_dest_open(struct tree *, int dst, const char *name, int *fd);
/* The directory `name` below it, or -1. */
int link_dest_enter(const struct directory *parent, const char *name);
/* Is the entry of DST that link already? Then its outcome is: unchanged. */
bool link_dest_is_made(struct worker *, const struct entry *, int fd, const struct stat *);
/* Links the entry to its unchanged earlier copy, or would. Returns 1 if its outcome is known,
 * otherwise 0: with options.reflink, *fd and *st are those of the earlier copy then, which is
 * cloned. */
int link_dest_make(struct worker *, const struct entry *, int *fd, struct stat *st);

#endif
