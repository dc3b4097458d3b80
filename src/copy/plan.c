/* SPDX-License-Identifier: MIT
 * The course of a copy: a clone, or the extents of the source, and then what follows them. mover.h
 * chooses the engine for each range.
 */
#include "allocate.h"
#include "endpoints/error.h"
#include "io/system.h"
#include "move.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/param.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Runs `run` up to the end of the source. A source that grows faster than it is copied would have
 * none: it ends at the size that it has when `run` is past the size that it had. A file of procfs
 * or FUSE may have more bytes than any size that it reports, and is read to its end. */
static int plan_to_end(struct copy *c, int (*run)(struct copy *, off_t end))
{
	struct stat now;
	const off_t end = move_look_again_at(c);
	int r = run(c, end);
	if (r || c->all.offset < end || end == c->limit)
		return r;
	off_t at = c->src.positional ? c->all.offset : lseek(c->src.fd, 0, SEEK_CUR);
	bool known = at >= 0 && fstat(c->src.fd, &now) == 0 && now.st_size >= at &&
		     now.st_size > c->src.st.st_size;
	off_t grown = known ? c->all.offset + (now.st_size - at) : c->limit;
	c->outgrown = grown < c->limit;
	grown = MIN(grown, c->limit);
	return c->all.offset < grown ? run(c, grown) : 0;
}

/* Cheap questions about a file, before the first byte is moved. */

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5; the same on all architectures but alpha */
#endif

/* struct cachestat_range and struct cachestat of <linux/mman.h>, under names of our own: headers
 * before 6.5 lack the structs, and libc's headers may define SYS_cachestat without them. */
struct ask_range {
	uint64_t off, len;
};
struct ask_cached {
	uint64_t nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};

/* Asked by a read, also of a file that will be written: one flag of the file system decides on
 * both. If the file may not be read, assume that its file system supports it. */
static bool ask_is_uncached(int fd)
{
	char byte;
	struct iovec v = {.iov_base = &byte, .iov_len = 1};
	struct stat st;
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return false;
	int again = open(io_proc_path(fd).text, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again < 0)
		return true;
	bool no = preadv2(again, &v, 1, 0, IO_UNCACHED) < 0 &&
		  (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS);
	close(again);
	return !no;
}

/* Is so little of the source in the page cache that the device must be read anyway? */
static bool ask_is_cold(int fd, off_t size)
{
	struct ask_range range = {.off = 0, .len = (uint64_t)size};
	struct ask_cached cache;
	if (syscall(SYS_cachestat, fd, &range, &cache, 0) < 0)
		return false;
	return cache.nr_cache < (uint64_t)size / (uint64_t)sysconf(_SC_PAGESIZE) / 4;
}

#define THREADS_MAX 4 /* more only wait for the inode lock of the destination */

/* The threads that the user asks for, or that the CPUs allow. */
static unsigned wanted_threads(const struct copy *c, bool one_writer)
{
	if (one_writer)
		return 1;
	return c->options->threads ? c->options->threads : MIN(cpus_allowed(), THREADS_MAX);
}

#define MEMORY_MIN ((off_t)64 << 20) /* to ask how much memory there is */

/* Is it larger than the memory that this process may use? Then the page cache would have to write
 * pages back, and to drop them, before it gets others (1 GiB, cold, ext4, in a memory cgroup of
 * 256 MiB: 3 s by direct I/O, 6 s through the cache). */
static bool exceeds_memory(const struct copy *c)
{
	if (c->size < MEMORY_MIN || !system_has(c->src.fd, SYSTEM_LOCAL) ||
	    !system_has(c->dst.fd, SYSTEM_LOCAL))
		return false;
	const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t group = cpus_memory(CPUS_CGROUP, CPUS_CGROUP_ROOT);
	return (uint64_t)c->size > MIN(all, group);
}

/* Use direct I/O with --no-cache, and if the data must be read from the storage and written to it
 * anyway: then the page cache would only cost CPU time. */
static bool want_direct(const struct copy *c, bool exceeds)
{
	if (c->options->no_cache)
		return true;
	return (c->options->fsync || exceeds) && c->size >= MOVER_DIRECT_SIZE &&
	       ask_is_cold(c->src.fd, c->size);
}

/* A write to the file must not change what waits to be sent. */
static bool sends_copies(const struct copy *c)
{
	return c->dst.ops->answer && c->last - c->first < DEMAND_QUEUED;
}

/* What the mover has to know. Asks the two files by cheap queries. */
static void plan_learn(struct copy *c)
{
	const struct fcopy_options *o = c->options;
	const bool files = c->src.positional && c->dst.positional, mode = c->mode->engine;
	struct mover_facts *f = &c->facts;
	*f = (struct mover_facts){.mode = mode,
				  .mode_threads = c->mode->threads,
				  .mode_buffer = c->all.buffer_size,
				  .size = c->size,
				  .files = files,
				  .stored = c->dst.positional,
				  .to_socket = c->dst.ops->receipt && c->src.positional,
				  .memory = c->all.sum || sends_copies(c),
				  .zeros = c->all.zeros,
				  .uncached = o->no_cache,
				  .asked = o->threads > 1,
				  .paced = o->fsync && c->monitor.progress};
	if (mode || !files) {
		f->threads = c->mode->threads ? wanted_threads(c, false) : 1;
		return;
	}
	const bool large = c->size >= MOVER_PARALLEL_SIZE, free = o->threads == 0;
	const unsigned type = large ? system_type(c->dst.fd) : 0;
	f->exceeds = exceeds_memory(c);
	f->direct = !c->all.zeros && want_direct(c, f->exceeds);
	f->remote = c->size > MOVER_SMALL_SIZE && !o->no_cache && !c->all.zeros &&
		    o->reflink != FCOPY_WHEN_NEVER && system_has(c->src.fd, SYSTEM_REMOTE);
	f->one_writer = large && (c->helpers || free) && system_type_has(type, SYSTEM_ORDERED);
	f->helped = c->helpers && !f->one_writer && o->limit_rate == 0;
	f->threads = large ? wanted_threads(c, f->one_writer) : 1;
	f->looks = c->ahead.most > 0 && (f->helped || free);
	f->may_wait = free && !f->one_writer && o->limit_rate == 0;
	if (c->seen.threads == 0 && c->size >= MOVER_CHOICE_SIZE)
		c->seen.threads = f->may_wait && !system_type_has(type, SYSTEM_ONE_WRITER)
				      ? f->threads
				      : 1;
}

/* Copies what follows the planned range, until a read returns the end of file: the source may have
 * grown. */
static int plan_read_on(struct copy *c, off_t end)
{
	return move_range(c, &c->all, end, true);
}

/* Does that with one buffer on the stack: a small file takes only a read, a write, and a second
 * read unless its st_size is reliable; a larger one, after the planned bytes, takes only the last
 * read. The buffer has room for more than a small file. */
static int plan_read_on_small(struct copy *c, off_t end)
{
	char buffer[MOVER_SMALL_SIZE + 4096];
	c->all.end = end;
	c->all.buffer = buffer;
	c->all.buffer_size = sizeof(buffer);
	int r = move_by(c, &engine_readwrite, &c->all, 0);
	c->all.buffer = NULL;
	c->all.buffer_size = 0;
	return r;
}

/* A mode that the user selected: its one engine copies every byte, or the copy fails. */
static int plan_mode(struct copy *c, const struct engine *engine)
{
	struct transfer *t = &c->all;
	if (engine != &engine_reflink)
		space_check(c);
	plan_learn(c);
	int r = allocate_blocks(c, t->offset, c->size);
	if (r == 0 && c->mode->threads)
		r = move_range(c, t, c->size, false);
	if (r == 0)
		r = plan_to_end(c, plan_read_on);
	c->needs_truncate = true;
	return r == RESULT_NEXT ? move_refused(c, engine, t) : r;
}

/* Copies [all.offset, end). */
static int plan_data(struct copy *c, off_t end)
{
	struct transfer part = c->all;
	int r = move_range(c, &part, end, false);
	c->all.offset = part.offset;
	return r;
}

static int skip_hole(struct copy *c, const struct extent *x)
{
	int r = allocate_hole(c, x->start, x->end);
	if (r == 0 && x->kind == EXTENT_UNWRITTEN && c->options->sparse <= FCOPY_WHEN_AUTO)
		r = allocate_unwritten(c, x->start, x->end);
	if (r < 0)
		return r;
	if (c->fills && allocate_fill(c, x->end) < 0)
		c->fills = false; /* the next write reports the reason */
	c->report->holes += c->fills ? 0 : (uint64_t)(x->end - x->start);
	transfer_skip(&c->all, x->end);
	return 0;
}

/* st_size may be larger than what read(2) returns: then no zeros may take the place of the rest. */
static bool ends_before(struct copy *c, off_t end)
{
	char byte;
	return io_read(&c->all.io, c->src.fd, &byte, 1, end - 1) <= 0;
}

/* The first write after a hole failed with r, and the hole was filled: it may succeed now. */
static bool fills_hole(struct copy *c, int r, off_t start)
{
	if ((r != -ESPIPE && r != -EINVAL && r != -EOPNOTSUPP) || c->all.offset != start ||
	    c->fills || c->report->error.path != c->dst.path || allocate_fill(c, start) < 0)
		return false;
	c->report->error = (struct fcopy_error){0};
	c->report->holes = 0;
	return true;
}

/* Copies data, keeps holes, and allocates unwritten extents. */
static int plan_extents(struct copy *c, off_t size)
{
	struct extents x;
	struct extent e;
	int r = 0;
	extents_start(&x, c->src.fd, c->all.offset, size, &c->src.st);
	while (r == 0 && extents_next(&x, &e)) {
		if (e.kind != EXTENT_DATA && e.end == size && ends_before(c, size))
			e.kind = EXTENT_DATA;
		if (e.kind != EXTENT_DATA) {
			r = skip_hole(c, &e);
			continue;
		}
		r = c->all.zeros ? 0 : allocate_blocks(c, e.start, e.end);
		if (r == 0)
			r = plan_data(c, e.end);
		if (r < 0 && fills_hole(c, r, e.start))
			r = plan_data(c, e.end);
		if (c->all.offset < e.end)
			break; /* failed, or the source was truncated during the copy */
	}
	return r;
}

static int try_clone(struct copy *c)
{
	int r = move_by(c, &engine_reflink, &c->all, 0);
	c->needs_truncate |= r == 0 && !c->all.ended; /* DST may extend past offset */
	if (r == RESULT_NEXT && c->options->reflink == FCOPY_WHEN_ALWAYS)
		return move_refused(c, &engine_reflink, &c->all);
	return r;
}

/* With --sparse=always, blocks of zeros become holes, also if the source is a pipe. */
static void plan_skip_zeros(struct copy *c)
{
	c->all.zeros = copy_old(c) == OLD_OVERWRITTEN ? ZEROS_PUNCH : ZEROS_SKIP;
	c->needs_truncate = true;
}

/* The holes that the source reports are not believed: reads them, and skips the zeros. */
static bool reads_holes(struct copy *c, bool dense)
{
	if (dense || c->options->sparse == FCOPY_WHEN_NEVER ||
	    !extents_miss_data(c->src.fd, &c->src.st))
		return false;
	plan_skip_zeros(c);
	return true;
}

/* Direct I/O needs extents that start and end at a multiple of its alignment; only the end of the
 * file may be unaligned. */
static bool is_data_aligned(const struct copy *c)
{
	const off_t align = (off_t)io_direct_align(c->src.fd, c->dst.fd), size = c->src.st.st_size;
	struct extents x;
	struct extent e;
	if (c->options->sparse == FCOPY_WHEN_NEVER)
		return true;
	extents_start(&x, c->src.fd, c->all.offset, size, &c->src.st);
	while (extents_next(&x, &e))
		if (e.kind == EXTENT_DATA &&
		    (e.start % align != 0 || (e.end % align != 0 && e.end < size)))
			return false;
	return true;
}

/* --no-cache must fail before the first hole is punched. Uncached I/O works anywhere in a file; an
 * engine reports whether it supports these files only when it is called. */
static int check_uncached(struct copy *c)
{
	bool src = ask_is_uncached(c->src.fd), dst = ask_is_uncached(c->dst.fd);
	struct transfer nothing = c->all;
	nothing.end = nothing.offset;
	if (src && dst)
		return 0;
	if (!c->all.zeros && engine_direct.copy(&nothing) == 0 && is_data_aligned(c))
		return 0;
	return error_refuse(&c->report->error, src ? c->dst.path : c->src.path, EOPNOTSUPP,
			    "the page cache cannot be bypassed here", FCOPY_ADVICE_CACHE);
}

static int plan_file(struct copy *c)
{
	const struct fcopy_options *o = c->options;
	const struct stat *st = &c->src.st;
	bool dense = st->st_blocks * 512 >= st->st_size;
	/* FICLONE is of the whole file: not of the rest, and not of --count bytes. */
	bool whole = c->all.offset == 0 && c->all.end >= st->st_size;
	bool clones = o->reflink == FCOPY_WHEN_ALWAYS ||
		      (o->reflink <= FCOPY_WHEN_AUTO && o->preallocate != FCOPY_WHEN_ALWAYS &&
		       whole);
	if ((c->size > 0 || o->reflink == FCOPY_WHEN_ALWAYS) && clones && !c->skips_clone &&
	    o->sparse <= FCOPY_WHEN_AUTO && !o->no_cache) {
		int r = try_clone(c);
		if (r != RESULT_NEXT)
			return r;
	}
	const bool small = c->size <= MOVER_SMALL_SIZE && (dense || o->sparse > FCOPY_WHEN_AUTO) &&
			   !o->no_cache && o->preallocate != FCOPY_WHEN_ALWAYS;
	if (small && c->many)
		return 0; /* nobody wants to know the plan */
	space_check(c);
	bool doubtful = reads_holes(c, dense);
	plan_learn(c);
	if (o->no_cache && !c->facts.direct)
		c->all.io.flags = IO_UNCACHED;
	copy_notify(c, FCOPY_EVENT_PLAN, NULL, mover_plan(&c->facts, &c->seen));
	if (small)
		return 0; /* plan_read_on_small() copies the whole file */
	if (o->sparse != FCOPY_WHEN_NEVER && o->preallocate != FCOPY_WHEN_ALWAYS && !doubtful)
		return plan_extents(c, c->size);
	int r = allocate_blocks(c, c->all.offset, c->size);
	return r < 0 ? r : plan_data(c, c->size);
}

int plan_run(struct copy *c)
{
	bool files = c->src.positional && c->dst.positional;
	if (c->mode->engine)
		return plan_mode(c, engine_find(c->mode->engine));
	if (c->options->sparse == FCOPY_WHEN_ALWAYS && c->dst.positional)
		plan_skip_zeros(c);
	if (!files && c->options->no_cache)
		c->all.io.flags = IO_UNCACHED;
	int r = c->options->no_cache ? check_uncached(c) : 0;
	if (r == 0 && !files) {
		space_check(c);
		plan_learn(c);
	}
	if (r == 0 && files)
		r = plan_file(c);
	if (r < 0 || c->all.ended)
		return r;
	bool little = c->size <= MOVER_SMALL_SIZE ||
		      (c->all.offset >= c->size && !c->options->no_cache);
	return plan_to_end(c, files && little ? plan_read_on_small : plan_read_on);
}
