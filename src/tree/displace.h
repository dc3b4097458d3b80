/* SPDX-License-Identifier: MIT
 *
 * What becomes of an entry of DST that a copy replaces, as the options of cp(1) say:
 * options.confirm is asked, options.backup gives it another name, options.remove_destination
 * replaces it whatever it is. The name of a backup is chosen here; the commit makes it (slot.h).
 */
#ifndef TREE_DISPLACE_H
#define TREE_DISPLACE_H

#include "endpoints/slot.h"
#include "mirror.h"
#include "tree.h"

struct displaced {
	struct backup backup;
	struct cleared cleared; /* by a mirror */
	struct worker *worker;  /* of the backup: whose copy, and of which entry */
	const struct entry *entry;
};

/* Nothing is displaced yet. */
static inline void displace_none(struct displaced *d)
{
	d->backup.name[0] = d->cleared.name[0] = '\0';
	d->backup.left = 0;
	d->backup.any = false;
}

/* Asks, clears and chooses the name of the backup, as w->decision says. Returns false if the
 * outcome is known: the entry of DST is skipped, or can have no backup. */
bool displace_begin(struct worker *, const struct entry *, struct displaced *);
/* Is anything left to be done when the copy has ended? */
static inline bool displace_ends(const struct displaced *d)
{
	return d->backup.left || d->cleared.name[0];
}

/* The copy has ended: unless it was made, what a mirror cleared gets its name back. */
void displace_end(struct worker *, const struct entry *, struct displaced *, bool made);
/* Does options.confirm, if there is one, allow to replace the entry? If not, it is skipped. */
bool displace_may(struct worker *, const struct entry *);

/* Entries of directories in which another user can exchange names: made in a private directory, and
 * then renamed. */

/* How one call makes an entry that is no file with bytes. */
struct making {
	const char *call; /* that one */
	slot_maker *make;
	/* Makes it complete before it gets its name: gives it its attributes, or opens it. Returns
	 * 0, or -errno with the call. NULL: it is complete. */
	int (*complete)(int dir, const char *name, void *arg, struct failure *);
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
 * exists, and `replace` is false; RESULT_TAKEN: something else than an option has seen has the
 * name; or -errno with the call; then nothing is left of what was made but under its final name. A
 * backup that decide() wants is made with the rename; the caller holds rivals_lock() then.
 *
 * Where a rename out of the private directory is refused, as under Landlock, it is made beside it;
 * not for root: the owner of the directory could make the rename fail. Where no rename replaces an
 * entry, --inplace makes it under its final name. */
int aside_make(struct worker *, const struct entry *, const struct making *, bool replace,
	       struct failure *);
/* In place of what has the name, which is claimed first: no other entry replaces it. An entry that
 * stays there can be claimed again. Returns as aside_make(), or RESULT_RIVAL: another entry has
 * it. The caller holds rivals_lock(). */
int aside_replace(struct worker *, const struct entry *, const struct making *, struct failure *);
/* Removes this thread's private directory, if there is one: its directory may be closed next. */
void aside_end(struct worker *);

#endif
