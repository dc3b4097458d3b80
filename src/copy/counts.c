/* SPDX-License-Identifier: MIT
 * What is counted. Sums, differences, --stats, the JSON objects and lines are loops over this
 * table.
 */
#include "fcopy.h"

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
