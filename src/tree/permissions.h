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
/* Sets the mode of an open directory in `parent`, unless it has it: fchmod(2) clears setgid for a
 * user outside the group. A file system that stores no modes returns EPERM:
 * this is no failure. Returns 0 or -errno. */
int permissions_set(int fd, int parent, mode_t mode);
/* Do new directories have mode 0700 until their owner and ACL are set? In an existing tree other
 * users could open them. */
bool permissions_are_hidden(const struct tree *);

#endif
