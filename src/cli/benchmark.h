/* SPDX-License-Identifier: MIT
 *
 * --benchmark: every mode on the user's own file and disk.
 */
#ifndef CLI_BENCHMARK_H
#define CLI_BENCHMARK_H

#include "cli.h"

#define BENCHMARK_ROUNDS 5  /* counted; one more before them warms up */
#define BENCHMARK_MODES  16 /* more than there are */

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
	struct seconds round[BENCHMARK_ROUNDS];
	struct seconds median; /* each of its fields by itself */
};

struct benchmark {
	const struct cli *cli;
	uint64_t bytes;
	size_t contenders;
	struct contender contender[BENCHMARK_MODES]; /* in the order of fcopy_modes(): auto first */
};

static inline bool contender_ran(const struct contender *c)
{
	return !c->missing && !c->refused;
}

/* Runs all modes to scratch files beside DST and prints what they took. Returns an exit status. */
int benchmark_run(struct cli *);

/* benchmark_print.c */
void benchmark_table(const struct benchmark *);
void benchmark_json(const struct benchmark *);

#endif
