/* SPDX-License-Identifier: MIT
 *
 * The operands of a tree.
 */
#ifndef TREE_OPERANDS_H
#define TREE_OPERANDS_H

#include "tree.h"

/* Looks all operands up: t->operand, t->operands and t->destination. Returns 0, or
 * -errno, reported. */
int operands_find(struct tree *, const char *const *src, size_t n, const char *dst);
/* Checks operands and options before anything is created. Returns 0, or -errno, reported. */
int operands_check(struct tree *);

#endif
