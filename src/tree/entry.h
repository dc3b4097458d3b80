/* SPDX-License-Identifier: MIT
 *
 * One name in a directory of SRC: what is known of it, what is left alone, what it becomes.
 */
#ifndef TREE_ENTRY_H
#define TREE_ENTRY_H

#include "endpoints/attributes.h"
#include "tree.h"

/* Copies one name, whatever it is. Returns its outcome, which was counted and sent if it is final.
 */
struct outcome entry_copy(struct worker *, const struct entry *);

/* A regular file: regular.c. */

/* Copies it: it is open, with this fstat; closes fd. */
void regular_copy(struct worker *, const struct entry *, int fd, const struct stat *);
/* Of a dry run: reports what would refuse the copy only when DST is opened. */
void regular_rehearse(struct worker *, const struct entry *, const struct stat *);

/* Merges that leave entries alone: update.c. */

/* Is it certain, before the source is opened, that the entry is an unchanged file? Then this is its
 * outcome. */
bool update_is_untouched(struct worker *, const struct entry *);
/* Has DST the same content? w->work.facts are known; fd is the open source, or -1 for a symlink or
 * a special file. Returns 1, with *dst open for update_leave(); 0; or -errno, reported. */
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
/* Gives it all attributes that are to be preserved, by descriptors of files or directories.
 * exposed: dst was there. */
int preserve_open(struct worker *, const struct entry *, int src, int dst, const struct stat *,
		  bool exposed);
/* An attribute that could not be set. Returns 0 after a warning; or -errno if it is required, or if
 * it is lost because the storage fails; reported. */
int preserve_lose(struct worker *, const struct entry *, unsigned which,
		  const struct fcopy_error *);

/* What is known of an entry, and what follows from it: looks at its name in DST once, decides, and
 * carries out what changes no name. facts.c. */

/* Finds w->work.facts of the entry, whose source has this stat. */
void facts_find(struct worker *, const struct entry *, const struct stat *);
/* Sets w->work.decision. fd: the open source, or -1. Returns whether the outcome is known: the
 * entry is left alone, or refused. Otherwise it is to be made. */
bool facts_decide(struct worker *, const struct entry *, int fd);

/* Of a dry run: would the copy write to DST, a device? That of a single file does. */
bool facts_write_device(const struct tree *);
/* Finds w->work.place, where the copy of a file goes, unless it is known. Returns 0, or -errno with
 * the refusal recorded. */
int facts_place(struct worker *, const struct entry *, struct fcopy_error *);

/* Is what has the name now what may be replaced? old NULL: nothing has it. */
bool facts_allow(const struct decision *, const struct entry *, const struct stat *old);
/* Looks at what has the name now, and asks that. */
bool facts_still_allow(const struct decision *, const struct entry *);
/* The name was absent, and is not any more. */
static inline bool facts_are_old(const struct entry_work *x)
{
	return x->facts.looked && !x->decision.replaces;
}
/* After RESULT_TAKEN: something else has got the name of the entry in DST since it was looked at.
 * Looks and decides again, so that nothing is replaced that no option has seen, and makes another
 * backup. claimed: the file that the copy was to replace, which this entry has claimed; NULL: it
 * has none. tries: how often that was done for this entry. Returns whether it is to be made; if
 * not, the outcome is known. */
bool facts_again(struct worker *, const struct entry *, int fd, const struct stat *,
		 const struct stat *claimed, int tries);

/* Names of one inode of the source. */

/* Hard links. */
struct links *links_new(void);
void links_free(struct links *);
/* May another name of this inode be in the tree? Where symlinks are followed, a file may have any
 * number of names, as with cp -aL. */
static inline bool links_may_exist(const struct worker *w, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	return (st->st_nlink > 1 || o->follow == FCOPY_FOLLOW_ALWAYS) &&
	       ground_links(&w->tree->root.ground, o);
}
/* A complete copy of the inode. */
struct copied {
	struct directory *dir; /* NULL: it is open as `at`, and private */
	int at;
	const char *name;
	struct identity made;
};
/* Of a file with several names in SRC: is its copy there? */
enum name_state {
	NAME_FIRST, /* not begun: this name is copied, or left as it is; then links_done() is called
		     */
	NAME_WAITS, /* begun by another thread, which copies this name next */
	NAME_COPIED, /* complete: links_use() is called */
	NAME_TWICE   /* it is, or gets, this very name: nothing is done */
};
/* Of an entry whose st_nlink is above 1, before anything is displaced for it. NAME_COPIED: *copied
 * is where, with its name in name[NAME_MAX + 1]; the caller lets its directory go. */
enum name_state links_claim(struct worker *, const struct entry *, const struct stat *,
			    struct copied *, char *name);
/* Makes the entry a link to the copy. Returns false if the outcome is known, otherwise true: as for
 * the first name. */
bool links_use(struct worker *, const struct entry *, const struct stat *, const struct copied *);
/* The copy that links_claim() asked for is complete or failed. Returns the names that waited for
 * it: the caller copies each like any entry, frees it, and releases its directory. */
struct waiter {
	struct waiter *next;
	struct directory *dir; /* held, and pending */
	char name[];
};
struct waiter *links_done(struct worker *, const struct entry *, const struct stat *,
			  bool complete);

/* Makes hard links. */

/* Gives a copy the entry's name, too. Returns 0; RESULT_SAME: with options.update, or in a part;
 * RESULT_RIVAL; RESULT_KNOWN: DST has got another entry since; or -errno with the call: then the
 * entry has to be copied. -EEXIST: the link may not replace what is there. -ELOOP: one of the two
 * names is a symlink of an existing tree, which a copy follows. -ESTALE: another user may have
 * given the copy's name to another inode. */
int hard_link_make(struct worker *, const struct entry *, const struct stat *,
		   const struct copied *, struct failure *);
/* options.link_dest: links the entry to its unchanged earlier copy, or would. Returns RESULT_KNOWN,
 * or 0: with options.reflink, *fd and *st are those of the earlier copy then, which is cloned. */
int hard_link_dest(struct worker *, const struct entry *, int *fd, struct stat *st);
/* options.link: makes the entry another name of the source, which is open as fd, or is no regular
 * file. */
void hard_link_source(struct worker *, const struct entry *, int fd, const struct stat *);
/* A copy would fail as well, or hide the failure. Any other errno means that this file or file
 * system cannot have the link: EMLINK, EPERM (vfat), EXDEV (a mount point in DST). */
bool hard_link_is_failure(int err);

/* What is made without the bytes of a source: special.c. */

/* A symlink, FIFO, socket or device. */
void special_copy(struct worker *, const struct entry *, const struct stat *);
/* options.symbolic_link. A dry run ends before the first change. */
void symbolic_link_make(struct worker *, const struct entry *, const struct stat *);
/* options.attributes_only, for a regular file that is open. */
void attributes_only(struct worker *, const struct entry *, int src, const struct stat *);

#endif
