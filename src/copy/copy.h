/* SPDX-License-Identifier: MIT
 *
 * One copy from open to commit, and the functions that decide how it is made.
 */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include "endpoints/attributes.h"
#include "endpoints/endpoint.h"
#include "engines/engine.h"
#include "mover.h"

struct helpers;

struct copy {
	const struct fcopy_options *options;
	struct fcopy_report *report;
	const struct fcopy_mode *mode;
	struct monitor monitor;
	struct transfer all; /* the whole range; its offset is the finished prefix */
	off_t limit;         /* copy no byte at or after this; TRANSFER_TO_EOF: no limit */
	off_t size;          /* expected of a source with offsets: its size, or the limit */
	double began;        /* io_now() before anything was opened; 0: opened elsewhere */
	bool local;          /* source on a local file system, whose st_size is where reads end */
	bool served;         /* run by fcopy_serve(), which reports its completion */
	void *buffer;        /* of move.c, for many pieces, extents or files */
	size_t buffer_size;
	struct kept *kept;      /* of an engine, likewise */
	bool keeps_buffer;      /* both outlive the copy: the caller calls move_free */
	bool many;              /* one of many files: the times of its phases are not needed */
	bool no_clone;          /* FICLONE was refused for an earlier file of these file systems */
	struct monitor *shared; /* counts and limits several copies together, or NULL */
	const struct helpers *helpers; /* other threads that may help with a large file, or NULL */
	struct mover_facts facts;
	struct mover_state seen;
	off_t read_ahead; /* bytes that may be read ahead; 0: ask cpus_read_ahead */
	struct ahead ahead;
	uint64_t sum;      /* --verify of a source that is read only once: of its bytes */
	off_t allocated;   /* end of the blocks that were allocated ahead */
	bool resumes;      /* DST.fcopy-part belongs to this copy: it may be truncated and kept */
	bool intact;       /* ... and has all that it had while no byte is copied */
	bool bare;         /* DST is new, and its directory gave it no ACL */
	bool share;        /* only [first, last) of the file */
	bool again;        /* ... where an earlier attempt may have written other bytes */
	bool exact;        /* HTTP: [first, last), no fewer bytes; DST sends `tail` more */
	off_t first, last; /* ... of a share, or of what is exact */
	off_t tail;
	enum step failed; /* STEP_OPEN, STEP_TRUNCATE, or another one */
	bool outgrown;    /* the source grew faster than it was copied: its end is not copied */
	dev_t device;     /* of DST; 0: ask */
	struct storage *storage; /* what is known about file systems; NULL: nothing */
	struct stat stored;      /* st_nlink above 0: closing DST may change the time that it has */
	bool fills;          /* the storage is written in order: zeros take the place of holes */
	bool needs_truncate; /* the destination may not end at the prefix: truncate or extend it */
	/* Last: a tree clears what is before, and of DST what is before its state. */
	struct endpoint src, dst;
};

/* What becomes of what DST had. */
static inline enum endpoint_old copy_old(const struct copy *c)
{
	return c->again ? OLD_OVERWRITTEN : endpoint_old(&c->dst);
}

/* What follows the data; NULL: `shared` counts it, or nobody asks. */
static inline struct fcopy_progress *copy_progress(const struct copy *c)
{
	return c->shared ? NULL : c->options->progress;
}

/* run.c: runs a copy whose ends are open, and closes both. Returns 0, or -errno with the failure
 * recorded. Or RESULT_TAKEN: then the copy is complete, and both are open; copy_end() follows. */
int copy_run(struct copy *);
/* r 0: commits it to what DST is now. Otherwise DST keeps what it has. Returns as copy_run(), or r.
 */
int copy_end(struct copy *, int r);
/* The parts of it: copies the data; gives the copy its name. */
int copy_run_phase(struct copy *);
int copy_commit(struct copy *);

/* copy.c: the options that a caller passed, or the defaults for NULL. Returns 0, or -errno with the
 * refusal recorded: the caller was compiled with a header that this library does not know. */
int copy_options(struct fcopy_options *own, const struct fcopy_options *passed, const char *dst,
		 struct fcopy_error *);

/* fcopy_copy(). shared: makes the copy of two files that are open, if several processes make it
 * together; NULL: this process makes it alone. */
int copy_paths(const char *src, const char *dst, const struct fcopy_options *,
	       struct fcopy_report *, int (*shared)(struct copy *));
/* The same for operands that were found. Changes *dst, which the caller closes. */
int copy_operands(const struct operand *src, struct operand *dst, const struct fcopy_options *,
		  struct fcopy_report *, int (*shared)(struct copy *));

/* A copy with --resume that has nothing left to copy. */

/* Has DST all bytes of the open SRC already, so that a copy with options.resume only
 * has to set attributes? Returns 1, 0, or -errno with the failure recorded. */
int copy_complete(struct copy *, const struct operand *dst);

/* Warns about what killed copies left. */

/* Warns about temporaries of this user in `dir` that a killed copy left more than a day
 * ago. Reads a limited number of names. report: for the events, or NULL. */
void stale_warn(int dir, const struct fcopy_options *, const struct fcopy_report *);
/* The same of one name in it. */
void stale_warn_name(int dir, const char *name, const struct fcopy_options *);

/* The checks and changes between the last byte and the commit. */

/* The checks and changes between the last byte and the commit. Returns 0, or -errno with
 * the failure recorded. */
int copy_settle(struct copy *);
/* Fails with EINTR if the copy is cancelled. */
int copy_check_cancelled(struct copy *);
/* The copy lacks attributes that are to be preserved: fails if one of them is required, otherwise
 * warns. */
int copy_lose_attribute(struct copy *, unsigned attributes, const struct fcopy_error *);
/* Gives the copy, a regular file, those of the source. reused: see struct attributes_pair. Returns
 * 0, or what lose, whose argument is the copy, returned. */
int copy_attributes(struct copy *, bool reused, attributes_loss *lose);
/* Flushes the data; with metadata, or options.preserve, also owner, mode and attributes. */
int copy_flush(struct copy *, bool metadata);

/* Storage that sets the modification time when a file is closed. */

/* Some storage sets the modification time when a file is closed. copy_hold returns an
 * O_PATH descriptor of DST before the commit, or -1 if that is not to be expected. After the commit
 * copy_look_again takes it, and the result of the commit; if that is 0, it sets the time again if
 * it has changed. Returns the result, or -errno with the failure recorded. */
int copy_hold(const struct copy *);
int copy_look_again(struct copy *, int held, int committed);

#endif
