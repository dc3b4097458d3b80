/* SPDX-License-Identifier: MIT
 *
 * One name of a directory.
 */
#ifndef TREE_ENTRY_H
#define TREE_ENTRY_H

#include "tree.h"

/* Copies one name, whatever it is. Returns its outcome, which was counted and sent if it is final.
 */
struct outcome entry_copy(struct worker *, const struct entry *);

#endif
