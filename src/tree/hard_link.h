/* SPDX-License-Identifier: MIT
 *
 * Makes hard links.
 */
#ifndef TREE_HARD_LINK_H
#define TREE_HARD_LINK_H

#include "tree.h"

/* Beside 0, -errno, ENDPOINT_RIVAL and SEEN_ANOTHER. */
#define HARD_LINK_SAME  4 /* it is that link already: with options.update, or in a part */
#define HARD_LINK_NEW   5 /* the name did not exist */
#define HARD_LINK_KNOWN 6 /* DST has got another entry since: the outcome is known */
/* Gives a copy the entry's name, too. Returns 0, or -errno with the call: then the
 * entry has to be copied. -EEXIST: the link may not replace what is there. ENDPOINT_RIVAL: that is
 * the copy of another entry. -ELOOP: one of the two names is a symlink of an existing tree, which a
 * copy follows. -ESTALE: another user may have given the copy's name to another inode. */
struct copied {
	struct directory *dir; /* NULL: it is open as `at`, and private */
	int at;
	const char *name;
	struct identity made;
};
int hard_link_make(struct worker *, const struct entry *, const struct stat *,
		   const struct copied *, const char **call);
/* options.link_dest: links the entry to its unchanged earlier copy, or would. Returns 1 if its
 * outcome is known, otherwise 0: with options.reflink, *fd and *st are those of the earlier copy
 * then, which is cloned. */
int hard_link_dest(struct worker *, const struct entry *, int *fd, struct stat *st);
/* options.link: makes the entry another name of the source, which is open as fd, or is no regular
 * file. */
void hard_link_source(struct worker *, const struct entry *, int fd, const struct stat *);
/* symbolic_link.c: options.symbolic_link. A dry run ends before the first change. */
void symbolic_link_make(struct worker *, const struct entry *, const struct stat *);
/* attributes_only.c: options.attributes_only, for a regular file that is open. */
void attributes_only(struct worker *, const struct entry *, int src, const struct stat *);
/* A copy would fail as well, or hide the failure. Any other errno means that this file or file
 * system cannot have the link: EMLINK, EPERM (vfat), EXDEV (a mount point in DST). */
bool hard_link_is_failure(int err);

#endif
