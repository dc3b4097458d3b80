/* SPDX-License-Identifier: MIT
 *
 * What is known of an entry, and what follows from it: looks at its name in DST once, decides, and
 * carries out what changes no name.
 */
#ifndef TREE_FACTS_H
#define TREE_FACTS_H

#include "tree.h"

/* Beside the results in hard_link.h: the name has got something else since it was looked at. */
#define SEEN_ANOTHER 7

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
/* facts_again.c: after SEEN_ANOTHER: looks and decides again, and makes another backup. tries: how
 * often that was done for this entry. Returns whether it is to be made; if not, the outcome is
 * known. */
bool facts_again(struct worker *, const struct entry *, int fd, const struct stat *, int tries);

#endif
