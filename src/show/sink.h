/* SPDX-License-Identifier: MIT
 *
 * Where a run prints: for people, as lines of JSON, in a log, as an object of JSON. Each of these
 * is a sink. A run has those that its options ask for, and calls them at the same points, whatever
 * the command is:
 *
 *     open -> begin -> event, client, left ... -> end -> close
 *
 * An output that cannot be opened ends the run before anything is copied. An output that the copy
 * refuses, because it is also a file of the copy, receives nothing more. The first write that fails
 * is reported at the end, and makes the run fail.
 */
#ifndef SHOW_SINK_H
#define SHOW_SINK_H

#include "report.h"

#include <stdio.h>
#include <sys/stat.h>

/* output.c: what the program writes besides the copy: the files of --json and --log-file, standard
 * output and standard error. None of them may become a file of the copy. */

/* A file that an option names, or standard output. */
struct output {
	const char *option, *path; /* option: without dashes, or NULL */
	FILE *f;                   /* NULL: not open, or refused; fileno(3) of it fails */
	int fd;                    /* what f writes to */
	int dir;                   /* O_PATH: its directory, which is looked up once; or -1 */
	bool created;              /* it was absent */
	int err;                   /* errno of the first failure, or 0 */
	const char *call;          /* ... and what failed */
	bool reported;             /* ... and a message said so */
};

/* Standard output. It is never closed, because others may write to it, too. */
extern struct output output_standard;

/* Opens the file of o->option and o->path. Where another user could exchange its name, a symlink of
 * another user is refused: it could lead to any file of this one. append: writes go to the end;
 * otherwise the caller truncates the file. Returns EXIT_DONE, or EXIT_FAILED after a message. */
int output_open(struct output *, bool append);
/* The file is a file of the copy, or another output: nothing more is written, and a file that was
 * created is removed. */
void output_abandon(struct output *);
/* Notes a failure: the first one counts. */
void output_fail(struct output *, const char *call, int err);
/* Writes what is buffered, and keeps the first failure. */
void output_flush(struct output *);
/* Closes the file. The first failure is in o->err and o->call. */
void output_close(struct output *);

/* The copy must not replace, write or remove this file. Returns EXIT_DONE; or EXIT_USAGE after a
 * message: two outputs of the copy are one file. */
int output_claim(struct cli *, const struct output *);
/* The same of standard output and standard error, as far as they are regular files. After the
 * files. */
int output_claim_standard(struct cli *);
/* Standard output receives the object of --json: it must not be DST either, if it is a stream. */
void output_claim_object(struct cli *);

/* After a usage error no copy begins, and the library checks nothing: may this file be DST; or,
 * with or_source, SRC? */
bool output_is_operand(const struct cli *, const struct stat *, bool or_source);
/* Would what is written to standard output go to the same open file, pipe or socket as the bytes of
 * DST? */
bool output_mixes(const char *dst);

struct command_line {
	int argc;
	char **argv;
	bool usage_error; /* nothing will be copied */
};

struct sink {
	const char *option;    /* of the errors that refuse the output */
	struct output *output; /* NULL: not known before open() */
	bool refused;          /* nothing more is written; atomic */

	/* All of the following may be NULL. */
	bool (*is_wanted)(const struct cli *); /* NULL: by each run */
	/* Before anything is copied. Returns an exit status, after a message. */
	int (*open)(struct cli *, const struct command_line *);
	void (*begin)(struct cli *);
	/* Several threads may call the next three at the same time. */
	void (*event)(const struct cli *, const struct fcopy_event *);
	void (*client)(const struct summary *); /* the copy of one client of a server */
	void (*left)(const struct cli *, const struct fcopy_left *);
	void (*end)(const struct summary *);
};

extern struct sink people_sink, lines_sink, log_sink, object_sink;

/* Opens all outputs. Returns an exit status, after a message: if it is not EXIT_DONE, the caller
 * must not copy. */
int sinks_open(struct cli *, const struct command_line *line);
void sinks_begin(struct cli *);
/* For options.notify of a copy, and of fcopy_clean(), with the struct cli as user. */
void sinks_event(void *user, const struct fcopy_event *);
void sinks_left(void *user, const struct fcopy_left *);
void sinks_end(const struct summary *);
/* Returns the exit status: `status`, unless an output failed. */
int sinks_close(const struct cli *, int status);

#endif
