/* SPDX-License-Identifier: MIT
 *
 * What a finished copy tells: to a person (--stats) or to a program (--json).
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli.h"
#include "usage.h"

#include <stdio.h>

/* Everything known of one copy. */
struct outcome {
	const struct cli *cli;
	const struct fcopy_report *report;
	struct usage usage; /* of the whole process, or of a client's thread */
};

/* stats.c: aligned lines. */
void stats_print(const struct outcome *, FILE *);
/* The same of one client of a server, in one line; and of the server itself. */
void stats_print_client(const struct outcome *, FILE *);
void stats_print_server(const struct usage *, FILE *);

/* report_json.c: one object, one line, as the schema in src/dist says. */
void report_json(const struct outcome *, FILE *);
/* Where JSON belongs: stdout, unless the copy itself goes there. */
FILE *report_stream(const char *dst);

#endif
