/* SPDX-License-Identifier: MIT
 *
 * Records are names in DST.fcopy-shards/: shard.h shows their format.
 */
#ifndef COPY_SHARD_RECORDS_H
#define COPY_SHARD_RECORDS_H

#include "shard.h"

/* Functions that return int return 0, or -errno with the failure recorded. */

int records_fail(const struct shard_job *, const char *operation, const char *call, int err);
/* Creates an empty file in one step. It succeeds if another process of this job has done so. */
int records_create(const struct shard_job *, const char *name);
/* Removes the records of one job but `keep` (NULL: all). A receipt goes last: until then it says
 * that the others mean nothing. */
int records_remove(struct shard_job *, const char *identity, const char *keep);
/* Removes this job's records of the part that the stale receipt names, and then the receipt. */
int records_remove_stale(struct shard_job *, const char *receipt);
/* Flushes the directory of records, and the one of DST. */
int records_flush(const struct shard_job *);
int records_flush_parent(const struct shard_job *);

/* Names. */
bool records_start(const char *name, const char *prefix);
const char *records_after(const char *name, int fields); /* what follows the first ones, or NULL */
void records_commit_name(const struct shard_job *, const struct stat *part,
			 char name[NAME_MAX + 1]);
void records_share_name(const struct shard_job *, unsigned i, const char *what,
			char name[NAME_MAX + 1]);
void records_range(const struct shard_job *, unsigned i, char what[SHARD_DETAIL]);

#endif
