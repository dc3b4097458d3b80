/* SPDX-License-Identifier: MIT
 * Something else has got the name of an entry in DST since it was looked at: decides again, so that
 * nothing is replaced that no option has seen.
 */
#define _GNU_SOURCE
#include "displace.h"
#include "report.h"
#include "update.h"

#include <errno.h>

#define TRIES 100

bool facts_again(struct worker *w, const struct entry *e, int fd, const struct stat *st, int tries)
{
	if (tries >= TRIES) {
		report_refusal(w, e, entry_dst, EEXIST,
			       "is replaced by other processes again and again");
		return false;
	}
	displace_end(w, e, w->displaced, false);
	place_close(&w->place);
	facts_find(w, e, st);
	w->facts.content = CONTENT_DIFFERS; /* it was compared */
	return !facts_decide(w, e, fd) && displace_begin(w, e, w->displaced);
}
