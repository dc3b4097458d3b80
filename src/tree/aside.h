/* SPDX-License-Identifier: MIT
 *
 * Entries of directories in which another user can exchange names: made in a private directory, and
 * then renamed.
 */
#ifndef TREE_ASIDE_H
#define TREE_ASIDE_H

#include "endpoints/slot.h"
#include "tree.h"

/* How one call makes an entry that is no file with bytes. */
struct making {
	const char *call; /* that one */
	slot_maker *make;
	/* Makes it complete before it gets its name: gives it its attributes, or opens it. Returns
	 * 0, or -errno with the call. NULL: it is complete. */
	int (*complete)(int dir, const char *name, void *arg, const char **call);
	bool whole; /* the call alone makes it, of an inode that is known: under its final name,
		     * nobody can exchange it before it is complete */
	void *arg;  /* of both */
};

/* Can a user other than root and this one rename what is in the destination of this directory? Not
 * below a private directory. */
bool aside_is_needed(struct tree *, struct directory *);
/* May a complete copy in this directory have been exchanged by another user: in the directory, or
 * on the way to it? */
bool aside_may_move(struct tree *, struct directory *);

/* Makes the entry in a slot: in a private directory, where another user could exchange its name;
 * under a drawn name, if it replaces another entry; or under its name. Returns 0; -EEXIST: the name
 * exists, and `replace` is false; SEEN_ANOTHER: something else than an option has seen has the
 * name; or -errno with the call; then nothing is left of what was made but under its final name. A
 * backup that decide() wants is made with the rename; the caller holds rivals_lock() then.
 *
 * Where a rename out of the private directory is refused, as under Landlock, it is made beside it;
 * not for root: the owner of the directory could make the rename fail. Where no rename replaces an
 * entry, --inplace makes it under its final name. */
int aside_make(struct worker *, const struct entry *, const struct making *, bool replace,
	       const char **call);
/* Removes this thread's private directory, if there is one: its directory may be closed next. */
void aside_end(struct worker *);

#endif
