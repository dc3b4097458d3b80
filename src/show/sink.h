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

#include "output.h"
#include "report.h"

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
