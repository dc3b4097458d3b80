/* SPDX-License-Identifier: MIT
 *
 * Moves the bytes of a copy: move.c does what mover.h chooses, one engine after the other over a
 * range, and records what each did; plan.c goes through the file; ranges.c has the threads, and
 * what of the machine they may use.
 */
#ifndef COPY_MOVE_H
#define COPY_MOVE_H

#include "copy.h"

/* Moves the bytes from t->offset, which is the finished prefix afterwards, to `end`; sets t->end
 * and t->buffer. rest: up to the end of the source. Returns 0: all are moved, or the source ended;
 * -errno with the failure recorded; or, with a mode that the user selected, RESULT_NEXT. */
int move_range(struct copy *, struct transfer *t, off_t end, bool rest);
/* Runs one engine over t. threads: 0 for the engine alone; from 1 on ranges_run() runs it, which
 * also starts writeback. Returns what the engine returns; a failure is recorded in the report, a
 * refusal in its step. */
int move_by(struct copy *, const struct engine *, struct transfer *t, unsigned threads);
/* Turns the refusal of the engine that t holds into the copy's failure. Returns -errno. */
int move_refused(struct copy *, const struct engine *, const struct transfer *t);
/* Where the size of a regular source is looked up again, unless the source ends before. */
off_t move_look_again_at(const struct copy *);

/* The buffer stays for the next piece, extent or file: to map and touch one costs more than to copy
 * a small file. Makes it at least this large. */
bool move_enlarge(struct copy *, size_t size);
void move_free(struct copy *); /* frees it, and what engines keep */

/* plan.c: copies all data, by the mode's engine or as auto decides. Returns 0, or -errno with the
 * failure recorded. */
int plan_run(struct copy *);

/* One file in several threads. */

struct ranges;

/* Threads of the caller that may join while a range is copied: those of a tree's pool. */
struct helpers {
	void *user;
	const unsigned *idle; /* how many have nothing to do now; atomic */
	/* Lets threads that have nothing to do call ranges_help(). */
	void (*invite)(void *user, struct ranges *);
	/* Lets no thread join any more. Returns when those that did have left. */
	void (*dismiss)(void *user, struct ranges *);
};

/* Hands pieces of t to `threads` threads, each running the engine, which has to be
 * positional. The caller's thread is one of them. t->buffer has room for t->buffer_size bytes of
 * each thread. NULL: ranges_run allocates it, and runs one thread if there is too little memory for
 * all. The first failure stops all threads and is returned; t->offset is the finished prefix, and
 * t->threads the threads that could be created, plus one. start_writeback: start writeback of the
 * finished pieces while others are copied. helpers: join the threads; NULL: there are none. */
int ranges_run(const struct engine *, struct transfer *t, unsigned threads, bool start_writeback,
	       const struct helpers *helpers);
/* Of a thread that was invited: copies pieces through a buffer of ranges_buffer_size() bytes until
 * no piece is left. */
void ranges_help(struct ranges *, void *buffer);
size_t ranges_buffer_size(const struct ranges *);

/* CPUs and memory that this process may use. */

/* CPUs that the affinity mask and the cgroup's quota leave to this process, at least 1. */
unsigned cpus_allowed(void);
/* CPUs that no other task uses at this moment; UINT_MAX if that is unknown. */
unsigned cpus_idle(void);
/* As pthread_create(3), but the new thread starts on another CPU if there is one. The kernel would
 * often leave it on the caller's CPU, which the caller keeps for up to 4 ms (a tick of 250 Hz).
 * Later the kernel may move both. */
int cpus_start_thread(pthread_t *, void *(*run)(void *), void *arg);
/* The lowest cpu.max from this process's cgroup up to the root, in whole CPUs, at least 1; UINT_MAX
 * without a limit; of version 1, cpu.cfs_quota_us. cgroup: a file like /proc/self/cgroup; root:
 * where cgroup version 2 is mounted, or the directories of the controllers of version 1. */
unsigned cpus_quota(const char *cgroup, const char *root);
/* The lowest limit of memory.max, or memory.limit_in_bytes, in bytes; UINT64_MAX without a limit.
 */
uint64_t cpus_memory(const char *cgroup, const char *root);
/* Bytes that each of several copies at once may read ahead: all of it has to fit into memory. */
off_t cpus_read_ahead(unsigned copies);
/* The files that this process passes to them. */
#define CPUS_CGROUP      "/proc/self/cgroup"
#define CPUS_CGROUP_ROOT "/sys/fs/cgroup"

#endif
