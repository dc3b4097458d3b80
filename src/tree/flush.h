/* SPDX-License-Identifier: MIT
 *
 * Flushes what was copied.
 */
#ifndef TREE_FLUSH_H
#define TREE_FLUSH_H

#include "tree.h"

/* Must the copy below this directory be flushed entry by entry to be durable? */
bool flush_needs_each(const struct tree *, int dst);
/* How is the copy below this directory flushed? whole: it is a new tree. */
enum flushing flush_find(const struct tree *, int dst, bool whole);
/* Flushes a complete directory below the operand's if so, and a file system that is mounted there.
 * Returns 0 or -errno with the call. */
int flush_directory(struct tree *, struct directory *, const char **call);
/* Flushes the rest when everything below the operand's directory is complete. each: every entry was
 * flushed. Returns 0 or -errno with the call. */
int flush_tree(int fd, bool each, const char **call);
/* Is all that was copied below this directory on the disk now? Flushes it if need be. */
bool flush_all(const struct tree *, int dst);
/* Writes back what is cached of a file system, as far as syncfs(2) does. Returns 0 or -errno. */
int flush_page_cache(int fd);
/* Flushes the links and special files that single operands made in this directory, a descriptor.
 * Returns 0 or -errno with the call. */
int flush_singles(struct tree *, int directory, const char **call);

#endif
