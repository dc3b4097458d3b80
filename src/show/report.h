/* SPDX-License-Identifier: MIT
 *
 * The report of a finished copy: for people (--stats) and for programs (--json).
 */
#ifndef SHOW_REPORT_H
#define SHOW_REPORT_H

#include "cli/cli.h"
#include "usage.h"

#include <stdio.h>

/* Everything known of one copy. */
struct summary {
	const struct cli *cli;
	const struct fcopy_report *report;
	struct usage usage;                   /* of the whole process, or of a client's thread */
	int signal;                           /* that interrupted the copy, or 0 */
	const struct fcopy_tree_report *tree; /* NULL: one file */
};

/* stats.c: aligned lines. */
void stats_print(const struct summary *, FILE *);
/* Prints one client of a server in one line. Prints the server itself. */
void stats_print_client(const struct summary *, FILE *);
void stats_print_server(const struct usage *, FILE *);

/* report_json.c: one object, one line, as the schema in src/dist says. */
void report_json(const struct summary *, FILE *);
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

struct json;
/* operands_ended.c: keeps what FCOPY_EVENT_OPERAND says; and all of it so far, in order. */
void operands_note(const struct fcopy_operand *);
const struct fcopy_operand *operands_ended(size_t *count);
/* One member for each count. */
void json_counts(struct json *, const uint64_t count[FCOPY_COUNTS]);
/* One object for each SRC, also for those that were not begun, as an array. */
void operands_add(struct json *, const struct cli *);
/* tree_print.c: the failed entries of a tree, as an array. */
void tree_add_failures(struct json *);
/* events.c: the warnings of the copy, or of a client's copy in its thread, as an array; forgets
 * them. */
void event_add_warnings(struct json *, const struct cli *);

#endif
