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
/* Opens the earlier copy, if it is unchanged and has the attributes that a copy would get. Returns
 * a descriptor, or -1. */
int link_dest_find(const struct worker *, const struct entry *, int fd, const struct stat *);
/* Is it what has the name in DST? Of a file whose facts are known, open as fd. */
bool link_dest_is_made(struct worker *, const struct entry *, int fd);

#endif
