/* SPDX-License-Identifier: MIT
 *
 * What killed copies left in a directory: which of it is this user's and dead, and its removal.
 */
#ifndef PART_LEFT_H
#define PART_LEFT_H

#include "part.h"
#include "private.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct left {
	enum fcopy_left_kind kind;
	enum fcopy_left_state state;
	const char *reason; /* of UNKNOWN: static */
	struct stat st;
	time_t changed;   /* when it was last changed, as far as its directory and journal show */
	bool retired;     /* it has a journal, and no lock any more */
	bool bare;        /* hidden, without bytes of a copy */
	struct part part; /* of DEAD: open and locked; its journal, if it is of this user */
	/* Of FCOPY_LEFT_OLD: what its entry was called, and whether nothing has that name now. */
	char old[NAME_MAX + 1];
	bool returns;
};

/* Could a copy have left an entry of this name? If so, opens it, and finds out whose it is, whether
 * it is used and what it holds. waits: a second for the lock of a process that is about to end.
 * left_close() closes it, in any case. Returns false also if it is gone by the end. */
bool part_examine(struct left *, int parent, const char *name, bool waits);
/* Removes what is DEAD: then it is REMOVED, or LIVE if a copy has begun to use it. What returns is
 * renamed back: then it is RETURNED. Returns 0, or -errno: then it has FAILED, and the rest is left
 * there. */
int left_remove(struct left *);
/* Removes `data` of an open part, a file or a tree. Returns 0, also if there is none, or -errno. */
int part_remove_data(const struct part *);
/* A process that was killed between two steps of publishing or retiring a part leaves a hidden
 * directory without bytes of a copy. Removes that, or a receipt, if no process uses it. of: only
 * this directory, which is open and not locked; -1: any. Returns whether it is gone. */
bool left_sweep(int parent, const char *name, int of);
/* Opens the directory that holds the entry of FCOPY_LEFT_OLD. Returns a descriptor or -errno. */
int left_open_old(const struct left *);
void left_close(struct left *);

/* An entry of DST, mostly a directory, that must give up its name before the entry of another type
 * that replaces it can be made. Until then it waits in a private directory:
 *
 *     .fcopy-0123456789abcdef/
 *         lock         names this directory, and is locked as long as the process lives
 *         old/NAME     what had the name NAME beside the private directory
 *
 * A process that is killed leaves it there. The next mirror, and fcopy --clean, recognise it by its
 * lock: left.h. If nothing has the name NAME, they rename it back. */

#define PRIVATE_OLD "old"

struct old {
	struct private_directory at;
	int fd; /* of PRIVATE_OLD */
};

/* Renames an entry of the open directory `dir`, which must outlive *o. Returns 0, or -errno:
 * nothing has changed. -EXDEV: no directory can be renamed into another one here. */
int old_take(struct old *o, int dir, const char *name);
/* Renames it back, unless the name exists. Returns 0 or -errno; old_end() follows. */
int old_return(struct old *o, const char *name);
/* Closes everything, and removes what is empty. */
void old_end(struct old *o);
/* Renames an entry, which may be a directory of this user that it may not write to: its .. changes.
 * Replaces nothing. Returns 0 or -errno. */
int old_rename(int from, int to, const char *name);

/* The removal of what this program made, and its size. A mount point is never entered: rmdir(2)
 * fails with EBUSY. */

/* Removes everything below `root`, an open directory that only this process writes to,
 * and then its name in `dir`. Adds the number of removed entries to *count, unless count is NULL.
 * Returns 0, or -errno with the rest left there. */
int remove_tree(int root, int dir, const char *name, uint64_t *count);
/* Removes an entry of a part, of any type. Returns 0 or -errno. */
int remove_entry(int dir, const char *name);

/* Adds up the sizes of files. */
struct left_size {
	uint64_t bytes;
	unsigned entries; /* that may still be measured */
	bool partial;     /* there are more bytes */
	const volatile int *cancel;
};
/* The files in an open directory, and below it in the same file system. */
void left_measure(int fd, struct left_size *);

#endif
