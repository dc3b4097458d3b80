/* SPDX-License-Identifier: MIT
 *
 * The report of a run that has ended: for people (--stats) and for programs (--json).
 */
#ifndef SHOW_REPORT_H
#define SHOW_REPORT_H

#include "cli/cli.h"
#include "usage.h"

#include <stdio.h>

struct benchmark;
struct errors;
struct json;

/* Everything known of a run, or of the copy of one client of a server. */
struct summary {
	const struct cli *cli;
	int result;                           /* 0; negative: it failed */
	const struct fcopy_report *report;    /* NULL: a usage error; of --clean, only its error */
	const struct fcopy_tree_report *tree; /* NULL: one file */
	const struct benchmark *benchmark;    /* of --benchmark, if it succeeded */
	const char *usage_error;              /* its text, or NULL */
	struct usage usage;                   /* of the whole process, or of a client's thread */
	int signal;                           /* that interrupted the copy, or 0 */
	bool unread;                          /* DST is a pipe, and its reader has ended */
};

/* stats.c: aligned lines. */
void stats_print(const struct summary *, FILE *);
/* Prints one client of a server in one line; and the server itself. */
void stats_print_client(const struct summary *, FILE *);
void stats_print_server(const struct usage *, FILE *);

/* report_json.c: one object, one line, as the schema in src/dist says. */
void report_json(const struct summary *, const struct errors *warnings,
		 const struct errors *failures, FILE *);
/* An object for a usage error, which copied nothing. */
void report_json_usage(const char *text, FILE *);

/* The entries of a tree that have a copy; an operand that is a directory is one of them. */
static inline uint64_t tree_entries(const struct fcopy_tree_report *r)
{
	uint64_t n = 0;
	for (int i = 0; i < FCOPY_COUNTS; i++)
		n += fcopy_counts()[i].unit == FCOPY_UNIT_COPIES ? r->count[i] : 0;
	return n;
}

/* operands_ended.c: keeps what FCOPY_EVENT_OPERAND says; and all of it so far, in order. */
void operands_note(const struct fcopy_operand *);
const struct fcopy_operand *operands_ended(size_t *count);
/* One member for each count. */
void json_counts(struct json *, const uint64_t count[FCOPY_COUNTS]);
/* One object for each SRC, also for those that were not begun, as an array. */
void operands_add(struct json *, const struct cli *);

/* modes_print.c: --list, for people and as an object. */
void modes_print(void);
void modes_json(FILE *);

#endif
