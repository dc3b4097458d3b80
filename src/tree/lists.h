/* SPDX-License-Identifier: MIT
 *
 * Lists of the names of directories, kept by directory. With --parents, each SRC has a separate
 * struct directory, even if they mean one directory of DST: that is read once.
 */
#ifndef TREE_LISTS_H
#define TREE_LISTS_H

#include "source/names.h"

/* *lists is NULL at first. dir: the directory that the list is of. Keeps *list, and sets it to
 * NULL; or leaves it where it is, if the directory has one already, or there is no memory. */
void lists_keep(void **lists, int dir, struct name_list **list);
/* Returns the list of the directory, which is not kept any more; NULL: there is none. */
struct name_list *lists_take(void **lists, int dir);
void lists_free(void **lists);

#endif
