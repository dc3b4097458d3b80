/* SPDX-License-Identifier: MIT
 *
 * What killed copies left in a directory: which of it is this user's and dead, and its removal.
 */
#ifndef PART_LEFT_H
#define PART_LEFT_H

#include "old.h"
#include "part.h"

#include <time.h>

struct left {
	enum fcopy_left_kind kind;
	enum fcopy_left_state state;
	const char *reason; /* of UNKNOWN: static */
	struct stat st;
	time_t changed;   /* when it was last changed, as far as its directory and journal show */
	bool retired;     /* it has a journal, and no lock any more */
	struct part part; /* of DEAD: open and locked */
	/* Of FCOPY_LEFT_OLD: what its entry was called, and whether nothing has that name now. */
	char old[NAME_MAX + 1];
	bool returns;
};

/* Could a copy have left an entry of this name? If so, opens it, and finds out whose it is and
 * whether it is used. left_close() closes it. Returns false also if it is gone by the end. */
bool left_find(struct left *, int parent, const char *name);
/* Removes what is DEAD: then it is REMOVED, or LIVE if a copy has begun to use it. What returns is
 * renamed back: then it is RETURNED. Returns 0, or -errno: then it has FAILED, and the rest is left
 * there. */
int left_remove(struct left *);
/* Opens the directory that holds the entry of FCOPY_LEFT_OLD. Returns a descriptor or -errno. */
int left_open_old(const struct left *);
void left_close(struct left *);

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
