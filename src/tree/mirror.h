/* SPDX-License-Identifier: MIT
 *
 * Merges that remove what SRC lacks.
 */
#ifndef TREE_MIRROR_H
#define TREE_MIRROR_H

#include "part/left.h"
#include "tree.h"

/* Before the first entry of the operand that is merged into the open directory dst. */
void mirror_begin(struct tree *, const struct operand *, int dst);
/* Notes what a directory of DST has and its source lacks, when all of its entries are copied. */
void mirror_collect(struct worker *, struct directory *);
/* After the last entry: removes what was noted, and flushes DST. */
void mirror_end(struct tree *, struct directory *root);
/* Is it the marker of a mirror, which is never copied? */
bool mirror_is_marker(const struct entry *);

/* Removes entries from DST, or counts them. */

#define MARKER ".fcopy-mirror" /* a name in DST: see mirror.c */

/* What DST has and SRC lacks, or has as another type, which is excluded. */
struct extra {
	struct extra *next;
	dev_t dev;
	ino_t ino;
	mode_t mode;
	off_t size;
	struct timespec mtime;
	char path[]; /* below the operand */
};

/* Is it the marker, or a name of a copy that may be at work? */
bool mirror_is_own(const char *name);
/* Does a pattern exclude the entry `name` of the directory src, which has this path below SRC? */
bool mirror_source_is_excluded(const struct tree *, int src, const char *name, const char *path);
/* What had the name of an entry: until the entry has been made, it is in a directory with a drawn
 * name, or has such a name itself. */
struct cleared {
	char name[TEMPORARY_SIZE]; /* empty: nothing */
	bool aside;                /* `old` holds it */
	struct old old;
};

/* An entry of DST has another type than its source: takes its name away, or nothing if something in
 * it must stay. Where it cannot be renamed, it is removed. Returns 0 or -errno, reported. A dry run
 * reports what would be removed. */
int mirror_clear(struct worker *, const struct entry *, struct cleared *);
/* made: removes what the entry replaced; otherwise gives it back its name. */
void mirror_clear_end(struct worker *, const struct entry *, struct cleared *, bool made);
/* Removes what mirror_collect() found, if SRC still has its name and lacks it. counts: only counts.
 * reports: sends each entry to the caller. Returns how many entries. */
uint64_t mirror_remove_all(struct worker *, struct directory *root, bool counts, bool reports);

#endif
