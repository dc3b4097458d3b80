/* SPDX-License-Identifier: MIT
 *
 * --compare: every mode on the user's own file and disk.
 */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli.h"

#define COMPARE_ROUNDS 5  /* counted; one more before them warms up */
#define COMPARE_MODES  16 /* more than there are */

struct seconds {
	double real, user, sys;
};

/* What one mode did. */
struct contender {
	const struct fcopy_mode *mode;
	const char *missing; /* why this system lacks it, or NULL */
	bool refused;        /* by this file, file system or kernel; error tells why */
	struct fcopy_error error;
	const char *engine; /* the one that moved most bytes */
	struct seconds round[COMPARE_ROUNDS];
	struct seconds median; /* each of its fields by itself */
};

struct comparison {
	const struct cli *cli;
	uint64_t bytes;
	size_t contenders;
	struct contender contender[COMPARE_MODES]; /* in the order of fcopy_modes(): auto first */
};

static inline bool contender_ran(const struct contender *c)
{
	return !c->missing && !c->refused;
}

/* Runs all modes to scratch files beside DST and prints what they took. Returns an exit status. */
int compare(struct cli *);

/* compare_print.c */
void compare_table(const struct comparison *);
void compare_json(const struct comparison *);

#endif
