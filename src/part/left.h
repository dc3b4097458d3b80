/* SPDX-License-Identifier: MIT
 *
 * What killed copies left in a directory: which of it is this user's and dead, and its removal.
 */
#ifndef PART_LEFT_H
#define PART_LEFT_H

#include "old.h"
#include "part.h"
#include "remove.h"

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
/* A process that was killed between two steps of publishing or retiring a part leaves a hidden
 * directory without bytes of a copy. Removes that, or a receipt that was made so many seconds ago,
 * if no process uses it. Returns whether it is gone. */
bool left_sweep(int parent, const char *name, long older_than);
/* Opens the directory that holds the entry of FCOPY_LEFT_OLD. Returns a descriptor or -errno. */
int left_open_old(const struct left *);
void left_close(struct left *);

#endif
