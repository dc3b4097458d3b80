/* SPDX-License-Identifier: MIT
 * Why a shard cannot go on.
 */
#include "endpoints/error.h"
#include "job.h"

#include <stdio.h>
#include <string.h>

int job_fail(const struct job *j, const char *operation, const char *call, int err)
{
	return error_operation(j->error, operation, call, j->path, err);
}

int job_fail_part(const struct job *j)
{
	const struct part *p = &j->part;
	return p->reason ? error_refuse(j->error, j->path, p->err, p->reason, p->advice)
			 : error_call(j->error, p->call, j->path, p->err);
}

int job_refuse_part(const struct job *j, const char *reason)
{
	return error_refuse(j->error, j->path, ESTALE, reason, FCOPY_ADVICE_SHARDS);
}

int job_refuse_source(const struct job *j)
{
	return error_refuse(j->error, j->path, EBUSY, "SRC changed between the shards",
			    FCOPY_ADVICE_SHARDS);
}

int job_refuse_committed(const struct job *j)
{
	return error_refuse(
	    j->error, j->path, EEXIST,
	    j->tree
		? "is complete, but of another job, or of an earlier SRC: rename DST and run again"
		: "was complete, and has changed since: rename DST and run again",
	    FCOPY_ADVICE_NONE);
}

bool job_has_name(const struct job *j)
{
	const struct journal_fact *shards = &j->part.journal.shards;
	const char *job = j->options->shard.job;
	char name[JOURNAL_PATH];
	const size_t length = job ? journal_escape(job, strlen(job), name) : 0;
	return !job || (shards->size == length && memcmp(shards->text, name, length) == 0);
}

/* "--job=NAME" of the journal, in which "-" stands for none. */
static void job_write_name(const struct job *j, char text[64])
{
	const struct journal_fact *shards = &j->part.journal.shards;
	char name[JOURNAL_PATH];
	journal_unescape(shards->text, shards->size, name);
	if (strcmp(name, "-") == 0)
		strcpy(text, "no --job");
	else
		snprintf(text, 64, "--job=%.48s", name);
}

int job_refuse_other(const struct job *j)
{
	const struct journal_fact *shards = &j->part.journal.shards;
	const uint64_t differs = j->part.journal.options.number ^ j->agreed;
	char name[64];
	job_write_name(j, name);
	if (shards->number != j->options->shard.count)
		snprintf(j->reason, 128,
			 "its shards were begun with N = %lu, not %u: use the same N",
			 (unsigned long)shards->number, j->options->shard.count);
	else if (!job_has_name(j))
		snprintf(j->reason, 128, "its shards were begun with %s", name);
	else if (differs && (differs & ~JOB_UMASK) == 0)
		snprintf(j->reason, 128,
			 "its shards were begun with umask %03o: use the same umask",
			 (unsigned)((j->part.journal.options.number & JOB_UMASK) >> JOB_UMASK_BIT));
	else
		snprintf(j->reason, 128,
			 "its shards were begun with another source or options, "
			 "or the source has changed");
	return error_refuse(j->error, j->path, EBUSY, j->reason, FCOPY_ADVICE_SHARDS);
}

int job_refuse_missing(const struct job *j)
{
	if (j->listed)
		snprintf(j->reason, 128, "%u of %u chunks are missing", j->chunks - j->complete,
			 j->chunks);
	else
		strcpy(j->reason, "SRC is not listed yet");
	return error_refuse(j->error, j->path, ENODATA, j->reason, FCOPY_ADVICE_NONE);
}

void job_warn_left(const struct job *j)
{
	copy_warn(&(struct copy){.options = j->options}, j->path, EBUSY,
		  "not committed yet: another process is still copying a share and will commit; "
		  "if it fails, run this command again",
		  FCOPY_ADVICE_NONE);
}
