/* SPDX-License-Identifier: MIT
 * Counts outcomes. Sums, differences, --stats and the JSON objects are loops over this table.
 */
#include "outcome.h"

static const struct fcopy_count_row rows[FCOPY_COUNTS] = {
    [FCOPY_COUNT_FILES] = {"files", "files", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_DIRECTORIES] = {"directories", "directories", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_SYMLINKS] = {"symlinks", "symlinks", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_SPECIALS] = {"specials", "special files", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_HARD_LINKS] = {"hard_links", "hard links", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_SKIPPED] = {"skipped", "skipped", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_REUSED] = {"reused", "reused", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_UNCHANGED] = {"unchanged", "unchanged", FCOPY_UNIT_COPIES},
    [FCOPY_COUNT_REPAIRED] = {"repaired", "repaired", FCOPY_UNIT_ENTRIES},
    [FCOPY_COUNT_DELETED] = {"deleted", "deleted", FCOPY_UNIT_ENTRIES},
    [FCOPY_COUNT_EXCLUDED] = {"excluded", "excluded", FCOPY_UNIT_ENTRIES},
    [FCOPY_COUNT_VANISHED] = {"vanished", "vanished", FCOPY_UNIT_ENTRIES},
    [FCOPY_COUNT_CHANGED] = {"changed", "changed", FCOPY_UNIT_ENTRIES},
    [FCOPY_COUNT_CLONED] = {"cloned", "cloned", FCOPY_UNIT_ENTRIES},
    [FCOPY_COUNT_FAILED] = {"failed", "failed", FCOPY_UNIT_ENTRIES},
    [FCOPY_COUNT_BYTES] = {"bytes", "bytes", FCOPY_UNIT_BYTES},
    [FCOPY_COUNT_DATA] = {"data", "data", FCOPY_UNIT_BYTES},
    [FCOPY_COUNT_HOLES] = {"holes", "holes", FCOPY_UNIT_BYTES},
    [FCOPY_COUNT_RESUMED] = {"resumed", "resumed", FCOPY_UNIT_BYTES},
};

const struct fcopy_count_row *fcopy_counts(void)
{
	return rows;
}

static const char *main_engine(const struct fcopy_step *step, size_t n)
{
	const struct fcopy_step *most = NULL;
	for (; n > 0; n--, step++)
		if (step->bytes > 0 && (!most || step->bytes > most->bytes))
			most = step;
	return most ? most->engine : NULL;
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
	o->engine = main_engine(r->step, r->steps);
}

static enum fcopy_count count_of_copy(mode_t type)
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
		count[count_of_copy(o->type)] += !o->rest;
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
