/* SPDX-License-Identifier: MIT
 *
 * Names that differ only in case: where a file system ignores case, they may be one entry. The list
 * of a directory shows whether two of its names are: it does not have both then. Names that differ
 * only in Unicode normalisation are not recognised.
 */
#ifndef ENDPOINTS_CASE_H
#define ENDPOINTS_CASE_H

#include "storage.h"

/* Are the names, or paths, equal, ignoring case? */
bool case_is_equal(const char *a, const char *b);
/* Returns a hash of the path, ignoring case; never 0. */
uint64_t case_hash(const char *path);
/* Does the directory have the name, but not list both this and another spelling of it? */
bool case_is_one(int dir, const char *name);
/* The same for each name of the absolute path on its file system: the other spelling may differ in
 * any. Changes the path. */
bool case_is_one_at(char path[PATH_MAX]);
/* Are the absolute paths equal, or is one inside the other, because two spellings are one entry? */
bool case_paths_relate(const char *first, const char *second, bool *equal);
/* Is `as` in the directory dst another spelling of `name` in src, or of what is open as src if
 * `name` is empty? Only on FUSE, where the inode numbers of both may differ. src_dev, dst_dev: the
 * st_dev of both. */
bool case_is_source(struct storage *, int src, const char *name, dev_t src_dev, int dst,
		    const char *as, dev_t dst_dev);

#endif
