/* SPDX-License-Identifier: MIT
 *
 * --benchmark: every mode on the user's own file and disk.
 */
#ifndef SHOW_BENCHMARK_H
#define SHOW_BENCHMARK_H

#include "cli/cli.h"

#define BENCHMARK_RUNS  5  /* counted; one more before them warms up */
#define BENCHMARK_MODES 16 /* more than there are */
#define BENCHMARK_WAYS  8  /* of one mode; more are not counted */

struct seconds {
	double real, user, sys;
};

/* How a run copied: auto may measure, and choose otherwise in the next run. */
struct way {
	struct fcopy_step steps[FCOPY_STEPS_MAX];
	size_t step_count;
	bool preallocated; /* blocks were allocated ahead */
	unsigned runs;     /* that copied like this */
};

/* What one mode did. */
struct contender {
	const struct fcopy_mode *mode;
	const char *missing; /* why this system lacks it, or NULL */
	bool refused;        /* by this file, file system or kernel; error says why */
	struct fcopy_error error;
	struct seconds run[BENCHMARK_RUNS_MAX];
	struct seconds median;                  /* of each field by itself */
	double fastest, slowest;                /* real time */
	const char *engine[BENCHMARK_RUNS_MAX]; /* that moved most bytes; NULL: none did */
	struct way way[BENCHMARK_WAYS];
	size_t ways;
	uint64_t holes; /* bytes that it did not copy */
};

struct benchmark {
	struct cli *cli;
	unsigned runs;
	uint64_t bytes;
	double load; /* of the last minute, when the benchmark began */
	bool begun;  /* a run has succeeded, and the head of the table is printed */
	size_t contenders;
	struct contender contender[BENCHMARK_MODES]; /* in the order of fcopy_modes(): auto first */
};

static inline bool contender_ran(const struct contender *c)
{
	return !c->missing && !c->refused;
}

/* These runs show no difference from the fastest mode: the ranges overlap. */
static inline bool contender_overlaps(const struct contender *c, const struct contender *best)
{
	return contender_ran(c) && c->fastest <= best->slowest;
}

/* Runs all modes to unnamed files next to DST and prints their times. Returns them; or NULL after a
 * copy failed: the report then describes that copy, and cli->copy.mode is its mode. */
const struct benchmark *benchmark_run(struct cli *, struct fcopy_report *);

/* The mode with the lowest median. */
const struct contender *benchmark_fastest(const struct benchmark *);

/* Notes how a run copied. */
void contender_note(struct contender *, unsigned round, const struct fcopy_report *);
/* How most runs copied; of as many, the earlier way. The mode has run. */
const struct way *contender_usual_way(const struct contender *);
/* The engine that moved most bytes; NULL: none did. */
const struct fcopy_step *way_main_step(const struct way *);

/* The mode that does the same as auto did, or NULL. */
const struct fcopy_mode *benchmark_auto_is(const struct benchmark *);

/* The table, row by row. */
void benchmark_head(const struct benchmark *);
void benchmark_row(const struct benchmark *, const struct contender *);
void benchmark_verdict(const struct benchmark *);
/* DST itself is never written: if the disk is full, the message names the scratch file. */
void benchmark_print_failure(const struct fcopy_report *);

void benchmark_json(const struct benchmark *, FILE *);

#endif
