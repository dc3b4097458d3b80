/* SPDX-License-Identifier: MIT
 * How a shard joins a job, and which records it creates: see shard.h.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "shard_records.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define CONFLICT_MS 40 /* between two looks, while two jobs begin at the same time */

int shard_job_init(struct shard_job *j, const struct stat *st, unsigned options)
{
	j->records = -1;
	/* The commit closes the caller's descriptor. */
	j->parent = openat(j->parent, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (j->parent < 0)
		return records_fail(j, NULL, "openat", errno);
	j->size = j->tree ? 0 : st->st_size;
	int n = snprintf(j->part_name, sizeof(j->part_name), "%s" PART_SUFFIX, j->name);
	int m = snprintf(j->directory, sizeof(j->directory), "%s" RECORDS_SUFFIX, j->name);
	if (n >= (int)sizeof(j->part_name) || m >= (int)sizeof(j->directory))
		return records_fail(j, "open of its .fcopy-shards", "openat", ENAMETOOLONG);
	/* The first field is the version of these records. */
	snprintf(j->identity, sizeof(j->identity), "%s%u.%u.%jd.%jd.%ld.%ju", j->tree ? "1t" : "1f",
		 options, j->shard.count, (intmax_t)j->size, (intmax_t)st->st_mtim.tv_sec,
		 st->st_mtim.tv_nsec, (uintmax_t)st->st_ino);
	j->marked = calloc(j->shard.count, 1);
	return j->marked ? 0 : records_fail(j, NULL, "malloc", ENOMEM);
}

void shard_job_free(struct shard_job *j)
{
	if (j->records >= 0)
		close(j->records);
	if (j->parent >= 0)
		close(j->parent);
	free(j->marked);
	j->records = j->parent = -1;
	j->marked = NULL;
}

int shard_write_commit(struct shard_job *j, const struct stat *part)
{
	records_commit_name(j, part, j->commit);
	int r = records_create(j, j->commit);
	return r < 0 || j->synced ? r : records_flush(j);
}

int shard_write_receipt(struct shard_job *j)
{
	char name[NAME_MAX + 1];
	snprintf(name, sizeof(name), "receipt.%s", records_after(j->commit, 1));
	int r = records_create(j, name);
	if (r == 0)
		r = records_flush(j);
	return r < 0 ? r : records_remove(j, j->identity, name);
}

int shard_refuse_part(const struct shard_job *j, const char *reason)
{
	return error_refuse(j->error, j->path, ESTALE, reason, FCOPY_ADVICE_SHARDS);
}

int shard_refuse_source(const struct shard_job *j)
{
	return error_refuse(j->error, j->path, EBUSY, "its source changed between the shards",
			    FCOPY_ADVICE_SHARDS);
}

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

/* Removes records that say nothing any more. Returns SHARD_AGAIN if there were any. */
static int drop_settled(struct shard_job *j)
{
	char identity[NAME_MAX + 1];
	const char *which = j->stale ? j->identity : j->settled[0] ? j->settled : NULL;
	if (!which)
		return 0;
	strcpy(identity, which);
	int r = records_remove(j, identity, NULL);
	return r < 0 ? r : SHARD_AGAIN;
}

static int begin_job(struct shard_job *j)
{
	char name[NAME_MAX + 1];
	if (mkdirat(j->parent, j->directory, 0700) < 0 && errno != EEXIST)
		return records_fail(j, "mkdir of its .fcopy-shards", "mkdirat", errno);
	int r = j->records < 0 ? shard_look(j) : 0;
	if (r < 0 || j->records < 0)
		return r < 0 ? r : SHARD_AGAIN;
	snprintf(name, sizeof(name), "job.%s", j->identity);
	r = records_create(j, name);
	return r < 0 ? r : SHARD_AGAIN;
}

/* Two jobs have begun at the same time: see shard.h. */
static int judge_conflict(struct shard_job *j, int tries)
{
	const struct timespec pause = {.tv_nsec = CONFLICT_MS * 1000000L};
	char name[NAME_MAX + 1];
	if (j->part)
		return 0;
	if (j->other_writes) {
		snprintf(name, sizeof(name), "job.%s", j->identity);
		unlinkat(j->records, name, 0);
		return refuse_other(j);
	}
	if (tries + 1 == SHARD_TRIES)
		return refuse_other(j);
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

int shard_join(struct shard_job *j, bool begin)
{
	int r = SHARD_AGAIN;
	for (int tries = 0; r == SHARD_AGAIN && tries < SHARD_TRIES; tries++) {
		if ((r = shard_look(j)) < 0)
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
		/* Older receipts were removed when it joined. An NFS client may not see DST yet. */
		if (j->stale && j->joined)
			return SHARD_COMMITTED;
		if ((r = drop_settled(j)) != 0)
			continue;
		if (j->begun)
			r = j->other[0] ? judge_conflict(j, tries) : 0;
		else if (j->other[0])
			r = refuse_other(j);
		else if (begin)
			r = begin_job(j);
	}
	j->joined |= r == 0;
	return r == SHARD_AGAIN
		   ? error_refuse(j->error, j->path, EBUSY, "other shards change its .fcopy-shards",
				  FCOPY_ADVICE_SHARDS)
		   : r;
}

int shard_record_part(struct shard_job *j, const struct stat *part, bool empty)
{
	char name[NAME_MAX + 1];
	int r = 0;
	if (!j->part) {
		/* It may have been recorded since, and have bytes. */
		r = shard_look(j);
		if (r == 0 && !j->begun)
			return SHARD_AGAIN;
		if (r == 0 && !j->part && !empty)
			return error_refuse(j->error, j->path, EEXIST,
					    "an earlier copy left its .fcopy-part",
					    FCOPY_ADVICE_REMOVE_PART);
		snprintf(name, sizeof(name), "part.%ju.%s", (uintmax_t)part->st_ino, j->identity);
		if (r == 0 && !j->part)
			r = records_create(j, name);
		if (r == 0)
			r = shard_look(j);
	}
	/* Another job cannot have got this far, unless somebody removed records. */
	if (r == 0 && (!j->begun || j->other_writes || j->parts != 1 || j->part != part->st_ino))
		r = shard_refuse_part(j, "its .fcopy-part is not the one that its shards began");
	return r;
}

int shard_lock_share(struct shard_job *j, const struct fcopy_options *o, bool *warned, int *fd)
{
	char name[NAME_MAX + 1];
	snprintf(name, sizeof(name), "lock.%u.%s", j->shard.index, j->identity);
	int r = records_create(j, name);
	if (r < 0)
		return r;
	*fd = openat(j->records, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return errno == ENOENT ? SHARD_AGAIN
				       : records_fail(j, "open of a record", "openat", errno);
	r = part_take_lock(*fd, LOCK_EX, o->cancel);
	if (r == -EWOULDBLOCK)
		return error_refuse(j->error, j->path, EBUSY, "another process copies this share",
				    FCOPY_ADVICE_NONE);
	if (r < 0 && !shared_lacks_locks(-r))
		return part_fail_lock(&(struct endpoint){.path = j->path}, r, j->error);
	if (r < 0 && !*warned)
		shard_warn_unlocked(&(struct copy){.options = o}, j->path);
	*warned |= r < 0;
	r = shard_look(j);
	return r == 0 && (!j->begun || j->marked[j->shard.index]) ? SHARD_AGAIN : r;
}

int shard_mark(struct shard_job *j, const char *what)
{
	char name[NAME_MAX + 1], range[SHARD_DETAIL];
	if (!what)
		records_range(j, j->shard.index, range);
	records_share_name(j, j->shard.index, what ? what : range, name);
	/* The part's name and the other records must be on the disk before the marker. */
	int r = j->synced ? 0 : records_flush_parent(j);
	if (r == 0 && !j->synced)
		r = records_flush(j);
	if (r == 0)
		r = records_create(j, name);
	if (r == 0)
		r = records_flush(j);
	return r < 0 ? r : shard_look(j);
}

int shard_refuse_missing(const struct shard_job *j)
{
	size_t used = 0;
	const bool one = j->complete + 1 == j->shard.count;
	for (unsigned i = 0, end; i < j->shard.count; i = end) {
		for (end = i + 1; !j->marked[i] && end < j->shard.count && !j->marked[end];)
			end++;
		if (j->marked[i])
			continue;
		if (used > 80) {
			used += (size_t)snprintf(j->reason + used, 128 - used, ", ...");
			break;
		}
		used += (size_t)snprintf(j->reason + used, 128 - used, "%s%u",
					 used  ? ", "
					 : one ? "missing share "
					       : "missing shares ",
					 i);
		if (end > i + 1)
			used += (size_t)snprintf(j->reason + used, 128 - used, "-%u", end - 1);
	}
	snprintf(j->reason + used, 128 - used, one ? "/%u" : " of %u", j->shard.count);
	return error_refuse(j->error, j->path, ENODATA, j->reason, FCOPY_ADVICE_NONE);
}

void shard_warn_unlocked(const struct copy *c, const char *path)
{
	copy_warn(c, path, ENOLCK,
		  "the file system has no locks: never run the same share twice at once",
		  FCOPY_ADVICE_NONE);
}
