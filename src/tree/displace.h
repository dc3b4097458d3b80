/* SPDX-License-Identifier: MIT
 *
 * What becomes of an entry of DST that a copy replaces, as the options of cp(1) say:
 * options.confirm is asked, options.backup gives it another name, options.remove_destination
 * replaces it whatever it is. The name of a backup is chosen here; the commit makes it (backup.h).
 */
#ifndef TREE_DISPLACE_H
#define TREE_DISPLACE_H

#include "endpoints/backup.h"
#include "mirror_remove.h"

struct displaced {
	bool asked; /* options.confirm has allowed it */
	struct backup backup;
	struct cleared cleared; /* by a mirror */
	struct worker *worker;  /* of the backup: whose copy, and of which entry */
	const struct entry *entry;
};

/* Nothing is displaced yet. */
static inline void displace_none(struct displaced *d)
{
	d->asked = false;
	d->backup.name[0] = d->cleared.name[0] = '\0';
	d->backup.left = 0;
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

#endif
