/* SPDX-License-Identifier: MIT
 *
 * Shards: N processes, perhaps on N machines, make one copy. The shared file system is their only
 * medium. Beside DST stand DST.fcopy-part, the copy itself, and DST.fcopy-shards/, the directory of
 * records. A record is an empty file whose name says everything. So it is created with O_EXCL in
 * one step, and it is never half written:
 *
 *     job.IDENTITY                   this job has begun; the lock of its shards and its commit
 *     part.INODE.IDENTITY            the inode of its DST.fcopy-part
 *     lock.I.IDENTITY                of a tree: the process that copies share I has it locked
 *     share.I.WHAT.INODE.IDENTITY    the marker: share I is complete in that part, and on the disk
 *     commit.INODE.WHAT.TIME.IDENTITY     the part is being renamed to DST: done if DST fits
 *     receipt.INODE.WHAT.TIME.IDENTITY    DST is this file: it was committed
 *
 * IDENTITY is N and the source's size, mtime and inode (not its device number, which differs
 * between NFS clients). WHAT is the range of a file, and in the last two its size, or a sum over
 * the source of a tree. TIME is the mtime of a file. For a directory it is the time of creation,
 * because later use changes the mtime; 0 if the file system does not report it. A shard goes
 * through these states:
 *
 *     look for records ------- a receipt that fits DST ------------> done: a late retry
 *          | none, or ours  \-- those of another job --------------> refused
 *          v
 *     job record, look again
 *          v
 *     shared lock, open the part, part record --- its marker exists --\
 *          v                                                           |
 *     set the full size; copy its own range; fsync                     |
 *          v                                                           |
 *     source unchanged? verify; close; fsync both directories          |
 *          v                                                           |
 *     marker; look again <---------------------------------------------/
 *          | all N markers         \--- some are missing ----------> done: others will commit
 *          v
 *     exclusive lock, open the part, look again; source unchanged?
 *          v
 *     owner, mode, attributes; fsync; commit record; rename to DST; fsync; receipt; remove the
 *     other records
 *
 * If a process is killed at any of these arrows, a retry of that shard takes the same path again:
 *
 *     before the marker     it copies its whole share again, over the same bytes of the same source
 *     after the marker      it copies nothing and looks whether the job is complete
 *     after the rename      the commit record fits DST: it writes the receipt
 *     after the receipt     it removes the records that are left
 *
 * No step truncates, punches or replaces what another shard may have written; a part that a shard
 * does not find again is refused, and not created a second time, because markers would then vouch
 * for bytes that are gone. The exclusive lock keeps the commit apart from writers: the committer
 * waits up to a second for them, and as long as needed for another committer. A writer of a file
 * that runs longer is a late duplicate of a complete share. It commits at its end; "finish" fails.
 * The lock is on the job record. NFS and SMB lock directories on one machine only, and SMB
 * refuses writes to a file whose lock is shared. The part is locked only to see whether a process
 * with --resume uses it: a process that starts later finds the records.
 *
 * Two processes that see all markers: one gets the lock first and renames. The other finds the part
 * gone, looks again and accepts the receipt. Without locks the second rename fails with ENOENT.
 *
 * The next job removes the records that an ended job has left, the receipt last. It locks the
 * receipt first: otherwise a second process that does the same could remove records that the first
 * one has created since.
 *
 * Two jobs on one DST: each creates its job record first and looks afterwards, so at least one of
 * the two sees the other's record. A process that sees one does not write, unless its own job has a
 * part record: then the other job cannot have begun to write.
 */
#ifndef COPY_SHARD_H
#define COPY_SHARD_H

#include "copy.h"

#define SHARD_UNIT  ((off_t)1 << 20) /* the bounds of ranges are multiples of this */
#define SHARD_TRIES 8                /* each fails if another process changes the records first */

#define SHARD_COMMITTED 1 /* DST is complete, by this process or by another one */
#define SHARD_AGAIN     2 /* another process has changed the records: look again */
#define SHARD_LEFT      3 /* another process will commit */

/* A reason to refuse the part. */
#define SHARD_OTHER_PART "its .fcopy-part is not the one that its shards began"

#define SHARD_DETAIL 48 /* size of WHAT */

struct shard_job {
	struct fcopy_shard shard;
	bool tree;
	bool synced;      /* syncfs(2) flushes a tree, and with it the records */
	bool warned;      /* that the file system has no locks */
	int lock;         /* the open job record, or -1 */
	int parent;       /* the directory of DST: the caller's, after init the job's own */
	const char *name; /* of DST there */
	const char *path; /* DST, for messages */
	struct fcopy_error *error;
	char *reason;       /* char[128]: storage for error->reason */
	off_t size;         /* of a source that is a file */
	char identity[128]; /* of the job */
	char part_name[NAME_MAX + 1], directory[NAME_MAX + 1];

	/* What shard_look found. */
	bool exists; /* DST, with this stat */
	struct stat dst;
	int records; /* the directory of records, or -1 */
	bool begun;  /* job record */
	uint64_t part;
	unsigned parts;
	char commit[NAME_MAX + 1];  /* the receipt or commit record that fits DST; empty: none */
	bool receipt;               /* ... it is a receipt */
	bool leftover;              /* this job has records other than receipts */
	char stale[NAME_MAX + 1];   /* a receipt of this job that does not fit DST; empty: none */
	bool joined;                /* this process has joined: `stale` is of this commit */
	char other[NAME_MAX + 1];   /* a record of another job; empty: none */
	bool other_writes;          /* ... which may have written into the part */
	char settled[NAME_MAX + 1]; /* another job's receipt, or its commit record if it fits */
	bool changed; /* ... which fits: DST is the copy of this source before it changed */
	unsigned char *marked;   /* by index: its share is complete */
	unsigned complete;       /* how many are */
	char what[SHARD_DETAIL]; /* of a tree: WHAT of the markers */
	bool differ;             /* ... which is not the same in all of them */
};

/* shard_join.c, shard_job.c: the records. Functions that return int return 0, or -errno with the
 * failure recorded in *job->error.
 *
 * Fills in *job, whose first members the caller has set. source: its stat; of a tree `options` has
 * every option that the copies of all shards must agree on. shard_job_free releases it. */
int shard_job_init(struct shard_job *job, const struct stat *source, unsigned options);
void shard_job_free(struct shard_job *job);

/* Lists the records with a new descriptor. */
int shard_look(struct shard_job *job);

/* Looks at the records. Returns SHARD_COMMITTED if DST is complete, otherwise 0. */
int shard_find(struct shard_job *job);
/* After shard_find: removes what ended jobs have left, and joins the job or begins it. Returns
 * SHARD_AGAIN if DST may be complete by now. Refuses if another job uses the part. */
int shard_join(struct shard_job *job);
/* The same for "finish": never begins the job, and changes no record. */
int shard_join_finish(struct shard_job *job);

/* Before another look at the records, from the second one on: waits for what others do. */
void shard_pause(int tries);

/* Locks the job: shared to copy a share, exclusive to commit; waits while another process commits.
 * Returns SHARD_AGAIN if the job has ended by now. If a process that copies has the lock, a commit
 * that is not "finish" warns and returns SHARD_LEFT. If the file system has no locks, warns once
 * and returns 0. */
int shard_lock(struct shard_job *job, bool commit, const struct fcopy_options *);
void shard_unlock(struct shard_job *job);

/* The open part has this inode. Records it if no process has, and if it was `empty` before the
 * call; refuses any other part. */
int shard_record_part(struct shard_job *job, const struct stat *part, bool empty);

/* Locks the share, so that no two processes copy it at once: two could break hard links that each
 * has made. *fd, or -1, is to be closed. Returns SHARD_AGAIN if the share is complete by now. Also
 * returns 0 if the file system has no locks; it warns once. */
int shard_lock_share(struct shard_job *job, const struct fcopy_options *, int *fd);

/* The share is complete and flushed: creates its marker, and looks again. */
int shard_mark(struct shard_job *job, const char *what);

/* DST will be the part with this stat: creates the commit record. */
int shard_write_commit(struct shard_job *job, const struct stat *part);
/* DST fits that record. Creates the receipt and removes the other records. */
int shard_write_receipt(struct shard_job *job);
/* Locks the record that proves that a job has ended, so that only one process removes the job's
 * records. Returns SHARD_AGAIN if another process has locked or removed that record. After success
 * the caller closes *fd. */
int shard_lock_proof(const struct shard_job *job, const char *name, int *fd);
/* Of a directory: replaces the mtime by the time of creation, or by 0 if there is none. `name` in
 * the directory `dir`; empty: itself. */
void shard_birth(int dir, const char *name, struct stat *st);

/* Refuses because shares are missing, and names them. */
int shard_refuse_missing(const struct shard_job *job);
/* Is this sum the one of the source when the tree was committed? */
bool shard_same_sum(const struct shard_job *job, const char *what);
/* Refuses because the source differs from what the identity or the markers say. */
int shard_refuse_source(const struct shard_job *job);
/* Refuses because the part is not the one that the markers vouch for. */
int shard_refuse_part(const struct shard_job *job, const char *reason);

/* The range of share i: bytes [*start, *end). */
void shard_range(const struct fcopy_shard *, unsigned i, off_t size, off_t *start, off_t *end);

/* Copies the range [first, last) of *c, which may be empty, into a part that has `size` bytes
 * before and afterwards. again: an interrupted attempt may have copied other bytes, where the
 * source has a hole now. Returns 0, also if the source ended early: then c->all.offset < c->last;
 * or -errno with the failure recorded. */
int shard_fill_range(struct copy *c, off_t size, bool again);

/* shard.c: copies the share of one file. The ends are open. Returns 0 or -errno, recorded. */
int shard_copy_file(struct copy *);

#endif
