/* SPDX-License-Identifier: MIT
 *
 * What an option allows to be replaced: what it has seen in DST before the copy, and nothing that
 * has got the name since.
 */
#ifndef TREE_SEEN_H
#define TREE_SEEN_H

#include "tree.h"

/* Of functions that give an entry its name, beside the results in hard_link.h: something else than
 * was seen has it now. */
#define SEEN_ANOTHER 7

/* Notes what is in DST; old NULL: nothing. */
void seen_note(struct worker *, const struct stat *old);
/* Is what the name leads to now, without following a symlink, what was seen? Also if nobody asked.
 */
bool seen_is_there(const struct worker *, const struct entry *);
/* The same for a stat; NULL: there is nothing. */
bool seen_is(const struct worker *, const struct entry *, const struct stat *now);
/* What may be replaced; NULL: anything, if nobody asked. Otherwise there was nothing. */
static inline const struct stat *seen_replaces(const struct worker *w)
{
	return w->seen.asked && w->seen.exists ? &w->seen.st : NULL;
}
/* seen_again.c: after SEEN_ANOTHER, asks the options again, makes another backup, and notes what is
 * there. tries: how often that was done for this entry. Returns whether it may be
 * replaced; if not, the outcome is known. */
bool seen_again(struct worker *, const struct entry *, int fd, const struct stat *, int tries);

#endif
