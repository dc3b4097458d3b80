/* SPDX-License-Identifier: MIT
 *
 * Shards: N processes, perhaps on N machines, make one copy. The file system that they share is
 * their only medium. They build the copy in the ordinary part of DST (part/part.h), which only
 * their user can enter. In it stand, besides data, journal and lock:
 *
 *     share.list.K     chunk K of the list of a tree: list.c. A file has no list: chunk K is its
 *                      range K.
 *     share.end        the list is complete: its number of chunks, and a sum of what it has
 *     share.left       a process has joined when there were markers: what was done to the copies
 *                      before is unknown
 *     share.links      names that are hard links to a copied file: finish.c
 *     share.claim.K    the process that locks it copies chunk K; share.claim.list: lists
 *     share.done.K     the marker: chunk K is complete, and on the storage; share.claim.K has one
 *                      byte then
 *
 * and the journal has two more lines: "shards N JOB" when the part is made, and "commit …" before
 * the rename. Each process goes through these states:
 *
 *   look at DST and the part ----- a receipt of this job that fits DST --> done: a late retry
 *      |        \--------------- the part, or DST, of another job ------> refused
 *      | no part: make one under a hidden name, give it its name (the first process wins)
 *      v
 *   JOINED: shared lock of the part
 *      | a tree without a complete list: the process that claims the list walks the source and
 *      | writes the list, chunk by chunk; the others take those that are written
 *      v
 *   COPIES: claim a chunk, copy it, and so on --- no chunk is free --\
 *      ^ every 32 chunks, every 5 s, after a signal, at the end:      |
 *      \- flush, create the markers, release the claims               v
 *   SETTLES: release the shared lock; look
 *      | all marked    \-- some chunks are claimed: for a second, take over those whose process
 *      |                   died; then done: the others will commit
 *      v
 *   COMMITS: exclusive lock of the part; look again
 *      | links; attributes of large files and directories; are the names there, or with share.left
 *      | all copies, of the right type and size? flush; "commit" line in the journal
 *      | rename data to DST; flush its directory
 *      v
 *   RECEIPT: remove share.*; the journal stays, and the part is a receipt
 *
 * If a process is killed at any of these arrows, the claims and locks that it has end with it, and
 * another process, or its retry, goes on:
 *
 *     a hidden part          the next copy that looks for such directories removes it
 *     the list               another process walks the source again, skips what chunks have
 *                            already, and refuses if that has changed
 *     a chunk                is copied again from its start. What exists is replaced by a complete
 *                            copy: each attempt writes to its own inode, which it renames. Ranges
 *                            of one large file write the same bytes of the same source again.
 *     a chunk's marker       exists: the chunk is left alone
 *     before the rename      data is still in the part: the commit is done again
 *     after the rename       data is gone and DST fits the commit line: done
 *     the receipt            share.* are removed together with the receipt
 *
 * Two at once. A process that has the shared lock looks once more after it has released it, and one
 * that needs the exclusive lock waits for a second: so one of those that end last sees all markers,
 * gets the lock, and commits. A process that still has the shared lock then, such as a duplicate of
 * a complete chunk, commits at its own end. A process with --resume finds the "shards" line.
 *
 * Without locks, or where they do not reach other machines (part/lock.c), it is unknown whether a
 * process lives: the copy is refused.
 *
 * The source. A job is known by N, JOB, the options, and the source's inode, mtime and size; device
 * numbers differ between machines. An entry that is not what was listed is never copied: the job
 * starts over if none of its chunks is complete, and is refused otherwise. Entries that appear
 * after the walk are not copied.
 *
 * The receipt counts as long as DST is what the commit line names: inode, and size and mtime of a
 * file, or the time of creation of a directory, which use does not change. It is removed by the
 * next job on DST, by any other copy that needs its name, and by every copy that looks for outdated
 * files in the directory, if it is older than a day (copy/clean.c).
 */
#define _GNU_SOURCE
#include "job.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define TRIES         8 /* each fails if another process changes the part first */
#define PAUSE_MS      1 /* the first of the waits, each half as long again as the one before */
#define PAUSE_MOST_MS 320
#define SETTLE_S      1.3 /* the kernel may hold the locks of a killed process for 0.3 s */

static void job_pause(unsigned tries)
{
	long ns = PAUSE_MS * 1000000L;
	while (tries-- > 0 && ns < PAUSE_MOST_MS * 1000000L)
		ns += ns / 2;
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static bool job_is_complete(const struct job *j)
{
	return j->listed && j->complete == j->chunks;
}

/* Returns 0 if other processes have chunks; RESULT_AGAIN if all are complete, or one is free. */
static int job_settle(struct job *j)
{
	const double start = io_now();
	flock(j->part.lock, LOCK_UN);
	for (unsigned tries = 0;; tries++) {
		unsigned chunk;
		bool again;
		struct stat st;
		private_refresh(j->part.fd);
		if (job_is_complete(j))
			return RESULT_AGAIN;
		if (fstatat(j->part.fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return RESULT_AGAIN; /* it was committed */
		const int r = job_claim(j, &chunk, &again);
		if (r != 0) {
			job_release(j);
			return r < 0 ? r : RESULT_AGAIN;
		}
		if (job_is_complete(j))
			return RESULT_AGAIN;
		struct io io = {.cancel = j->options->cancel};
		if (io_now() - start > SETTLE_S || !j->busy || io_cancelled(&io))
			return 0;
		job_pause(tries);
	}
}

/* Takes the exclusive lock of the part. As long as another process has it, that process commits. */
static int job_lock_commit(struct job *j)
{
	int r = -EWOULDBLOCK;
	bool commits;
	do {
		r = private_take_lock(j->part.lock, LOCK_EX, j->options->cancel);
		commits = r == -EWOULDBLOCK && flock(j->part.lock, LOCK_SH | LOCK_NB) < 0;
		if (r == -EWOULDBLOCK && !commits)
			flock(j->part.lock, LOCK_UN);
	} while (commits);
	/* The other process may have released it since the last try. */
	if (r == -EWOULDBLOCK && flock(j->part.lock, LOCK_EX | LOCK_NB) == 0)
		r = 0;
	if (r == -EWOULDBLOCK && !j->shard.finish) {
		job_warn_left(j);
		return RESULT_LEFT;
	}
	if (r == -EWOULDBLOCK)
		return error_refuse(j->error, j->path, EBUSY,
				    "another fcopy is using its .fcopy-part", FCOPY_ADVICE_NONE);
	if (r == -EINTR)
		return error_refuse(j->error, j->path, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	if (r < 0)
		return job_fail(j, "lock of its .fcopy-part", "flock", -r);
	return part_is_named(&j->part) ? 0 : RESULT_AGAIN;
}

static int job_commit(struct job *j)
{
	struct stat st;
	int r = job_lock_commit(j);
	private_refresh(j->part.fd);
	if (r == 0 && fstatat(j->part.fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = RESULT_AGAIN; /* another process was faster */
	if (r == 0 && !part_is_data(&j->part, &st))
		r = job_refuse_part(j, "its .fcopy-part was changed by something else");
	return r == 0 ? j->work->commit(j) : r;
}

/* One pass through the states. */
static int job_pass(struct job *j)
{
	int r = job_enter(j);
	if (r != 0)
		return r;
	if (!j->shard.finish && !job_is_complete(j)) {
		r = j->work->copy(j);
		if (r == 0)
			r = job_settle(j);
		if (r != RESULT_AGAIN || !job_is_complete(j))
			return r == 0 ? RESULT_LEFT : r;
	}
	return job_is_complete(j) ? job_commit(j) : job_end_missing(j);
}

/* Did this pass end because the part, or a file of it, is gone? Another process has committed, or
 * has removed a part that it made at the same time; a client of NFS sees that late, at any call. */
static bool job_lost_part(const struct job *j, int r)
{
	const struct fcopy_error *e = j->error;
	return (r == -ENOENT || r == -ESTALE) && e->err == -r && e->call && e->path == j->path;
}

int job_run(struct job *j)
{
	struct fcopy_error lost = {.err = 0};
	int r = RESULT_AGAIN;
	unsigned complete = 0;
	for (unsigned tries = 0; r == RESULT_AGAIN && tries < TRIES; tries++) {
		if (tries > 0)
			job_pause(3 * (tries - 1));
		r = job_pass(j);
		if (job_lost_part(j, r))
			r = RESULT_AGAIN;
		if (r == RESULT_AGAIN) {
			lost = *j->error;
			*j->error = (struct fcopy_error){.err = 0};
		}
		if (j->complete > complete) { /* it makes progress */
			complete = j->complete;
			tries = 0;
		}
	}
	if (r == RESULT_AGAIN && lost.err) {
		*j->error = lost;
		r = -lost.err;
	}
	if (r == RESULT_AGAIN)
		r = job_refuse_part(j, "its .fcopy-part is gone");
	job_leave(j);
	return r == RESULT_LEFT ? 0 : r;
}

int job_differs(struct job *j)
{
	job_release(j);
	int r = job_look(j);
	if (r < 0 || j->complete > 0 || !part_is_named(&j->part) ||
	    flock(j->part.lock, LOCK_EX | LOCK_NB) < 0)
		return r < 0 ? r : job_refuse_source(j);
	if (part_hide(&j->part) < 0)
		return job_refuse_source(j);
	j->work->remove(j);
	part_remove_shares(&j->part);
	partial_close(&j->part, true, j->options);
	part_init(&j->part, j->parent, j->name);
	return RESULT_AGAIN;
}

int job_note_commit(struct job *j, const struct stat *data)
{
	struct journal_source c = journal_source_of(data);
	struct stat st = *data;
	if (j->tree) {
		job_birth(j->part.fd, PART_DATA, &st);
		c.size = 0;
		c.mtime = st.st_mtim;
	}
	part_note(&j->part,
		  &(struct journal_fact){.kind = JOURNAL_COMMIT, .number = j->sum, .source = c});
	const int err = j->part.lost ? j->part.lost : fdatasync(j->part.log) < 0 ? errno : 0;
	return err ? job_fail(j, "write of its journal", "write", err) : 0;
}

/* Closes the claims first: NFS renames an open file that is removed. */
void job_end(struct job *j)
{
	job_release(j);
	part_remove_shares(&j->part);
}
