/* SPDX-License-Identifier: MIT
 * Data that moves through the page cache: through one buffer, by splice, or in threads.
 */
#define _GNU_SOURCE
#include "cached.h"
#include "cpus.h"
#include "endpoints/error.h"
#include "io/system.h"
#include "notify.h"
#include "ranges.h"
#include "step.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/param.h>

#define THREADS_MAX   4                   /* more only wait for the inode lock of the destination */
#define READERS       4                   /* tried first if the reader waits */
#define READERS_MAX   8                   /* ... and then */
#define SPLICE_SIZE   ((off_t)2 << 20)    /* below, making the pipe costs more than it saves */
#define FLUSHED_SIZE  ((off_t)16 << 20)   /* with fsync: writeback of so much starts at a time */
#define CHOICE_SIZE   ((off_t)32 << 20)   /* below, only one thread is considered */
#define PARALLEL_SIZE ((off_t)16 << 20)   /* from here on threads gain more than they cost */
#define WAITING_SIZE  ((off_t)4 << 20)    /* ... if the reader waits */
#define HELPED_SIZE   ((off_t)64 << 20)   /* then the helpers of a tree may have left */
#define BUFFER_SIZE   ((size_t)256 << 10) /* of one thread alone */

/* Of each of several threads. Large, because a thread waits for the inode lock before each write:
 * with 512 KiB, a copy of 64 MiB to 1 GiB takes 3 to 5 % longer (2 CPUs with 1 MiB of second-level
 * cache each). */
#define THREAD_BUFFER_SIZE ((size_t)1 << 20)

/* Of an owner and its helpers in a tree, if they wait for the storage: up to 64 threads may be such
 * owners, and a larger buffer is not faster. */
#define WAITING_BUFFER_SIZE ((size_t)512 << 10)

static void free_buffer(struct copy *c)
{
	io_free(c->buffer, c->buffer_size);
	c->buffer = NULL;
	c->buffer_size = 0;
}

void cached_free(struct copy *c)
{
	free_buffer(c);
	engine_free_kept(&c->kept);
}

bool cached_enlarge(struct copy *c, size_t size)
{
	if (c->buffer_size >= size)
		return true;
	free_buffer(c);
	c->buffer = io_alloc(size);
	c->buffer_size = c->buffer ? size : 0;
	return c->buffer;
}

int cached_readwrite(struct copy *c, struct transfer *t, size_t buffer_size, unsigned threads)
{
	if (threads > SIZE_MAX / buffer_size ||
	    (threads > 1 && !cached_enlarge(c, threads * buffer_size)))
		threads = 1; /* no memory for all of them */
	if (!cached_enlarge(c, buffer_size))
		return error_call(&c->report->error, "mmap", c->dst.path, errno);
	t->buffer = c->buffer;
	t->buffer_size = buffer_size;
	int r = threads > 0 ? step_run_threads(c, &engine_readwrite, t, threads)
			    : step_run(c, &engine_readwrite, t);
	t->buffer = NULL;
	t->buffer_size = c->all.buffer_size;
	return r;
}

/* Has a range of this size helpers now, or will helpers be faster whenever they come? */
static bool gets_help(const struct copy *c, off_t size)
{
	if (!c->helpers)
		return false;
	return c->ahead.window > 0
		   ? size >= WAITING_SIZE
		   : size >= PARALLEL_SIZE && __atomic_load_n(c->helpers->idle, __ATOMIC_RELAXED);
}

static int copy_through_buffer(struct copy *c, struct transfer *part, unsigned threads)
{
	size_t size = BUFFER_SIZE;
	if (threads > 1)
		size = THREAD_BUFFER_SIZE;
	else if (gets_help(c, part->end - part->offset))
		size = c->ahead.window > 0 ? WAITING_BUFFER_SIZE : THREAD_BUFFER_SIZE;
	return cached_readwrite(c, part, size, threads);
}

unsigned cached_threads(const struct copy *c)
{
	if (c->one_writer)
		return 1;
	if (c->options->threads)
		return c->options->threads;
	unsigned n = cpus_allowed();
	return n < THREADS_MAX ? n : THREADS_MAX;
}

static int copy_by_readwrite(struct copy *c, struct transfer *part)
{
	bool large = part->end - part->offset >= PARALLEL_SIZE;
	return copy_through_buffer(c, part, large ? cached_threads(c) : 0);
}

static int copy_by_splice(struct copy *c, struct transfer *part)
{
	int r = step_run(c, &engine_splice, part);
	c->measure.refused = r == ENGINE_NEXT;
	return r;
}

/* Starts writeback of what is complete while the rest is copied. This call leaves an error to
 * fsync (sync_file_range(2)). */
static void start_writeback(const struct copy *c, off_t from, off_t to)
{
	if (step_flushes(c))
		sync_file_range(c->dst.fd, from, to - from, SYNC_FILE_RANGE_WRITE);
}

/* Waits until the device has the data before `at`, so that the progress follows the device. Like
 * fsync, a wait that fails means that data is lost: a later fsync need not report it again. Some
 * file systems lack the call. */
static int wait_for_device(struct copy *c, off_t at)
{
	const off_t from = MAX(c->first, at - FLUSHED_SIZE);
	if (!c->options->fsync || !copy_progress(c) || at <= from)
		return 0;
	if (sync_file_range(c->dst.fd, from, at - from,
			    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				SYNC_FILE_RANGE_WAIT_AFTER) == 0 ||
	    errno == ESPIPE || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
		return 0;
	return error_call(&c->report->error, "sync_file_range", c->dst.path, errno);
}

/* The reader waits for its storage: more requests at once may be faster, whatever the CPUs do. */
static void note_waiting(struct copy *c)
{
	struct measure *m = &c->measure;
	if (m->waits || c->ahead.window == 0 || c->one_writer || c->options->threads > 0 ||
	    c->options->limit_rate > 0)
		return;
	uint64_t memory = cpus_memory(CPUS_CGROUP, CPUS_CGROUP_ROOT) / 4 / THREAD_BUFFER_SIZE;
	m->most = memory < READERS_MAX ? (unsigned)memory : READERS_MAX;
	if (m->most < READERS)
		return;
	m->waits = true;
	m->threads = READERS;
	m->settled = 0;
}

/* What a trial has shown, for -vv. */
static void notify_trial(const struct copy *c, unsigned threads)
{
	char text[96];
	const struct measure *m = &c->measure;
	const double gib = 1024.0 * 1024 * 1024;
	snprintf(text, sizeof(text), "a trial: %.2f s per GiB by splice, %.2f s in %u threads",
		 m->cost[WAY_SPLICE] * gib, m->cost[WAY_THREADS] * gib, threads);
	copy_notify(c, FCOPY_EVENT_PLAN, NULL, text);
}

/* Copies the range in pieces, each in the way that was fastest up to then. */
static int copy_in_pieces(struct copy *c, struct transfer *part)
{
	off_t end = part->end;
	int r = 0;
	while (r == 0 && part->offset < end) {
		off_t from = part->offset, left = end - from;
		unsigned idle = measure_asks(&c->measure, left) ? cpus_idle() : 0;
		const bool busy = c->measure.busy;
		struct choice choice = measure_choose(&c->measure, left, idle);
		if (c->measure.busy && !busy)
			copy_notify(c, FCOPY_EVENT_PLAN, NULL,
				    "no trial now: fewer than two CPUs are idle");
		const bool tree = c->helpers;
		/* Does the reader wait? If so, other ways are tried soon. */
		if (from == c->first && c->ahead.most > 0 && (tree || c->options->threads == 0))
			choice.size = MIN(choice.size, SPLICE_SIZE);
		else if (gets_help(c, left))
			choice = (struct choice){
			    WAY_THREADS, c->ahead.window > 0 ? left : MIN(left, HELPED_SIZE),
			    false};
		else if (tree)
			choice.size = MIN(choice.size, PARALLEL_SIZE);
		/* The progress has to follow the device: start writeback often. */
		if (c->options->fsync && copy_progress(c) && !choice.trial)
			choice.size = MIN(choice.size, FLUSHED_SIZE);
		part->end = from + choice.size;
		double start = io_now();
		r = choice.way == WAY_THREADS
			? copy_through_buffer(c, part, MAX(c->measure.threads, 1))
			: copy_by_splice(c, part);
		off_t bytes = part->offset - from;
		double cost = (io_now() - start) / (double)bytes;
		if (choice.way == WAY_THREADS && part->steady_bytes > 0)
			cost = part->steady_seconds / (double)part->steady_bytes;
		const unsigned threads = c->measure.threads;
		measure_note(&c->measure, &choice, bytes, cost);
		if (choice.trial && c->measure.pieces == 0)
			notify_trial(c, threads);
		note_waiting(c);
		start_writeback(c, from, part->offset);
		if (r == 0)
			r = wait_for_device(c, from);
		if (part->offset < part->end)
			break; /* the source ended, or the engine did not finish */
	}
	part->end = end;
	return r;
}

/* Under a rate limit a trial would measure the limit. On tmpfs, whose writer has to allocate and
 * clear pages, and on btrfs, whose writer has to reserve space, threads save less than 15 %
 * (measured on 6.18): a trial would only cost CPU time. */
static bool gains_from_trials(const struct copy *c, unsigned type)
{
	return c->options->limit_rate == 0 && c->options->threads == 0 && !c->one_writer &&
	       type != TMPFS_MAGIC && type != BTRFS_SUPER_MAGIC;
}

void cached_decide(struct copy *c)
{
	if (c->size < PARALLEL_SIZE)
		return;
	const unsigned type = system_type(c->dst.fd);
	c->one_writer = (c->helpers || c->options->threads == 0) &&
			system_type_has(type, SYSTEM_ORDERED);
	if (c->one_writer || c->options->limit_rate > 0)
		c->helpers = NULL;
	if (c->size >= CHOICE_SIZE)
		c->measure.threads = gains_from_trials(c, type) ? cached_threads(c) : 1;
}

const char *cached_plan(const struct copy *c)
{
	off_t size = c->size;
	bool only_readwrite = c->all.zeros || c->all.io.flags;
	if (size >= PARALLEL_SIZE && !c->one_writer && (only_readwrite || c->options->threads > 1))
		return "read and write in threads";
	if (only_readwrite || size < SPLICE_SIZE)
		return c->all.zeros      ? "read and write through one buffer, to find zeros"
		       : c->all.io.flags ? "read and write through one buffer, uncached"
					 : "read and write through one buffer: the file is small";
	if (c->helpers)
		return "splice, or read and write in the threads that are idle";
	if (size < CHOICE_SIZE)
		return "splice: the file is too small for threads";
	if (c->measure.threads <= 1)
		return "splice: threads would save too little here";
	return "splice, or read and write in threads where that proves faster";
}

int cached_copy(struct copy *c, struct transfer *part)
{
	off_t left = part->end - part->offset;
	bool only_readwrite = part->zeros || part->io.flags || c->measure.refused;
	bool asked = c->options->threads > 1 && left >= PARALLEL_SIZE;
	if (only_readwrite || asked || left < SPLICE_SIZE)
		return copy_by_readwrite(c, part);
	int r = copy_in_pieces(c, part);
	return r == ENGINE_NEXT ? copy_by_readwrite(c, part) : r;
}
