/* SPDX-License-Identifier: MIT
 *
 * How a copy ended, in words.
 */
#ifndef SHOW_ENDING_H
#define SHOW_ENDING_H

#include "cli/cli.h"

struct text;

#define ENDING_NOT_COMMITTED "not committed: other shards have not finished"

/* What is true of a copy that succeeded: "copied, verified, flushed". Static. */
const char *ending_state(const struct cli *, const struct fcopy_report *);

/* Seconds that the copy took, without the wait for a peer. */
double ending_seconds(const struct fcopy_report *);

/* Adds the engines that moved bytes: "direct and readwrite in 2 threads". */
void ending_engines(const struct fcopy_report *, struct text *);

/* Where -v lists what was copied: standard output, unless that receives the copy or the JSON. */
FILE *ending_list(const struct cli *);

/* -v: one line about a copy that succeeded. The first without the end of the line. */
void ending_list_summary(const struct cli *, const struct fcopy_report *, FILE *);
void ending_summary(const struct cli *, const struct fcopy_report *);

/* A hint: how the same command keeps what it has copied. */
void ending_would_keep(const struct cli *);
/* DST exists, and is no unfinished copy: how to copy into it. */
void ending_into(const struct cli *);
/* How far a failed copy got, and what became of DST; for an interrupted copy, a part that was kept,
 * and a user who looks at a terminal. */
void ending_stopped(const struct cli *, const struct fcopy_report *, bool interrupted);

/* Could the command have had --resume, too? It has neither that nor what excludes it. */
bool ending_may_resume(const struct cli *);
/* The name of the option that has to be left out, or NULL. */
const char *ending_not_with_resume(const struct cli *);

/* After a failed share: a hint how to continue, or to give up if a part was left. */
void ending_shard(const struct cli *, const struct fcopy_error *, const char *dst);

#endif
