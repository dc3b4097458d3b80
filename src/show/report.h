/* SPDX-License-Identifier: MIT
 *
 * The report of a finished copy: for people (--stats) and for programs (--json).
 */
#ifndef SHOW_REPORT_H
#define SHOW_REPORT_H

#include "cli/cli.h"
#include "usage.h"

#include <stdio.h>
#include <sys/stat.h>

/* Everything known of one copy. */
struct outcome {
	const struct cli *cli;
	const struct fcopy_report *report;
	struct usage usage;                   /* of the whole process, or of a client's thread */
	int signal;                           /* that interrupted the copy, or 0 */
	const struct fcopy_tree_report *tree; /* NULL: one file */
};

/* stats.c: aligned lines. */
void stats_print(const struct outcome *, FILE *);
/* Prints one client of a server in one line. Prints the server itself. */
void stats_print_client(const struct outcome *, FILE *);
void stats_print_server(const struct usage *, FILE *);

/* report_json.c: one object, one line, as the schema in src/dist says. */
void report_json(const struct outcome *, FILE *);
/* An object for a usage error, which copied nothing. */
void report_json_usage(const char *text, FILE *);

/* The entries of a tree that have a copy; an operand that is a directory is one of them. */
static inline uint64_t tree_entries(const struct fcopy_tree_report *r)
{
	return r->files + r->directories + r->symlinks + r->specials + r->hard_links + r->kept +
	       r->skipped + r->unchanged;
}

struct json;
/* operands_ended.c: keeps what FCOPY_EVENT_OPERAND says; and all of it so far, in order. */
void operands_note(const struct fcopy_operand *);
const struct fcopy_operand *operands_ended(size_t *count);
/* One object for each SRC, also for those that were not begun, as an array. */
void operands_add(struct json *, const struct cli *);
/* tree_print.c: the failed entries of a tree, as an array. */
void tree_add_failures(struct json *);
/* events.c: the warnings of the copy, or of a client's copy in its thread, as an array; forgets
 * them. */
void event_add_warnings(struct json *, const struct cli *);

/* json_file.c: would an object on standard output go to the same open file, pipe or socket as
 * the bytes of DST? */
bool json_file_mixes(const char *dst);
/* Is this file an argument of the command line, or does a descriptor among them name it? */
bool json_file_is_operand(const struct cli *, const struct stat *, int argc, char **argv);
/* After a usage error: finds --json, which may follow the invalid argument. Clears cli->json if an
 * object on standard output would be taken for the copy. */
void json_file_find(struct cli *, int argc, char **argv);
/* Opens FILE of --json=FILE, and refuses any file that is an argument of the command line, or that
 * a descriptor among the arguments refers to. Returns EXIT_DONE, or another exit status after a
 * message. */
int json_file_open(const struct cli *, int argc, char **argv);
/* Where the next object goes; NULL after a message: FILE or standard
 * output became dst, or FILE cannot be truncated. */
FILE *json_file_stream(const char *dst);
bool json_file_is_lost(void); /* json_file_stream() returned NULL */
/* Writes the objects so far to FILE: it may be read while a server runs, and a signal may end the
 * process. json_file_close() returns a failure. */
void json_file_flush(void);
/* Writes everything out. Returns 0, or an errno with the call that failed. */
int json_file_close(const char **call);

#endif
