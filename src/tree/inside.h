/* SPDX-License-Identifier: MIT
 *
 * Is DST below SRC?
 */
#ifndef TREE_INSIDE_H
#define TREE_INSIDE_H

#include <stdbool.h>

/* The list of mounts, which is read when it is needed, and again after each change. */
struct mounts;
struct mounts *mounts_new(void); /* NULL: no memory */
void mounts_free(struct mounts *);

/* Is dst inside src, or in a file system mounted below it? Finds what bind mounts hide; false if
 * that is unknown. Both are descriptors of directories. Thread-safe. Takes time in proportion to
 * the depth of dst, and for the first dst of each src to the mounts below src. */
bool inside_by_mount(struct mounts *, int src, int dst, bool one_file_system);

#endif
