/* SPDX-License-Identifier: MIT
 *
 * Merges that leave entries alone.
 */
#ifndef TREE_UPDATE_H
#define TREE_UPDATE_H

#include "endpoints/attributes.h"
#include "tree.h"

/* Is it certain, before the source is opened, that the entry is an unchanged file? Then this is its
 * outcome. */
bool update_is_untouched(struct worker *, const struct entry *);
/* Has DST the same content? w->facts are known; fd is the open source, or -1 for a symlink or a
 * special file. Returns 1, with *dst open for update_leave(); 0; or -errno, reported. */
int update_is_equal(struct worker *, const struct entry *, int fd, int *dst);
/* It has: sets the attributes that differ, and closes dst. Returns 1; 0: the entry must be replaced
 * for that; or -errno, reported. */
int update_leave(struct worker *, const struct entry *, int fd, int dst);
/* Is old not older than the source? */
bool update_keeps(const struct tree *, const struct entry *, const struct stat *,
		  const struct stat *old);

/* Links to unchanged files of an earlier copy. */

/* Opens options.link_dest, the counterpart of DST, for the open directory dst: with a name, the
 * directory of this name if the copy goes into DST. *fd is -1 without the option, or, after a
 * warning, if there is none. Returns 0 or -errno, reported. */
int link_dest_open(struct tree *, int dst, const char *name, int *fd);
/* The directory `name` below it, or -1. */
int link_dest_enter(const struct directory *parent, const char *name);
/* Opens the earlier copy, if it is unchanged and has the attributes that a copy would get. Returns
 * a descriptor, or -1. */
int link_dest_find(const struct worker *, const struct entry *, int fd, const struct stat *);
/* Is it what has the name in DST? Of a file whose facts are known, open as fd. */
bool link_dest_is_made(struct worker *, const struct entry *, int fd);

/* The attributes of an entry's copy. */

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

/* What is known of an entry, and what follows from it: looks at its name in DST once, decides, and
 * carries out what changes no name. */

/* Finds w->facts of the entry, whose source has this stat. */
void facts_find(struct worker *, const struct entry *, const struct stat *);
/* Sets w->decision. fd: the open source, or -1. Returns whether the outcome is known: the entry is
 * left alone, or refused. Otherwise it is to be made. */
bool facts_decide(struct worker *, const struct entry *, int fd);

/* Of a dry run: would the copy write to DST, a device? That of a single file does. */
bool facts_write_device(const struct tree *);
/* Finds w->place, where the copy of a file goes, unless it is known. Returns 0, or -errno with the
 * refusal recorded. */
int facts_place(struct worker *, const struct entry *, struct fcopy_error *);

/* Is what has the name now what may be replaced? old NULL: nothing has it. */
bool facts_allow(const struct worker *, const struct entry *, const struct stat *old);
/* The same after a look. */
bool facts_still_allow(const struct worker *, const struct entry *);
/* The name was absent, and is not any more. */
static inline bool facts_are_old(const struct worker *w)
{
	return w->facts.looked && !w->decision.replaces;
}
/* facts_again.c: after RESULT_TAKEN: looks and decides again, and makes another backup. tries: how
 * often that was done for this entry. Returns whether it is to be made; if not, the outcome is
 * known. */
bool facts_again(struct worker *, const struct entry *, int fd, const struct stat *, int tries);

#endif
