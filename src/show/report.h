/* SPDX-License-Identifier: MIT
 *
 * The report of a run that has ended, for people (--stats) and for programs (--json); the writer of
 * JSON; and the lines that end a run.
 */
#ifndef SHOW_REPORT_H
#define SHOW_REPORT_H

#include "cli/cli.h"
#include "fcopy.h"

#include <stdint.h>
#include <stdio.h>

/* json.c: writes JSON (RFC 8259) with commas and escapes. The caller must close each bracket that
 * it opened. `key` is NULL for an element of an array. */

struct json {
	FILE *f;
	bool comma; /* before the next value */
};

void json_open(struct json *, const char *key, char bracket);
void json_close(struct json *, char bracket);
/* A whole object: its bracket and its first member, the version; its bracket and the newline. */
void json_begin(struct json *, FILE *);
void json_end(struct json *);
void json_null(struct json *, const char *key);
/* NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
void json_string(struct json *, const char *key, const char *value);
void json_errno(struct json *, const char *key, int err); /* its name; null: 0 or unknown */
void json_integer(struct json *, const char *key, uint64_t value);
void json_seconds(struct json *, const char *key, double value);
void json_bool(struct json *, const char *key, bool value);

/* The string, and if it is not UTF-8 also "<key>_b64" with its exact bytes in base64. */
void json_path(struct json *, const char *key, const char *path);

/* Makes room for one more element in an array of so many. Returns false if there is no memory. */
bool list_grow(void *array, size_t count, size_t *size, size_t element);

/* A list of failures or warnings, which owns its strings. */

struct errors {
	struct fcopy_error *error;
	size_t count, size;
};

/* One of them as an object; null if it is NULL, or of no failure. */
void error_write(struct json *, const char *key, const struct fcopy_error *);

void errors_add(struct errors *, const struct fcopy_error *);
void errors_write(const struct errors *, struct json *, const char *key); /* as an array */
void errors_clear(struct errors *);

/* Resource usage of the process: what time(1) prints. */
struct usage {
	double real, user, sys;      /* seconds */
	long voluntary, involuntary; /* context switches: the process waited, or was preempted */
	long minor_faults, major_faults;
};

/* All values since the start of the process, except real: that is io_now(). */
struct usage usage_now(void);
struct usage usage_since(const struct usage *start);
/* The largest resident size of the process in bytes; 0: unknown. */
uint64_t usage_peak_memory(void);
/* Of the calling thread since its start; real: the seconds since then. */
struct usage usage_of_thread(double real);

struct benchmark;
struct text;

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

/* --stats: aligned lines. */
void stats_print(const struct summary *, FILE *);
/* Prints one client of a server in one line; and the server itself. */
void stats_print_client(const struct summary *, FILE *);
void stats_print_server(const struct usage *, FILE *);

/* The entries of a tree that have a copy; an operand that is a directory is one of them. */
static inline uint64_t tree_entries(const struct fcopy_tree_report *r)
{
	uint64_t n = 0;
	for (int i = 0; i < FCOPY_COUNTS; i++)
		n += fcopy_counts()[i].unit == FCOPY_UNIT_COPIES ? r->count[i] : 0;
	return n;
}

/* Keeps what FCOPY_EVENT_OPERAND says; and all of it so far, in order. */
void operands_note(const struct fcopy_operand *);
const struct fcopy_operand *operands_ended(size_t *count);

/* How a copy ended, in words. */

#define ENDING_NOT_COMMITTED "not committed: other shards have not finished"

/* What is true of a copy that succeeded: "copied, verified, flushed". Static. */
const char *ending_state(const struct cli *, const struct fcopy_report *);

/* Seconds that the copy took, without the wait for a peer. */
double ending_seconds(const struct fcopy_report *);

/* Where -v lists what was copied: standard output, unless that receives the copy or the JSON. */
FILE *ending_list(const struct cli *);

/* -v: the line about a copy that succeeded, without its end. */
void ending_summary(const struct cli *, const struct fcopy_report *, FILE *);

/* A hint: how the same command keeps what it has copied. */
void ending_would_keep(const struct cli *);
/* DST exists, and is no unfinished copy: how to copy into it. */
void ending_into(const struct cli *);
/* How far a failed copy got, and what became of DST; for an interrupted copy, a part that was kept,
 * and a user who looks at a terminal. */
void ending_stopped(const struct cli *, const struct fcopy_report *, bool interrupted);

/* Could the command have had --resume, too? It has neither that nor what excludes it. */
bool ending_may_resume(const struct cli *);

/* After a failed share: a hint how to continue, or to give up if a part was left. */
void ending_shard(const struct cli *, const struct fcopy_error *, const char *dst);

/* The line of one entry of a tree: for -v, --dry-run and --log-file. */

/* Does -v list this entry? Writes its line without the end: `SRC -> DST`, or what
 * else was done. */
bool entry_is_listed(const struct cli *, const struct fcopy_entry *);
void entry_list(const struct cli *, const struct fcopy_entry *, FILE *);

/* What killed copies left: an entry of the list of --clean. */

/* "unfinished copy, 2.9 KiB, 2 days old", after "earlier 'NAME', " if an entry of that name is in
 * it: an argument of print_on(). */
const char *left_words(const struct fcopy_left *);
void left_print(const struct fcopy_left *); /* a line on standard output */
void left_json(struct json *, const struct fcopy_left *);

/* On a terminal, or with -v or --progress, a line says that an unfinished copy of the same DST
 * exists, which this copy does not continue because --resume is missing. */

/* Before the copy, so that the user can still stop it. */
void unused_print(const struct cli *);

/* After a copy of so many bytes that succeeded. Without --fsync it ends before its device has all
 * data. On a terminal, or with -v or --progress, a line says so if the device is removable. dst:
 * its final name. */
void unwritten_print(const struct cli *, const char *dst, uint64_t bytes);

#endif
