/* SPDX-License-Identifier: MIT
 *
 * What was done with one entry of a tree, or with one file. Each entry makes one outcome, and so
 * does each removal by a mirror. outcome_count() is the only place that counts. The table of counts
 * is here, and says to which sums a count belongs.
 */
#ifndef COPY_OUTCOME_H
#define COPY_OUTCOME_H

#include "fcopy.h"

#include <sys/stat.h>

enum outcome_stage {
	OUTCOME_FINAL,
	OUTCOME_LATER, /* a link that waits for the first name of its file, or a directory: the
			* outcome follows */
	OUTCOME_NONE,  /* no entry: its directory lists the name twice, or the copy was stopped */
	OUTCOME_SENT   /* a failure, which was counted and sent when it happened */
};

/* All zero: copied, of unknown type. */
struct outcome {
	enum fcopy_action action;
	enum outcome_stage stage;
	bool reused;   /* UNCHANGED: complete in the part that an earlier run left */
	bool replaced; /* DST had the name already: its directory did not get a new one */
	bool rest;     /* a later range of a file, which is counted with its first one */
	bool changed;  /* the source changed during the copy */
	bool cloned;
	mode_t type;                   /* S_IFMT bits, or 0: unknown */
	uint64_t bytes;                /* length of a file that was copied or linked */
	uint64_t data, holes, resumed; /* of a file that was copied */
	const char *engine;            /* that moved most of the bytes, or NULL */
};

/* The step that moved most of the bytes; NULL: none did. */
static inline const struct fcopy_step *outcome_main_step(const struct fcopy_step *step, size_t n)
{
	const struct fcopy_step *most = NULL;
	for (; n > 0; n--, step++)
		if (step->bytes > (most ? most->bytes : 0))
			most = step;
	return most;
}

/* Takes what the report of a file says; its bytes only if the copy is complete. */
void outcome_take(struct outcome *, const struct fcopy_report *, bool complete);
void outcome_count(const struct outcome *, uint64_t count[FCOPY_COUNTS]);

/* Sums of counts. */
enum sum {
	SUM_NAMES = 1 << 0,     /* names that the run made or replaced, but no directories */
	SUM_FLUSH_DUE = 1 << 1, /* of these: without a flush, which a file gets from its endpoint */
	SUM_SETTLED = 1 << 2,   /* entries, but no directories, that are in DST as they should be */
	SUM_CHANGES = 1 << 3,   /* what the run made, repaired or removed */
	SUM_HELD = 1 << 4,      /* what an unfinished copy consists of */
};

#define SUMS_OF_NEW   (SUM_NAMES | SUM_SETTLED | SUM_CHANGES | SUM_HELD)
#define SUMS_OF_OTHER (SUMS_OF_NEW | SUM_FLUSH_DUE)

/* clang-format off */
/* X(FCOPY_COUNT_…, its key, its label, FCOPY_UNIT_…, the sums that it is part of) */
#define OUTCOME_COUNTS(X) \
	X(FILES, "files", "files", COPIES, SUMS_OF_NEW) \
	X(DIRECTORIES, "directories", "directories", COPIES, SUM_CHANGES | SUM_HELD) \
	X(SYMLINKS, "symlinks", "symlinks", COPIES, SUMS_OF_OTHER) \
	X(SPECIALS, "specials", "special files", COPIES, SUMS_OF_OTHER) \
	X(HARD_LINKS, "hard_links", "hard links", COPIES, SUMS_OF_OTHER) \
	X(SKIPPED, "skipped", "skipped", COPIES, SUM_SETTLED) \
	X(REUSED, "reused", "reused", COPIES, SUM_HELD) \
	X(UNCHANGED, "unchanged", "unchanged", COPIES, SUM_SETTLED) \
	X(REPAIRED, "repaired", "repaired", ENTRIES, SUM_CHANGES | SUM_FLUSH_DUE) \
	X(DELETED, "deleted", "deleted", ENTRIES, SUM_CHANGES) \
	X(EXCLUDED, "excluded", "excluded", ENTRIES, 0) \
	X(VANISHED, "vanished", "vanished", ENTRIES, 0) \
	X(CHANGED, "changed", "changed", ENTRIES, 0) \
	X(CLONED, "cloned", "cloned", ENTRIES, 0) \
	X(FAILED, "failed", "failed", ENTRIES, 0) \
	X(BYTES, "bytes", "bytes", BYTES, 0) \
	X(DATA, "data", "data", BYTES, 0) \
	X(HOLES, "holes", "holes", BYTES, 0) \
	X(RESUMED, "resumed", "resumed", BYTES, 0)
/* clang-format on */

static inline uint64_t outcome_sum(const uint64_t count[FCOPY_COUNTS], enum sum sum)
{
#define SUMS(count, key, label, unit, sums) [FCOPY_COUNT_##count] = (sums),
	static const unsigned of[FCOPY_COUNTS] = {OUTCOME_COUNTS(SUMS)};
	uint64_t all = 0;
	for (int i = 0; i < FCOPY_COUNTS; i++)
		all += of[i] & sum ? count[i] : 0;
	return all;
}

/* The entry became another name of a copy. */
static inline void outcome_link(struct outcome *o, const struct stat *st)
{
	o->action = FCOPY_ACTION_LINKED;
	o->bytes = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
}

/* Has DST the entry now, made or found by this copy? */
static inline bool outcome_is_there(const struct outcome *o)
{
	return o->stage == OUTCOME_FINAL &&
	       (o->action == FCOPY_ACTION_COPIED || o->action == FCOPY_ACTION_LINKED ||
		o->action == FCOPY_ACTION_UNCHANGED || o->action == FCOPY_ACTION_REPAIRED);
}

/* Has this copy made the entry of DST? */
static inline bool outcome_is_made(const struct outcome *o)
{
	return o->stage == OUTCOME_FINAL &&
	       (o->action == FCOPY_ACTION_COPIED || o->action == FCOPY_ACTION_LINKED);
}

#endif
