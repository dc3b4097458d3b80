/* SPDX-License-Identifier: MIT
 *
 * Names of one inode of the source.
 */
#ifndef TREE_LINKS_H
#define TREE_LINKS_H

#include "tree.h"

/* Hard links. */
struct links *links_new(void);
void links_free(struct links *);
/* May another name of this inode be in the tree? Where symlinks are followed, a file may have any
 * number of names, as with cp -aL. */
static inline bool links_may_exist(const struct worker *w, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	return ground_links(&w->tree->root.ground, o) &&
	       (st->st_nlink > 1 || o->follow == FCOPY_FOLLOW_ALWAYS);
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
/* special.c: options.symbolic_link. A dry run ends before the first change. */
void symbolic_link_make(struct worker *, const struct entry *, const struct stat *);
/* special.c: options.attributes_only, for a regular file that is open. */
void attributes_only(struct worker *, const struct entry *, int src, const struct stat *);
/* A copy would fail as well, or hide the failure. Any other errno means that this file or file
 * system cannot have the link: EMLINK, EPERM (vfat), EXDEV (a mount point in DST). */
bool hard_link_is_failure(int err);

#endif
