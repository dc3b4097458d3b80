/* SPDX-License-Identifier: MIT
 *
 * One copy from open to commit, and the functions that decide how it is made.
 *
 * To add a warning:
 * 1. Call copy_warn() for a file; in a tree report_warning() or report_operand_warning() of
 *    src/tree/report.h. Put numbers that differ from file to file into parentheses at the end of
 *    the reason: warnings that are equal up to there are printed as one.
 * 2. If the user can do something: a value of enum fcopy_advice in include/fcopy.h, and its words
 *    in src/show/hint.c.
 * 3. Tests: `mentions` of tests/cli/helper.bash checks the text, `value 'o["warnings"]'` the JSON
 *    object.
 */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include "endpoints/attributes.h"
#include "endpoints/endpoint.h"
#include "engines/engine.h"
#include "mover.h"

struct helpers;

/* What the caller says stays as it is while the copy runs, but that `exact` and `last` of an upload
 * follow from its head. What is known before the first byte does not change after it. all.offset
 * moves back only past bytes that the source has lost, and never below `first`. Both ends are open
 * from the start, and closed when copy_run() or copy_end() returns anything but RESULT_TAKEN. */
struct copy {
	/* What the caller says. */
	const struct fcopy_options *options;
	struct fcopy_report *report;
	const struct fcopy_mode *mode;
	double began;      /* io_now() before anything was opened; 0: opened elsewhere */
	bool local;        /* source on a local file system, whose st_size is where reads end */
	bool served;       /* run by fcopy_serve(), which reports its completion */
	bool many;         /* one of many files: its phases are not timed; the caller calls
			    * move_free() after the last */
	bool skips_clone;  /* FICLONE was refused for an earlier file of these file systems */
	bool bare;         /* DST is new, and its directory gave it no ACL */
	bool share;        /* only [first, last) of the file */
	bool again;        /* ... where an earlier attempt may have written other bytes */
	bool exact;        /* HTTP: [first, last), no fewer bytes; DST sends `tail` more */
	off_t first, last; /* ... of a share, or of what is exact */
	off_t tail;
	off_t read_ahead;              /* bytes that may be read ahead; 0: ask cpus_read_ahead */
	dev_t device;                  /* of DST; 0: ask */
	struct storage *storage;       /* what is known about file systems; NULL: nothing */
	struct monitor *shared;        /* counts and limits several copies together, or NULL */
	const struct helpers *helpers; /* other threads that may help with a large file, or NULL */

	/* What is known before the first byte. */
	off_t limit;  /* copy no byte at or after this; TRANSFER_TO_EOF: no limit */
	off_t size;   /* expected of a source with offsets: its size, or the limit */
	bool resumes; /* DST.fcopy-part belongs to this copy: it may be truncated and kept */
	bool intact;  /* ... and has all that it had while no byte is copied */
	struct mover_facts facts;
	struct attributes_held held; /* of a file that is written in place */

	/* What the copy has done and seen. */
	struct transfer all;    /* of the whole range; its offset is the finished prefix */
	struct monitor monitor; /* its progress; NULL: `shared` counts it, or nobody asks */
	struct mover_state seen;
	struct ahead ahead;
	uint64_t sum;        /* --verify of a source that is read only once: of its bytes */
	off_t allocated;     /* end of the blocks that were allocated ahead */
	bool needs_truncate; /* the destination may not end at the prefix: truncate or extend it */
	bool fills;          /* the storage is written in order: zeros take the place of holes */
	bool outgrown;       /* the source grew faster than it was copied: its end is not copied */
	enum step failed;    /* STEP_OPEN, STEP_TRUNCATE, or another one */
	struct stat stored;  /* st_nlink above 0: closing DST may change the time that it has */

	/* Last: a tree clears what is before, and of DST what is before its state. */
	struct endpoint src, dst;
	void *buffer; /* of move.c, for many pieces, extents or files */
	size_t buffer_size;
	struct kept *kept; /* of an engine, likewise */
};

/* What becomes of what DST had. */
static inline enum endpoint_old copy_old(const struct copy *c)
{
	return c->again ? OLD_OVERWRITTEN : c->dst.old;
}

/* run.c: runs a copy whose ends are open, and closes both. Returns 0, or -errno with the failure
 * recorded. Or RESULT_TAKEN: then the copy is complete, and both are open; copy_end() follows. */
int copy_run(struct copy *);
/* Ends the copy that copy_run() has left open. r 0: commits it to what DST is now, with the results
 * of copy_run(). Otherwise DST keeps what it has; returns r. */
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
/* Does that for operands that were found. Changes *dst, which the caller closes. */
int copy_operands(const struct operand *src, struct operand *dst, const struct fcopy_options *,
		  struct fcopy_report *, int (*shared)(struct copy *));

/* clean.c: warns about temporaries of this user in `dir` that a killed copy left more than a day
 * ago. Reads a limited number of names. report: for the events, or NULL. */
void stale_warn(int dir, const struct fcopy_options *, const struct fcopy_report *);
/* Looks at one name in `dir` only. */
void stale_warn_name(int dir, const char *name, const struct fcopy_options *);

/* compare.c: compares [start, end) of source and destination. Returns the offset of the first
 * difference, or `end`, or -errno with the failure recorded. past_cache: read both from the
 * storage, with O_DIRECT; *cached is set if a file does not support that and was read through the
 * page cache. reads_holes: or what is a hole in both files is equal. */
off_t compare_files(struct copy *, off_t start, off_t end, bool past_cache, bool reads_holes,
		    bool *cached);
/* --verify: compares the whole copy, or its share, before the commit. Returns 0, or -errno with the
 * failure recorded. */
int verify_copy(struct copy *);
/* --resume: sets c->all.offset to the end of the prefix of DST.fcopy-part that equals the source,
 * rounded down to a multiple of 4 KiB, or to 0 if only a clone is allowed, and truncates the part
 * to it. Returns 0, or -errno with the failure recorded. */
int verify_prefix(struct copy *);

/* settle.c: the checks and changes between the last byte and the commit. Returns 0, or -errno with
 * the failure recorded. */
int copy_settle(struct copy *);
/* Fails with EINTR if the copy is cancelled. */
int copy_check_cancelled(struct copy *);
/* An attributes_loss, also of several: fails if one of them is required, or if the storage fails;
 * otherwise warns. */
int copy_lose_attribute(void *copy, enum fcopy_attribute, const struct fcopy_error *);
/* Gives the copy, a regular file, those of the source. reused: see struct attributes_pair. Returns
 * 0, or what lose, whose argument is the copy, returned. */
int copy_attributes(struct copy *, bool reused, attributes_loss *lose);
/* Flushes the data; with metadata, or options.preserve, also owner, mode and attributes. */
int copy_flush(struct copy *, bool metadata);

/* Some storage sets the modification time when a file is closed: c->stored. copy_hold returns an
 * O_PATH descriptor of DST before the commit, or -1. After the commit copy_look_again takes it, and
 * the result of the commit; if that is 0, it sets the time again if it has changed. Returns the
 * result, or -errno with the failure recorded. */
int copy_hold(const struct copy *);
int copy_look_again(struct copy *, int held, int committed);

/* notify.c: calls options.notify, if the caller set it. */
void copy_notify(const struct copy *, enum fcopy_event_kind, const struct fcopy_error *,
		 const char *text);
/* Calls it for a warning of fcopy itself about the file at path. */
void copy_warn(const struct copy *, const char *path, int err, const char *reason,
	       enum fcopy_advice);
/* Reports a problem of the source: fails with options.strict, otherwise warns. */
int copy_warn_or_fail(struct copy *, int err, const char *reason);
/* Judges that the copy has, or will have, so many bytes: fails with options.strict if another size
 * is expected, otherwise warns. */
int copy_check_size(struct copy *, uint64_t bytes);
/* Starts a phase of options.progress; total: the bytes that it will handle, 0: unknown. */
void copy_phase(const struct copy *, enum fcopy_phase, uint64_t total);
/* The phases of a tree, whose bytes and entries are counted over all sources. copy_tree_begin sets
 * these counters to 0 and starts COPY; copy_tree_phase starts a phase unless it is the current one.
 * The pointer may be NULL. */
void copy_tree_begin(struct fcopy_progress *);
void copy_tree_phase(struct fcopy_progress *, enum fcopy_phase);

/* What is to be copied, and how. */
struct request {
	const struct operand *src, *dst;
	const struct fcopy_options *options;
	const struct fcopy_tree_options *tree; /* fcopy_tree; NULL: one file */
	size_t sources;                        /* ... and how many it copies, one by one */
	bool serves;                           /* fcopy_serve */
	const struct endpoint *from, *to;      /* SRC and DST once both are open; NULL: before */
};

/* rules.c: refuses what cannot be combined: options, mode, SRC and DST. Returns 0, or -errno with
 * the refusal recorded; its reason may be stored in `detail`, which belongs to the report. */
int rules_check(const struct request *, struct fcopy_error *, char detail[FCOPY_DETAIL_MAX]);

#endif
