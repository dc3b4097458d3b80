/* SPDX-License-Identifier: MIT
 *
 * One copy from open to commit, and the functions that decide how it is made.
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
	struct transfer all; /* the whole range; its offset is the finished prefix */
	off_t limit;         /* copy no byte at or after this; TRANSFER_TO_EOF: no limit */
	off_t size;          /* expected of a source with offsets: its size, or the limit */
	double began;        /* io_now() before anything was opened; 0: opened elsewhere */
	bool local;          /* source on a local file system, whose st_size is where reads end */
	bool remote;         /* source on a network file system */
	bool served;         /* run by fcopy_serve(), which reports its completion */
	bool direct;         /* bulk data bypasses the page cache */
	bool one_writer;     /* one thread writes in order, unless options.threads asks for more */
	void *buffer;        /* of cached.c, for many pieces, extents or files */
	size_t buffer_size;
	bool keeps_buffer;      /* the buffer outlives the copy: the caller calls cached_free */
	bool no_clone;          /* FICLONE was refused for an earlier file of these file systems */
	struct monitor *shared; /* counts and limits several copies together, or NULL */
	const unsigned *idle;   /* threads that may help with a large file now; atomic; or NULL */
	struct measure measure;
	off_t read_ahead; /* bytes that may be read ahead; 0: ask cpus_read_ahead */
	struct ahead ahead;
	uint64_t sum;      /* --verify of a source that is read only once: of its bytes */
	off_t allocated;   /* end of the blocks that were allocated ahead */
	bool resumes;      /* DST.fcopy-part belongs to this copy: it may be truncated and kept */
	bool share;        /* options.shard: all of DST.fcopy-part, or only [first, last) of it */
	off_t first, last; /* ... of a share */
	bool outgrown;     /* the source grew faster than it was copied: its end is not copied */
	struct storage *storage; /* what is known about file systems; NULL: nothing */
	struct stat stored;      /* st_nlink above 0: closing DST may change the time that it has */
	bool fills;          /* the storage is written in order: zeros take the place of holes */
	bool needs_truncate; /* the destination may not end at the prefix: truncate or extend it */
};

/* run.c: runs a copy whose ends are open, and closes both. Returns 0, or -errno with the failure
 * recorded. */
int copy_run(struct copy *);
/* The parts of it: copies the data; gives the copy its name. */
int copy_run_phase(struct copy *);
int copy_commit(struct copy *);

/* copy.c: the options that a caller passed, or the defaults for NULL. Returns 0, or -errno with the
 * refusal recorded: the caller was compiled with a header that this library does not know. */
int copy_options(struct fcopy_options *own, const struct fcopy_options *passed, const char *dst,
		 struct fcopy_error *);

/* fcopy_copy() of operands that were found. Changes *dst, which the caller closes. */
int copy_operands(const struct operand *src, struct operand *dst, const struct fcopy_options *,
		  struct fcopy_report *);

/* settle.c: the checks and changes between the last byte and the commit. Returns 0, or -errno with
 * the failure recorded. */
int copy_settle(struct copy *);
/* Fails with EINTR if the copy is cancelled. */
int copy_check_cancelled(struct copy *);
/* The copy lacks attributes that are to be preserved: fails if one of them is required, otherwise
 * warns. */
int copy_lose_attribute(struct copy *, unsigned attributes, const struct fcopy_error *);
/* Flushes the data; with metadata, or options.preserve, also owner, mode and attributes. */
int copy_flush(struct copy *, bool metadata);

/* closed.c: some storage sets the modification time when a file is closed. copy_hold returns an
 * O_PATH descriptor of DST before the commit, or -1 if that is not to be expected. After the commit
 * copy_look_again takes it, and the result of the commit; if that is 0, it sets the time again if
 * it has changed. Returns the result, or -errno with the failure recorded. */
int copy_hold(const struct copy *);
int copy_look_again(struct copy *, int held, int committed);

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

/* plan.c: copies all data, by the mode's engine or as auto decides. Returns 0, or -errno with the
 * failure recorded. */
int plan_run(struct copy *);

/* step.c: runs one engine over t and records what it did. Returns what the engine returns; a
 * failure is recorded in the report, a refusal in its step. */
int step_run(struct copy *, const struct engine *, struct transfer *t);
/* The same in several threads at once. */
int step_run_threads(struct copy *, const struct engine *, struct transfer *t, unsigned threads);
/* Will the data be flushed, or writeback started, before the commit? */
bool step_flushes(const struct copy *);
/* Turns the refusal of the engine that t holds into the copy's failure. Returns -errno. */
int step_refused(struct copy *, const struct engine *, const struct transfer *t);

/* cached.c: copies t through the page cache. Chooses among readwrite, splice and threads, and never
 * returns ENGINE_NEXT. options.threads: 1 starts no thread, more are used without a choice. Returns
 * 0 or -errno with the failure recorded. */
int cached_copy(struct copy *, struct transfer *t);
/* Decides, before the first byte, how many threads cached_copy may use. */
void cached_decide(struct copy *);
const char *cached_plan(const struct copy *); /* what cached_copy intends, as text */
void cached_free(struct copy *);              /* frees the buffer */
/* Runs readwrite in a buffer of this size that stays for the next call: to map and touch a buffer
 * costs more than to copy a small file. threads: 0 for the engine alone; each thread has its own
 * part of the buffer. Returns what the engine returns. */
int cached_readwrite(struct copy *, struct transfer *t, size_t buffer_size, unsigned threads);
/* The threads that options.threads asks for, or that the CPUs allow: 1 to FCOPY_THREADS_MAX. */
unsigned cached_threads(const struct copy *);

/* cpus.c: CPUs that the affinity mask and the cgroup's cpu.max leave to this process, at least 1.
 */
unsigned cpus_allowed(void);
/* CPUs that no other task uses at this moment; UINT_MAX if that is unknown. */
unsigned cpus_idle(void);
/* As pthread_create(3), but the new thread starts on another CPU if there is one. The kernel would
 * often leave it on the caller's CPU, which the caller keeps for up to 4 ms (a tick of 250 Hz).
 * Later the kernel may move both. */
int cpus_start_thread(pthread_t *, void *(*run)(void *), void *arg);
/* The lowest cpu.max from this process's cgroup up to the root, in whole CPUs, at least 1; UINT_MAX
 * without a limit. cgroup: a file like /proc/self/cgroup; root: where cgroup version 2 is mounted.
 */
unsigned cpus_quota(const char *cgroup, const char *root);
/* The same for memory.max, in bytes; UINT64_MAX without a limit. */
uint64_t cpus_memory(const char *cgroup, const char *root);
/* Bytes that each of several copies at once may read ahead: all of it has to fit into memory. */
off_t cpus_read_ahead(unsigned copies);
/* The files that this process passes to them. */
#define CPUS_CGROUP      "/proc/self/cgroup"
#define CPUS_CGROUP_ROOT "/sys/fs/cgroup"

/* ranges.c: hands pieces of t to `threads` threads, each running the engine, which has to be
 * positional. The caller's thread is one of them. t->buffer has room for t->buffer_size bytes of
 * each thread. NULL: ranges_run allocates it, and runs one thread if there is too little memory for
 * all. The first failure stops all threads and is returned; t->offset is the finished prefix, and
 * t->threads the threads that could be created, plus one. start_writeback: start writeback of the
 * finished pieces while others are copied. */
int ranges_run(const struct engine *, struct transfer *t, unsigned threads, bool start_writeback);

/* allocate.c: allocates the destination's blocks of [start, end) if options and mode ask for it,
 * without changing its size. Returns 0, or -errno with the failure recorded. */
int allocate_blocks(struct copy *, off_t start, off_t end);

/* The same for a stream, which may end before `end`: a failure is ignored. */
void allocate_ahead(struct copy *, off_t start, off_t end);

/* Makes [start, end) of the destination read as zeros without writing, where that is possible. */
int allocate_hole(struct copy *, off_t start, off_t end);

/* Storage that is written in order, such as an object store, refuses a write past the end: writes
 * zeros from there to `end`. Only for a single writer. Returns -ESPIPE if that is not the reason,
 * or -errno. */
int allocate_fill(struct copy *c, off_t end);

/* Allocates [start, end) without writing, as in the source. */
int allocate_unwritten(struct copy *, off_t start, off_t end);

/* complete.c: has DST all bytes of the open SRC already, so that a copy with options.resume only
 * has to set attributes? Returns 1, 0, or -errno with the failure recorded. */
int copy_complete(struct copy *, const struct operand *dst);

/* compare.c: compares [start, end) of source and destination. Returns the offset of the first
 * difference, or `end`, or -errno with the failure recorded. past_cache: read both from the
 * storage, with O_DIRECT; *cached is set if a file does not support that and was read through the
 * page cache. */
off_t compare_files(struct copy *, off_t start, off_t end, bool past_cache, bool *cached);

/* Reads the destination's first `end` bytes from the storage. Returns 1 if c->sum is their sum, 0
 * if it is not, or -errno with the failure recorded. *cached as above. */
int compare_sum(struct copy *c, off_t end, bool *cached);

/* verify.c: each returns 0, or -errno with the failure recorded. */
int verify_copy(struct copy *); /* the whole copy, or its share, before the commit */
/* DST.fcopy-part: sets c->all.offset to the end of the prefix that equals the source, rounded down
 * to a multiple of 4 KiB, or to 0 if only a clone is allowed, and truncates the part to it. */
int verify_prefix(struct copy *);

/* space.c: compares the space that the copy needs with what is free, and warns. */
void space_check(struct copy *);

/* stale.c: warns about temporaries of this user in `dir` that a killed copy left more than a day
 * ago. Reads a limited number of names. report: for the events, or NULL. */
void stale_warn(int dir, const struct fcopy_options *, const struct fcopy_report *);

/* ask.c: is little of the file in the page cache; does its file system do uncached I/O? */
bool ask_is_cold(int fd, off_t size);
bool ask_is_uncached(int fd);

/* notify.c: calls options.notify, if the caller set it. */
void copy_notify(const struct copy *, enum fcopy_event_kind, const struct fcopy_error *,
		 const char *text);
/* The same for a warning of fcopy itself about the file at path. */
void copy_warn(const struct copy *, const char *path, int err, const char *reason,
	       enum fcopy_advice);
/* Starts a phase of options.progress; total: the bytes that it will handle, 0: unknown. */
void copy_phase(const struct copy *, enum fcopy_phase, uint64_t total);
/* The same for a tree, whose bytes and entries are counted over all sources. copy_tree_begin sets
 * these counters to 0 and starts COPY; copy_tree_phase starts a phase unless it is the current one.
 * The pointer may be NULL. */
void copy_tree_begin(struct fcopy_progress *);
void copy_tree_phase(struct fcopy_progress *, enum fcopy_phase);

#endif
