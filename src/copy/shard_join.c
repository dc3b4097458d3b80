/* SPDX-License-Identifier: MIT
 * How a shard finds the job of its copy, joins it or begins it: see shard.h.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "shard_records.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONFLICT_MS 40 /* between two looks, while two jobs begin at the same time */

/* Names what differs, as far as the record of the other job shows it. */
static int refuse_other(const struct shard_job *j)
{
	int fields = records_start(j->other, "commit.")  ? 5
		     : records_start(j->other, "share.") ? 4
		     : records_start(j->other, "part.")  ? 2
		     : records_start(j->other, "lock.")  ? 2
							 : 1;
	const char *identity = records_after(j->other, fields);
	const char *count = identity ? records_after(identity, 1) : NULL;
	unsigned long n = count ? strtoul(count, NULL, 10) : 0;
	if (n > 0 && n != j->shard.count)
		snprintf(j->reason, 128, "its shards were begun with N = %lu, not %u", n,
			 j->shard.count);
	else
		snprintf(j->reason, 128,
			 "its shards were begun with another source or options, "
			 "or the source has changed");
	return error_refuse(j->error, j->path, EBUSY, j->reason, FCOPY_ADVICE_SHARDS);
}

/* Removes the records of a job that has ended. `proof`, which is locked, is its receipt or a commit
 * record that fits DST. Without the lock, and a new look at the records after it was taken, this
 * process could remove records that others have created since. */
static int drop_locked(struct shard_job *j, const char *proof)
{
	int r = shard_look(j);
	if (r == 0 && strcmp(proof, j->stale) == 0)
		r = records_remove_stale(j, proof);
	else if (r == 0 && strcmp(proof, j->settled) == 0)
		r = records_remove(j, records_after(proof, 5), NULL);
	return r < 0 ? r : SHARD_AGAIN;
}

/* Removes the records of jobs that have ended. Returns SHARD_AGAIN if there were any. */
static int drop_settled(struct shard_job *j)
{
	char proof[NAME_MAX + 1];
	int lock;
	strcpy(proof, j->stale[0] ? j->stale : j->settled);
	if (!proof[0])
		return 0;
	int r = shard_lock_proof(j, proof, &lock);
	if (r != 0)
		return r;
	r = drop_locked(j, proof);
	close(lock);
	return r;
}

static int begin_job(struct shard_job *j)
{
	char name[NAME_MAX + 1];
	const bool created = mkdirat(j->parent, j->directory, 0700) == 0;
	if (!created && errno != EEXIST)
		return records_fail(j, "mkdir of its .fcopy-shards", "mkdirat", errno);
	/* The umask or a default ACL may lack a right of the owner. */
	if (created)
		(void)!fchmodat(j->parent, j->directory, 0700, AT_SYMLINK_NOFOLLOW);
	int r = j->records < 0 ? shard_look(j) : 0;
	if (r < 0 || j->records < 0)
		return r < 0 ? r : SHARD_AGAIN;
	snprintf(name, sizeof(name), "job.%s", j->identity);
	r = records_create(j, name);
	return r < 0 ? r : SHARD_AGAIN;
}

/* The record of a job that gives up must not keep the other one from starting. Another shard of
 * this job may go on: it locks the record before it creates the part. */
static void withdraw_job(struct shard_job *j)
{
	char name[NAME_MAX + 1];
	struct fcopy_error refusal = *j->error;
	snprintf(name, sizeof(name), "job.%s", j->identity);
	int fd = openat(j->records, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if ((flock(fd, LOCK_EX | LOCK_NB) == 0 || private_lacks_locks(errno)) &&
	    shard_look(j) == 0 && !j->part)
		unlinkat(j->records, name, 0);
	close(fd);
	*j->error = refusal;
}

/* Two jobs have begun at the same time: see shard.h. */
static int judge_conflict(struct shard_job *j, int tries)
{
	const struct timespec pause = {.tv_nsec = CONFLICT_MS * 1000000L};
	if (j->part)
		return 0;
	if (j->other_writes || tries + 1 == SHARD_TRIES) {
		int r = refuse_other(j);
		withdraw_job(j);
		return r;
	}
	nanosleep(&pause, NULL);
	return SHARD_AGAIN;
}

void shard_pause(int tries)
{
	const long ms = tries > 1 ? CONFLICT_MS << (tries - 2) : 0;
	const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
	if (ms > 0)
		nanosleep(&pause, NULL);
}

int shard_find(struct shard_job *j)
{
	int r = shard_look(j);
	if (r < 0)
		return r;
	if (j->commit[0]) {
		/* The process that renamed may have died before it flushed. */
		if (!j->receipt && (r = records_flush_parent(j)) < 0)
			return r;
		if (!j->receipt || j->leftover)
			shard_write_receipt(j); /* best effort: DST is complete */
		*j->error = (struct fcopy_error){0};
		return SHARD_COMMITTED;
	}
	/* Joining removed older receipts. An NFS client may not see DST yet. */
	return j->stale[0] && j->joined ? SHARD_COMMITTED : 0;
}

static int join_once(struct shard_job *j, int tries)
{
	if (!j->begun && j->other[0] && !j->settled[0])
		return refuse_other(j);
	int r = drop_settled(j);
	if (r != 0)
		return r;
	if (!j->begun)
		return begin_job(j);
	return j->other[0] ? judge_conflict(j, tries) : 0;
}

int shard_join(struct shard_job *j)
{
	int r = SHARD_AGAIN;
	for (int tries = 0; r == SHARD_AGAIN && tries < SHARD_TRIES; tries++) {
		if (tries > 0 && (r = shard_find(j)) != 0)
			return r < 0 ? r : SHARD_AGAIN;
		r = join_once(j, tries);
	}
	j->joined |= r == 0;
	return r == SHARD_AGAIN
		   ? error_refuse(j->error, j->path, EBUSY, "other shards change its .fcopy-shards",
				  FCOPY_ADVICE_SHARDS)
		   : r;
}

int shard_join_finish(struct shard_job *j)
{
	/* Markers that the job of a stale receipt has left prove nothing about this job. */
	if (j->stale[0]) {
		memset(j->marked, 0, j->shard.count);
		j->complete = 0;
	}
	if (j->other[0] && !j->part && !j->settled[0])
		return refuse_other(j);
	j->joined |= !j->stale[0];
	return 0;
}
