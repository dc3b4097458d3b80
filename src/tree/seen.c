/* SPDX-License-Identifier: MIT
 * Implements seen.h.
 */
#define _GNU_SOURCE
#include "seen.h"
#include "endpoints/exchange.h"

#include <errno.h>
#include <fcntl.h>

void seen_note(struct worker *w, const struct stat *old)
{
	w->seen = (struct seen){.asked = true, .exists = old != NULL};
	if (old)
		w->seen.st = *old;
}

bool seen_is(const struct worker *w, const struct entry *e, const struct stat *now)
{
	if (!w->seen.asked)
		return true;
	if (!now || !w->seen.exists)
		return !now; /* what is gone is not lost by this copy */
	return exchange_is_same(e->dir->dst, now, &w->seen.st);
}

bool seen_is_there(const struct worker *w, const struct entry *e)
{
	struct stat now;
	if (!w->seen.asked)
		return true;
	return seen_is(w, e,
		       fstatat(e->dir->dst, e->as, &now, AT_SYMLINK_NOFOLLOW) == 0 ? &now : NULL);
}
