/* SPDX-License-Identifier: MIT
 *
 * One copy from open to commit, and the parts of its policy.
 */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include "endpoints/endpoint.h"
#include "engines/engine.h"
#include "measure.h"

struct copy {
	const struct fcopy_options *options;
	struct fcopy_report *report;
	const struct fcopy_mode *mode;
	struct endpoint src, dst;
	struct monitor monitor;
	struct transfer all;    /* the whole range; its offset is the finished prefix */
	off_t limit;            /* copy no byte at or after this; TRANSFER_TO_EOF: no limit */
	off_t size;             /* expected of a source with offsets: its size, or the limit */
	double began;           /* io_now() before anything was opened; 0: opened elsewhere */
	bool remote;            /* source on a network file system */
	bool served;            /* one of many: fcopy_serve reports its completion */
	bool direct;            /* bulk data goes past the page cache */
	void *buffer;           /* of cached.c, for many small extents */
	bool keeps_buffer;      /* the buffer outlives the copy: the caller frees it by plan_free */
	bool no_clone;          /* FICLONE was refused for an earlier file of these file systems */
	struct monitor *shared; /* counts and limits several copies together, or NULL */
	struct measure measure;
	off_t allocated; /* end of the blocks that were allocated ahead */
	bool resumes;    /* DST.fcopy-part proved to be of this copy: it may be cut */
	bool untidy; /* the destination may be longer or shorter than the prefix: commit cuts it */
};

/* copy.c: runs a copy whose ends are open, and closes both. Returns 0, or -errno with the failure
 * recorded. */
int copy_run(struct copy *);

/* copy.c: the options that a caller passed, or the defaults for NULL. Returns 0, or -errno with the
 * refusal recorded: the caller was compiled with a header that this library does not know. */
int copy_options(struct fcopy_options *own, const struct fcopy_options *passed, const char *dst,
		 struct fcopy_error *);

/* settle.c: what is left to do and to ask between the last byte and the commit. Returns 0, or
 * -errno with the failure recorded. */
int copy_settle(struct copy *);

/* rules.c: refuses options that these operands cannot fulfil, before anything is opened; and again
 * once both ends are open, because DST may be a file in the directory that was named. Both return
 * 0, or -errno with the refusal recorded. */
int rules_check_operands(const char *src, const char *dst, const struct fcopy_options *,
			 struct fcopy_error *);
int rules_check_open(const struct endpoint *src, const struct endpoint *dst,
		     const struct fcopy_options *, struct fcopy_error *);

/* plan.c: moves all bytes, by the mode or as auto decides. Returns 0, or -errno with the failure
 * recorded. */
int plan_run(struct copy *);
/* Frees the buffer of a copy that keeps it. */
void plan_free(struct copy *);

/* step.c: runs one engine over t and records what it did. Returns what the engine returns; a
 * failure is recorded in the report, a refusal in its step. */
int step_run(struct copy *, const struct engine *, struct transfer *t);
/* The same in several threads at once. */
int step_run_threads(struct copy *, const struct engine *, struct transfer *t, unsigned threads);
/* Is the destination written to the storage, or its writeback started, before the commit? */
bool step_flushes(const struct copy *);
/* Turns the refusal of the engine that t holds into the copy's failure. Returns -errno. */
int step_refused(struct copy *, const struct engine *, const struct transfer *t);

/* cached.c: copies t through the page cache. Chooses among readwrite, splice and threads, and never
 * returns ENGINE_NEXT. options.threads: 1 starts no thread, more are used without a choice. Returns
 * 0 or -errno with the failure recorded. */
int cached_copy(struct copy *, struct transfer *t);
const char *cached_plan(const struct copy *); /* the intention, for people */
void cached_free(struct copy *);              /* the buffer */
/* The threads that options.threads asks for, or that the CPUs allow: 1 to FCOPY_THREADS_MAX. */
unsigned cached_threads(const struct copy *);

/* cpus.c: CPUs that the affinity mask and the cgroup's cpu.max leave to this process, at least 1.
 */
unsigned cpus_allowed(void);
/* CPUs that no other task uses at this moment; UINT_MAX if that is unknown. */
unsigned cpus_idle(void);
/* The lowest cpu.max from this process's cgroup up to the root, in whole CPUs, at least 1; UINT_MAX
 * without a limit. cgroup: a file like /proc/self/cgroup; root: where cgroup version 2 is mounted.
 */
unsigned cpus_quota(const char *cgroup, const char *root);

/* ranges.c: hands pieces of t to `threads` threads, each running the engine, which has to be
 * positional. The caller's thread is one of them and uses t->buffer if that is set. The first
 * failure stops all and is the one returned; t->offset is the finished prefix. With behind set,
 * it starts writeback of the finished pieces. */
#define RANGES_PIECE ((size_t)1 << 20) /* bytes that a thread takes at a time */
int ranges_run(const struct engine *, struct transfer *t, unsigned threads, bool behind);

/* allocate.c: allocates the destination's blocks of [start, end) if options and mode ask for it,
 * without changing its size. Returns 0, or -errno with the failure recorded. */
int allocate_blocks(struct copy *, off_t start, off_t end);

/* The same for a stream that may end earlier: it fails silently. */
void allocate_ahead(struct copy *, off_t start, off_t end);

/* Makes [start, end) of the destination read as zeros without writing, where that is possible. */
int allocate_hole(struct copy *, off_t start, off_t end);

/* Allocates [start, end), as it is in the source, without writing. */
int allocate_unwritten(struct copy *, off_t start, off_t end);

/* compare.c: how many bytes source and destination have in common from the start, `end` at most;
 * past_cache: as the storage has them, or *cached says that this could not be had. Negative:
 * -errno, with the failure recorded. */
off_t compare_files(struct copy *, off_t end, bool past_cache, bool *cached);

/* verify.c: each returns 0, or -errno with the failure recorded. */
int verify_copy(struct copy *);   /* the whole copy, before the commit */
int verify_prefix(struct copy *); /* the part of an earlier copy: starts c->all after it */

/* space.c: compares the space that the copy needs with what is free, and warns. */
void space_check(struct copy *);

/* ask.c: is the file on a network file system; is little of it in the page cache; does its file
 * system do uncached I/O? */
bool ask_is_remote(int fd);
bool ask_is_cold(int fd, off_t size);
bool ask_is_uncached(int fd);

/* notify.c: calls options.notify, if the caller set it. */
void copy_notify(const struct copy *, enum fcopy_event_kind, const struct fcopy_error *,
		 const char *text);
/* Starts a phase of options.progress; total: the bytes that it will handle, 0: unknown. */
void copy_phase(const struct copy *, enum fcopy_phase, uint64_t total);

#endif
