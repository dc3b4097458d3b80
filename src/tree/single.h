/* SPDX-License-Identifier: MIT
 *
 * A SRC that is not a directory. Both return 0, or -errno with the failure reported.
 */
#ifndef TREE_SINGLE_H
#define TREE_SINGLE_H

#include "tree.h"

/* A file, symlink or special file, as the one entry of a directory. */
int single_copy(struct tree *, const struct operand *src, const struct operand *to);
/* A stream, or a device or file whose bytes are wanted, as fcopy_copy() does. */
int single_copy_stream(struct tree *, const struct operand *src);

#endif
