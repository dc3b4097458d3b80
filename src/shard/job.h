/* SPDX-License-Identifier: MIT
 *
 * Shards: N processes, perhaps on N machines, make one copy. The file system that they share is
 * their only medium. They build the copy in the ordinary part of DST (part/part.h), which only
 * their user can enter. In it stand, besides data, journal and lock:
 *
 *     share.list.K     chunk K of the list of a tree: list.c. A file has no list: chunk K is its
 *                      range K.
 *     share.claim.list the process that locks it lists the tree; then it has the number of chunks,
 *                      and a sum of what was found
 *     share.claim.K    the process that locks it copies chunk K
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
 *      ^ up to 32 chunks, every 5 s, after a signal, at the end:      |
 *      \- flush, create the markers, release the claims               v
 *   SETTLES: release the shared lock; look
 *      | all marked    \-- some chunks are claimed: for a second, take over those whose process
 *      |                   died; then done: the others will commit
 *      v
 *   COMMITS: exclusive lock of the part; look again
 *      | hard links; attributes of large files and directories; are the names there, or if it
 *      | joined after the first marker, all copies, of the right type and size? flush;
 *      | "commit" line; rename data to DST; flush its directory
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
 * Without locks, or where they do not reach other machines (part/shared.c), it is unknown whether a
 * process lives: the copy is refused.
 *
 * The source. A job is known by N, JOB, the options, and the source's inode, mtime and size; device
 * numbers differ between machines. An entry that is not what was listed is never copied: the job
 * starts over if none of its chunks is complete, and is refused otherwise. Entries that appear
 * after the walk are not copied.
 *
 * The receipt counts as long as DST is what the commit line names: inode, and size and mtime of a
 * file, or the time of creation of a directory, which use does not change. It is removed by the
 * next job on DST, by any other copy that needs its name, and by --clean. Without it, a shard of a
 * file copies again, and one of a tree finds that DST exists: shards only make a new tree.
 */
#ifndef SHARD_JOB_H
#define SHARD_JOB_H

#include "copy/copy.h"

#define JOB_CLAIMS 160 /* that a process has at once */
#define JOB_MARK   32  /* chunks that it copies before it flushes them, at most */

#define JOB_LISTER   PART_SHARE "claim.list"
#define LIST_DAMAGED "its .fcopy-part has a damaged list"

struct job;

/* What a file and a tree do differently. Functions that return int return 0, or -errno with the
 * failure recorded in *job->error. */
struct job_work {
	/* May a new job begin? */
	int (*check)(struct job *);
	/* Creates `data` in this directory. Returns a descriptor, or -errno with the call; *mode:
	 * what data gets last. */
	int (*make)(struct job *, int dir, mode_t *mode, struct failure *);
	/* Claims chunks, copies and marks them, until none is free. */
	int (*copy)(struct job *);
	/* All chunks are complete, and no other process works. Also returns RESULT_AGAIN. */
	int (*commit)(struct job *);
};

#define JOB_UMASK_BIT 16 /* of job.agreed, as in root_options() */
#define JOB_UMASK     ((uint64_t)0777 << JOB_UMASK_BIT)

enum job_chunk {
	CHUNK_OPEN,   /* nobody is known to have completed it */
	CHUNK_MINE,   /* this process has claimed it, */
	CHUNK_COPIED, /* ... copied it, but perhaps not flushed it, */
	CHUNK_FAILED, /* ... or could not copy it */
	CHUNK_DONE    /* its marker exists */
};

/* From job_init to job_free. job_run() enters the part once for each pass: what follows `part` is
 * of this pass, and all zero (but what a file has of a list) while no part is open. claim[] has
 * exactly the chunks that are MINE, COPIED or FAILED; `complete` counts those that are DONE. */
struct job {
	const struct job_work *work;
	void *owner; /* of work */
	const struct fcopy_options *options;
	const struct stat *source;
	uint64_t agreed; /* options that the copies of all shards must have in common; the umask
			  * only if modes depend on it */
	bool tree;
	int parent;       /* the directory of DST: the caller's, after init the job's own */
	const char *name; /* of DST there */
	const char *path; /* DST, for messages */
	struct fcopy_error *error;
	char *reason; /* char[128]: storage for error->reason */
	bool joined;  /* this process has used a part of this job, */
	bool late;    /* ... which had markers: what was done to their copies before is unknown */
	bool exists;  /* DST, with this stat; of a tree st_mtim is when it was created */
	struct stat dst;
	struct part part;
	bool synced;         /* syncfs(2) flushes a tree, and with it the part */
	bool listed;         /* the number of chunks is known ... */
	unsigned chunks;     /* ... or so many are known to be listed */
	uint64_t sum;        /* of what a tree's list has */
	unsigned char *done; /* by chunk: enum job_chunk */
	unsigned room;       /* in done[] */
	unsigned complete;   /* chunks whose marker exists */
	bool busy;           /* another process has claimed a chunk */
	unsigned unlooked;   /* so many chunks may be tried before the next look at all markers */
	struct job_claim {
		unsigned chunk;
		int fd;
	} claim[JOB_CLAIMS];
	unsigned claims;
	unsigned most;  /* of them; then those that are copied are flushed */
	double flushed; /* io_now() when chunks were marked last */
};

/* job.c: fills in *job, whose first members the caller has set; job_free releases it. */
int job_init(struct job *);
void job_free(struct job *);
/* Makes the copy with the other shards. Returns 0 if DST is complete or if other processes will
 * complete it, RESULT_COMMITTED if it was complete already, or -errno. */
int job_run(struct job *);
/* The source is not what it was when the job began. Starts the job over if nothing of it is
 * complete, and no other process works on it: RESULT_AGAIN. Otherwise refuses. */
int job_differs(struct job *);
/* Before the rename: notes what DST will be. */
int job_note_commit(struct job *, const struct stat *data);
/* DST is complete: leaves only the receipt. */
void job_end(struct job *);

/* claims.c: looks which chunks are listed and which are complete. */
int job_look(struct job *);
/* Claims a chunk. Returns 1; 0 if none is free, or no more chunks can be claimed before job_mark;
 * or -errno. *again: an earlier attempt may have begun it. */
int job_claim(struct job *, unsigned *chunk, bool *again);
/* The chunk is copied, or could not be. */
void job_claim_ends(struct job *, unsigned chunk, bool complete);
/* Should what was copied be flushed and marked now? */
bool job_must_mark(const struct job *);
/* What was copied is flushed, and nothing was copied since: marks it. Returns 0 or -errno. */
int job_mark(struct job *);
/* Flushes the directory of DST. Returns 0 or -errno, recorded. */
int job_flush_parent(const struct job *);
/* Claims the list, and reads whether it is complete. Returns 1; 0: another process has it; or
 * -errno, recorded. *fd is to be closed. */
int job_claim_list(struct job *, int *fd);
/* The list that was claimed is complete. */
int job_end_list(const struct job *, int fd, unsigned chunks, uint64_t sum);
/* The name of a file in the part. */
#define JOB_NAME 40
void job_chunk_name(char name[JOB_NAME], const char *kind, unsigned chunk);
/* Creates an empty file in the part, or opens it. *again: it existed. Returns a descriptor or
 * -errno, recorded. */
int job_create(const struct job *, const char *name, bool *again);
void job_release(struct job *); /* all claims */

/* refuse.c: record why a shard fails, and return -errno. */
int job_fail(const struct job *, const char *operation, const char *call, int err);
int job_fail_part(const struct job *);
/* Was the part begun with the name of this job? No name fits each. */
bool job_has_name(const struct job *);
int job_refuse_part(const struct job *, const char *reason);
int job_refuse_source(const struct job *);
int job_refuse_other(const struct job *);
int job_refuse_committed(const struct job *);
int job_refuse_missing(const struct job *);
void job_warn_left(const struct job *);

/* claims.c: the ranges of a file, which are its chunks. */

#define RANGE_UNIT  ((off_t)1 << 20)   /* the bounds of ranges are multiples of this */
#define RANGE_SIZE  ((off_t)128 << 20) /* of a range, at most; a large file has about ... */
#define RANGES_MOST 1024               /* ... so many: each has two files in the part */

/* Into how many ranges a file is divided, for n shards: a multiple of n. Only n and the size decide
 * that, so that it is the same for all shards. */
unsigned range_count(unsigned n, off_t size);
/* Range i of n: bytes [*start, *end). */
void range_of(unsigned n, unsigned i, off_t size, off_t *start, off_t *end);
/* shard_file.c: copies the range [first, last) of *c, which may be empty, into a file that has
 * `size` bytes before and afterwards. again: an interrupted attempt may have copied other bytes,
 * where the source has a hole now. Returns 0, also if the source ended early: then c->all.offset <
 * c->last; or -errno with the failure recorded. */
int range_fill(struct copy *c, off_t size, bool again);

/* A file whose ends are open. Returns 0 or -errno, recorded. */
int shard_copy_file(struct copy *);

#endif
