/* SPDX-License-Identifier: MIT
 *
 * What becomes of an entry of DST that a copy replaces, as the options of cp(1) say:
 * options.confirm is asked, options.backup gives it another name, options.remove_destination
 * replaces it whatever it is.
 */
#ifndef TREE_DISPLACE_H
#define TREE_DISPLACE_H

#include "mirror_remove.h"

/* The other name that an entry of DST got. */
struct displaced {
	bool linked, moved; /* it has both names; it has only the other one */
	bool asked;         /* options.confirm has allowed it */
	char name[NAME_MAX + 1];
	char
	    older[TEMPORARY_SIZE]; /* what had that name before, until the copy ends; empty: none */
	struct cleared cleared;    /* by a mirror */
};

/* Is a backup all that the options want of what is replaced? */
static inline bool displace_only(const struct tree *t)
{
	return t->options->backup && !t->options->confirm && !t->options->update;
}

/* Asks, clears and makes the backup, as w->decision says. Returns false if the outcome is known:
 * the entry of DST is skipped, or its backup has failed. */
bool displace_begin(struct worker *, const struct entry *, struct displaced *);
/* The copy has replaced another entry than the one of which displace_begin() has made a backup: it
 * is `name` in dir now, and becomes a backup, too. Returns 0; or -errno with the call, and that one
 * has its own name again; -ENOTRECOVERABLE: it is still `name`. */
int displace_another(struct worker *, const struct entry *, int dir, const char *name,
		     const char **call);
/* The copy has ended: unless it was made, the entry gets its old name back, and only that. If
 * something else has the name, the backup stays. */
void displace_end(struct worker *, const struct entry *, struct displaced *, bool made);
/* The entry is looked at again: there is no backup yet, even if something else has the name. */
void displace_withdraw(struct worker *, const struct entry *, struct displaced *);
/* Does options.confirm, if there is one, allow to replace the entry? If not, it is skipped. */
bool displace_may(struct worker *, const struct entry *);

#endif
