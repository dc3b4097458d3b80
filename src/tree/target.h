/* SPDX-License-Identifier: MIT
 *
 * The name that the copy of an operand gets, between tree.c and target.c.
 */
#ifndef TREE_TARGET_H
#define TREE_TARGET_H

#include "tree.h"

/* A destination: a name in an open directory. */
struct target {
	bool into; /* the copy is DST/basename(SRC) */
	int parent;
	char name[NAME_MAX + 1];
	/* The parent's path, for messages; empty: the working directory. */
	char directory[PATH_MAX];
	char path[PATH_MAX];
};

/* Copies the directory part of a path, with its slash, and opens it: a descriptor, or -errno. */
int target_open_parent(const char *path, char directory[PATH_MAX]);
/* Finds the name for the copy of src and opens its directory, which the caller closes. Reads
 * target->into. Returns 0 or -errno, reported. */
int target_find(struct tree *, struct target *, const char *src, const char *dst);
/* Did an earlier operand create what this one would replace? Then their names differ only in case.
 */
bool target_was_made(const struct tree *, const struct target *);
/* Records an operand's copy for target_was_made. */
void target_note_made(struct tree *, const struct target *);

#endif
