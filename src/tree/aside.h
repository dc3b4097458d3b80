/* SPDX-License-Identifier: MIT
 *
 * Entries of directories in which another user can exchange names: made in a private directory, and
 * then renamed.
 */
#ifndef TREE_ASIDE_H
#define TREE_ASIDE_H

#include "tree.h"

/* Where an entry is to be made: under its name, or in a private directory. */
struct making {
	int dir;
	const char *name;
	bool aside;
};

/* Can a user other than root and this one rename what is in the destination of this directory? Not
 * below a private directory. */
bool aside_is_needed(struct tree *, struct directory *);
/* May a complete copy in this directory have been exchanged by another user: in the directory, or
 * on the way to it? */
bool aside_may_move(struct tree *, struct directory *);

/* Says where to make the entry. Returns 0, or -errno with the failed call. */
int aside_begin(struct worker *, const struct entry *, struct making *, const char **call);
/* Gives an entry that was made aside its name. Returns 0; -EEXIST: the name exists, and `replace`
 * is false; or -errno with the call. A failure leaves the entry aside: finish again or abort.
 * It replaces only what an option has seen, or returns SEEN_ANOTHER. */
int aside_finish(struct worker *, const struct making *, const struct entry *, bool replace,
		 const char **call);
/* Removes it, after the failure r. */
void aside_abort(const struct making *, int r);
/* Can a rename out of the private directory not work here, as under Landlock? Then aborts; the
 * caller begins again, under the entry's name. Root never does that: the owner of the directory
 * could make the rename fail. */
bool aside_is_refused(const struct making *, const struct entry *, int r);
/* Removes this thread's private directory, if there is one: its directory may be closed next. */
void aside_end(struct worker *);

#endif
