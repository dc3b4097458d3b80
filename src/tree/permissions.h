/* SPDX-License-Identifier: MIT
 *
 * The permissions of new directories.
 */
#ifndef TREE_PERMISSIONS_H
#define TREE_PERMISSIONS_H

#include "tree.h"

/* The permissions that mkdir(2) left of 0777 below this directory, or leaves. */
mode_t permissions_left(const struct tree *, int fd);
/* Gives the owner all of S_IRWXU of a new directory. Returns the bits that it lacked, or -errno. */
int permissions_admit_owner(int parent, const char *name);
/* Sets the mode of an open directory, unless it has it: fchmod(2) clears setgid for a user outside
 * the group. Returns 0 or -errno. */
int permissions_set(int fd, mode_t mode);
/* A mode that no option asked for could not be set. Is that only because the file system has no
 * chmod(2), or no modes? Anything else deserves a warning. */
bool permissions_are_fixed(int err);
/* Do new directories have mode 0700 until their owner and ACL are set? In an existing tree other
 * users could open them. */
bool permissions_are_hidden(const struct tree *);

#endif
