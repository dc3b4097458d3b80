/* SPDX-License-Identifier: MIT
 * Something else has got the name of an entry in DST since an option looked there: it is asked
 * again, so that nothing is replaced that it has not seen.
 */
#define _GNU_SOURCE
#include "displace.h"
#include "report.h"
#include "seen.h"
#include "update.h"

#include <errno.h>

#define TRIES 100

bool seen_again(struct worker *w, const struct entry *e, int fd, const struct stat *st, int tries)
{
	const enum fcopy_update update = w->tree->options->update;
	if (tries >= TRIES) {
		report_refusal(w, e, entry_dst, EEXIST,
			       "is replaced by other processes again and again");
		return false;
	}
	displace_withdraw(w, e, w->displaced); /* the backup is not of what is there now */
	*w->displaced = (struct displaced){.linked = false};
	w->seen = (struct seen){.asked = false};
	if (update != FCOPY_UPDATE_CHANGED && update_leave(w, e, fd, st))
		return false;
	return displace_begin(w, e, w->displaced);
}
