/* SPDX-License-Identifier: MIT
 * Counts outcomes. Sums, differences, --stats and the JSON objects are loops over this table.
 */
#include "outcome.h"

#define ROW(count, key, label, unit, sums) [FCOPY_COUNT_##count] = {key, label, FCOPY_UNIT_##unit},

static const struct fcopy_count_row outcome_rows[FCOPY_COUNTS] = {OUTCOME_COUNTS(ROW)};

const struct fcopy_count_row *fcopy_counts(void)
{
	return outcome_rows;
}

void outcome_take(struct outcome *o, const struct fcopy_report *r, bool complete)
{
	o->changed = r->source_changed;
	if (!complete)
		return;
	o->replaced = r->existed;
	o->bytes = r->bytes;
	o->data = r->data;
	o->holes = r->holes;
	o->resumed = r->resumed;
	o->cloned = r->cloned;
	const struct fcopy_step *most = outcome_main_step(r->step, r->steps);
	o->engine = most ? most->engine : NULL;
}

static enum fcopy_count outcome_count_of(mode_t type)
{
	switch (type) {
	case 0: /* a stream */
	case S_IFREG: return FCOPY_COUNT_FILES;
	case S_IFDIR: return FCOPY_COUNT_DIRECTORIES;
	case S_IFLNK: return FCOPY_COUNT_SYMLINKS;
	default: return FCOPY_COUNT_SPECIALS;
	}
}

void outcome_count(const struct outcome *o, uint64_t count[FCOPY_COUNTS])
{
	count[FCOPY_COUNT_CHANGED] += o->changed;
	switch (o->action) {
	case FCOPY_ACTION_COPIED:
		count[outcome_count_of(o->type)] += !o->rest;
		count[FCOPY_COUNT_BYTES] += o->bytes;
		count[FCOPY_COUNT_DATA] += o->data;
		count[FCOPY_COUNT_HOLES] += o->holes;
		count[FCOPY_COUNT_RESUMED] += o->resumed;
		count[FCOPY_COUNT_CLONED] += o->cloned;
		break;
	case FCOPY_ACTION_UNCHANGED:
		count[o->reused ? FCOPY_COUNT_REUSED : FCOPY_COUNT_UNCHANGED]++;
		count[FCOPY_COUNT_RESUMED] += o->resumed;
		break;
	case FCOPY_ACTION_REPAIRED:
		count[FCOPY_COUNT_UNCHANGED]++;
		count[FCOPY_COUNT_REPAIRED]++;
		break;
	case FCOPY_ACTION_SKIPPED: count[FCOPY_COUNT_SKIPPED]++; break;
	case FCOPY_ACTION_LINKED: count[FCOPY_COUNT_HARD_LINKS]++; break;
	case FCOPY_ACTION_EXCLUDED: count[FCOPY_COUNT_EXCLUDED]++; break;
	case FCOPY_ACTION_DELETED: count[FCOPY_COUNT_DELETED]++; break;
	case FCOPY_ACTION_VANISHED: count[FCOPY_COUNT_VANISHED]++; break;
	case FCOPY_ACTION_FAILED: count[FCOPY_COUNT_FAILED]++; break;
	}
}
