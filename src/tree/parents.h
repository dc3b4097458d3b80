/* SPDX-License-Identifier: MIT
 *
 * options.parents: the copy of a/b/SRC is DST/a/b/SRC.
 */
#ifndef TREE_PARENTS_H
#define TREE_PARENTS_H

#include "tree.h"

struct parents {
	bool preserves; /* directories that exist may get attributes, too */
	bool flushes;   /* with --fsync */
	bool made;      /* at least one is new */
	bool reads;     /* a call on the source is what fails */
	bool foreign;   /* a symlink of another user is what fails */
	bool absent;    /* a dry run: the rest of them would be made */
	size_t count;
	struct parent {
		int src, dst; /* descriptors */
		bool made;
	} * noted; /* the directories above the copy, from the outermost on */
};

/* Makes the directories above src in `to`, which names src in DST, and moves `to` below them; path
 * has PATH_MAX bytes for its path. A dry run makes none: if one is missing, `to` does not exist,
 * and to->place.dir is the last one that does. Returns 0, or -errno, reported; parents_end() in
 * either case. */
int parents_make(struct tree *, const struct operand *src, struct operand *to, char path[],
		 struct parents *);
/* Gives the directories the attributes that are preserved, and flushes the new ones. */
void parents_end(struct tree *, const struct operand *to, struct parents *);

#endif
