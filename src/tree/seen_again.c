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

int seen_again(struct worker *w, const struct entry *e, int fd, const struct stat *st, int tries)
{
	const enum fcopy_update update = w->tree->options->update;
	if (tries >= TRIES)
		return report_refusal(w, e, entry_dst, EEXIST,
				      "is replaced by other processes again and again");
	displace_end(w, e, w->displaced, -EEXIST); /* the backup is not of what is there now */
	*w->displaced = (struct displaced){.linked = false};
	w->seen = (struct seen){.asked = false};
	int r = update == FCOPY_UPDATE_CHANGED ? 0 : update_leave(w, e, fd, st);
	return r != 0 ? r : displace_begin(w, e, w->displaced);
}
