/* SPDX-License-Identifier: MIT
 * Threads are a loop, not an engine: each takes the next piece of the range until no piece is left.
 * How many there may be follows from the CPUs and the memory of this process: cpus_*, below.
 */
#include "io/words.h"
#include "move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_SIZE     ((off_t)1 << 20)
#define PIECE_MIN      ((size_t)128 << 10)
#define WRITEBACK_SIZE (FCOPY_THREADS_MAX * PIECE_SIZE) /* threads are rarely this far apart */

/* One range, and the threads that copy it. The members before the lock do not change while they
 * run, but `started` and `helpers`, which are atomic; the lock is held for all after it. Every
 * piece before `next` was taken, and every one before both `next` and `prefix` was copied unless it
 * is in work. */
struct ranges {
	const struct engine *engine;
	const struct transfer *whole;
	size_t buffer_size; /* of each thread */
	char *buffers;      /* one for each thread */
	unsigned threads;   /* wanted */
	unsigned started;   /* of them, that have taken their buffer */
	unsigned helpers;   /* that have joined */
	off_t piece;        /* bytes that a thread takes at a time */
	bool start_writeback;
	pthread_mutex_t lock;
	unsigned warm;         /* threads that have copied a piece */
	double since;          /* when all were warm; 0: not yet */
	off_t since_next;      /* `next` at that time */
	double until;          /* when the last piece was taken ... */
	off_t until_next;      /* ... and `next` before it was */
	off_t next;            /* where the next piece starts */
	off_t prefix;          /* no piece before this was left unfinished */
	bool stop;             /* a thread failed, or reached the end of the source */
	int result;            /* of the first failure */
	struct transfer first; /* ... and its details */
	uint64_t calls;
};

/* Measures from one piece that is taken to another: at both times the threads are in the middle of
 * their work. */
static void note_steady(struct ranges *r)
{
	if (r->warm < r->threads)
		return;
	r->until = io_now();
	r->until_next = r->next;
	if (r->since == 0) {
		r->since = r->until;
		r->since_next = r->next;
	}
}

/* Takes the next piece; second: the thread has copied its first one. Returns false if nothing is
 * left to do. */
static bool take_piece(struct ranges *r, struct transfer *piece, bool second)
{
	pthread_mutex_lock(&r->lock);
	r->warm += second;
	bool more = !r->stop && r->next < r->whole->end;
	if (more) {
		note_steady(r);
		piece->offset = r->next;
		piece->end = r->whole->end - r->next > r->piece ? r->next + r->piece
								: r->whole->end;
		r->next = piece->end;
	}
	pthread_mutex_unlock(&r->lock);
	return more;
}

/* Starts writeback of finished pieces while the rest is copied. fsync still reports a failed
 * writeback: this call does not clear the error (sync_file_range(2)). */
static void start_range_writeback(const struct ranges *r, off_t at)
{
	off_t done = at - r->whole->offset - WRITEBACK_SIZE;
	if (r->start_writeback && done > 0 && done % WRITEBACK_SIZE == 0)
		sync_file_range(r->whole->dst, at - 2 * WRITEBACK_SIZE, WRITEBACK_SIZE,
				SYNC_FILE_RANGE_WRITE);
}

/* Records a piece that ended early and the engine's result, and stops the other threads. */
static void stop_ranges(struct ranges *r, const struct transfer *piece, int result)
{
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	if (piece->offset < r->prefix)
		r->prefix = piece->offset;
	if (result && !r->result) {
		r->result = result;
		r->first = *piece;
	}
	pthread_mutex_unlock(&r->lock);
}

static void copy_pieces(struct ranges *r, void *buffer)
{
	struct transfer piece = *r->whole;
	piece.io.calls = 0;
	piece.ahead = NULL; /* several threads read at once instead */
	piece.kept = NULL;
	piece.buffer = buffer;
	piece.buffer_size = r->buffer_size;
	for (int taken = 0; take_piece(r, &piece, taken == 1); taken++) {
		start_range_writeback(r, piece.offset);
		if (r->whole->ahead)
			ahead_request(r->whole->ahead, piece.src, piece.offset, piece.end);
		int result = r->engine->copy(&piece);
		if (result || piece.offset < piece.end)
			stop_ranges(r, &piece, result);
	}
	pthread_mutex_lock(&r->lock);
	r->calls += piece.io.calls;
	pthread_mutex_unlock(&r->lock);
}

static void *run_thread(void *arg)
{
	struct ranges *r = arg;
	unsigned number = __atomic_fetch_add(&r->started, 1, __ATOMIC_RELAXED);
	copy_pieces(r, r->buffers + number * r->buffer_size);
	return NULL;
}

void ranges_help(struct ranges *r, void *buffer)
{
	__atomic_fetch_add(&r->helpers, 1, __ATOMIC_RELAXED);
	copy_pieces(r, buffer);
}

size_t ranges_buffer_size(const struct ranges *r)
{
	return r->buffer_size;
}

/* The caller's thread copies too: if a thread cannot be created, there is one thread less, which is
 * not a failure. */
static void run_threads(struct ranges *r, unsigned threads, const struct helpers *helpers)
{
	pthread_t thread[FCOPY_THREADS_MAX];
	unsigned started = 0;
	while (started + 1 < threads && cpus_start_thread(&thread[started], run_thread, r) == 0)
		started++;
	if (helpers)
		helpers->invite(helpers->user, r);
	run_thread(r);
	if (helpers)
		helpers->dismiss(helpers->user, r);
	while (started > 0)
		pthread_join(thread[--started], NULL);
}

/* A piece is one buffer, so that the threads finish at about the same time. Smaller pieces than
 * PIECE_MIN would take the lock too often. */
static off_t piece_size(size_t buffer_size)
{
	bool usual = buffer_size >= PIECE_MIN && buffer_size < (size_t)PIECE_SIZE;
	return usual ? (off_t)buffer_size : PIECE_SIZE;
}

int ranges_run(const struct engine *engine, struct transfer *t, unsigned threads,
	       bool start_writeback, const struct helpers *helpers)
{
	struct ranges r = {.engine = engine,
			   .whole = t,
			   .buffer_size = t->buffer_size ? t->buffer_size : (size_t)PIECE_SIZE,
			   .threads = threads,
			   .piece = piece_size(t->buffer_size),
			   .start_writeback = start_writeback,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .next = t->offset,
			   .prefix = TRANSFER_TO_EOF};
	t->threads = 1;
	t->piece = (size_t)r.piece;
	t->steady_bytes = 0;
	if (!engine->positional)
		return transfer_refuse(t, NULL, SIDE_BOTH, ESPIPE);
	if (threads > SIZE_MAX / r.buffer_size)
		threads = 1;
	r.buffers = t->buffer ? t->buffer : io_alloc(threads * r.buffer_size);
	if (!r.buffers) {
		threads = 1;
		r.buffers = io_alloc(r.buffer_size);
	}
	if (!r.buffers)
		return transfer_fail(t, "mmap", SIDE_NONE, -errno);
	run_threads(&r, threads, helpers);
	if (!t->buffer)
		io_free(r.buffers, threads * r.buffer_size);
	t->offset = r.prefix < r.next ? r.prefix : r.next;
	t->io.calls += r.calls;
	t->threads = r.started + r.helpers;
	t->steady_bytes = r.until_next - r.since_next;
	t->steady_seconds = r.until - r.since;
	if (r.result) {
		t->call = r.first.call;
		t->operation = r.first.operation;
		t->side = r.first.side;
		t->refusal = r.first.refusal;
	}
	return r.result;
}

/* How many CPUs and how much memory this process may use, how many CPUs have nothing to do, and
 * threads on different CPUs. */

#define READ_AHEAD ((uint64_t)16 << 20)
#define STACK_MIN  ((size_t)1 << 20) /* musl has 128 KiB; two attributes take as much */

/* The CPUs of one cpu.max, "QUOTA PERIOD" in microseconds or "max PERIOD", rounded down: a second
 * thread gains nothing from half a CPU. */
static unsigned parse_quota(const char *text)
{
	char *end;
	unsigned long long quota = strtoull(text, &end, 10), period = strtoull(end, NULL, 10);
	if (end == text || quota == 0 || period == 0 || quota / period > UINT_MAX)
		return UINT_MAX;
	return quota < period ? 1 : (unsigned)(quota / period);
}

/* One memory.max in bytes, or "max". */
static uint64_t parse_memory(const char *text)
{
	char *end;
	unsigned long long bytes = strtoull(text, &end, 10);
	return end == text ? UINT64_MAX : bytes;
}

static uint64_t parse_cpus(const char *text)
{
	unsigned n = parse_quota(text);
	return n == UINT_MAX ? UINT64_MAX : n;
}

/* A limit of cgroups, in version 2 and in version 1. */
struct limit {
	const char *file;            /* of version 2 */
	const char *controller;      /* of version 1, and the directory of its mount ... */
	const char *file1, *period1; /* ... whose files follow one another; NULL: one */
	uint64_t (*parse)(const char *text);
};

static const struct limit limit_cpus = {"cpu.max", "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us",
					parse_cpus},
			  limit_memory = {"memory.max", "memory", "memory.limit_in_bytes", NULL,
					  parse_memory};

/* The group of this process in a line "ID:CONTROLLERS:/GROUP", of which version 2 has "0::/GROUP".
 * controller: NULL for version 2. False: there is none. */
static bool find_group(const char *text, const char *controller, char group[PATH_MAX])
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *names = strchr(line, ':');
		const char *path = names ? strchr(names + 1, ':') : NULL;
		const size_t n = path ? (size_t)(path - names - 1) : 0;
		const size_t length = path ? strcspn(path + 1, "\n") : 0;
		if (!path || path[1] != '/' || length >= PATH_MAX ||
		    !(controller ? words_list_has(names + 1, n, controller)
				 : n == 0 && *line == '0'))
			continue;
		memcpy(group, path + 1, length);
		group[length] = '\0';
		return true;
	}
	return false;
}

static uint64_t read_limit(const struct limit *l, bool one, const char *dir)
{
	char path[3 * PATH_MAX], text[64] = "", period[64] = "";
	snprintf(path, sizeof(path), "%s/%s", dir, one ? l->file1 : l->file);
	if (!io_read_text(path, text, sizeof(text) / 2))
		return UINT64_MAX;
	if (one && l->period1) { /* as version 2 writes it */
		snprintf(path, sizeof(path), "%s/%s", dir, l->period1);
		if (text[0] == '-' || !io_read_text(path, period, sizeof(period) / 2))
			return UINT64_MAX;
		text[strcspn(text, "\n")] = '\0';
		strcat(strcat(text, " "), period);
	}
	return l->parse(text);
}

/* The lowest limit from the group up to the root: each one limits all below it. In a container the
 * mount may begin at the group itself. */
static uint64_t least_above(const struct limit *l, bool one, const char *root, char *group)
{
	char dir[2 * PATH_MAX];
	uint64_t least = UINT64_MAX;
	for (char *slash = group + strlen(group); slash; slash = strrchr(group, '/')) {
		*slash = '\0';
		snprintf(dir, sizeof(dir), "%s%s%s%s", root, one ? "/" : "",
			 one ? l->controller : "", group);
		const uint64_t n = read_limit(l, one, dir);
		least = n < least ? n : least;
	}
	return least;
}

/* Version 1 and version 2 can be mounted side by side; a controller belongs to one of them.
 * UINT64_MAX: there is no limit. */
static uint64_t least_limit(const char *cgroup, const char *root, const struct limit *l)
{
	char text[PATH_MAX], group[PATH_MAX];
	uint64_t least = UINT64_MAX;
	if (!io_read_text(cgroup, text, sizeof(text)))
		return least;
	for (int one = 0; one < 2; one++)
		if (find_group(text, one ? l->controller : NULL, group)) {
			const uint64_t n = least_above(l, one, root, group);
			least = n < least ? n : least;
		}
	return least;
}

unsigned cpus_quota(const char *cgroup, const char *root)
{
	uint64_t least = least_limit(cgroup, root, &limit_cpus);
	return least < UINT_MAX ? (unsigned)least : UINT_MAX;
}

uint64_t cpus_memory(const char *cgroup, const char *root)
{
	return least_limit(cgroup, root, &limit_memory);
}

off_t cpus_read_ahead(unsigned copies)
{
	uint64_t memory = cpus_memory(CPUS_CGROUP, CPUS_CGROUP_ROOT) / 8;
	return (off_t)(memory < READ_AHEAD ? memory : READ_AHEAD) / copies;
}

unsigned cpus_allowed(void)
{
	cpu_set_t set;
	/* More than 1024 CPUs do not fit into the set: EINVAL. */
	unsigned n = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
	unsigned quota = n > 1 ? cpus_quota(CPUS_CGROUP, CPUS_CGROUP_ROOT) : n;
	return n < quota ? n : quota;
}

unsigned cpus_idle(void)
{
	char text[128];
	long online = sysconf(_SC_NPROCESSORS_ONLN), running;
	if (!io_read_text("/proc/loadavg", text, sizeof(text)) ||
	    sscanf(text, "%*s %*s %*s %ld/", &running) != 1)
		return UINT_MAX;
	long idle = online - (running - 1); /* one of the runnable tasks is the caller */
	return idle > 0 ? (unsigned)idle : 0;
}

int cpus_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	cpu_set_t all, others;
	pthread_attr_t attributes;
	size_t stack = 0;
	pthread_attr_init(&attributes);
	if (pthread_attr_getstacksize(&attributes, &stack) == 0 && stack < STACK_MIN)
		pthread_attr_setstacksize(&attributes, STACK_MIN);
	int err = pthread_create(thread, &attributes, run, arg);
	pthread_attr_destroy(&attributes);
	if (err != 0 || sched_getaffinity(0, sizeof(all), &all) < 0)
		return err;
	others = all;
	CPU_CLR((unsigned)sched_getcpu(), &others);
	/* EINVAL: there is no other CPU. A thread that is on another one already stays there. */
	if (pthread_setaffinity_np(*thread, sizeof(others), &others) == 0)
		pthread_setaffinity_np(*thread, sizeof(all), &all);
	return 0;
}
