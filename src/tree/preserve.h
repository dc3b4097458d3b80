/* SPDX-License-Identifier: MIT
 *
 * The attributes of an entry's copy.
 */
#ifndef TREE_PRESERVE_H
#define TREE_PRESERVE_H

#include "endpoints/attributes.h"
#include "tree.h"

/* Gives dst, of any type, the attributes of src that are to be preserved; of `which` only. Returns
 * 0, or -errno if one is lost that is required; reported. A file or directory gets the others
 * nevertheless; what the caller has just made, by_path, does not. */
int preserve_entry(struct worker *, const struct entry *, const struct xattr_file *src,
		   const struct xattr_file *dst, const struct stat *, unsigned which);
/* The same of all attributes, by descriptors of files or directories. */
int preserve_open(struct worker *, const struct entry *, int src, int dst, const struct stat *);
/* An attribute that could not be set. Returns 0 after a warning; or -errno if it is required, or if
 * it is lost because the storage fails; reported. */
int preserve_lose(struct worker *, const struct entry *, unsigned which,
		  const struct fcopy_error *);

#endif
