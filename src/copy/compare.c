/* SPDX-License-Identifier: MIT
 * Compares two files, read from the storage if possible: for --verify and --resume. Compares the
 * copy of a stream with the checksum of what was written.
 */
#include "allocate.h"
#include "conflicts.h"
#include "copy.h"
#include "endpoints/error.h"
#include "io/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_SIZE    ((size_t)1 << 20)
#define LARGEST_ALIGN ((size_t)4096) /* of direct I/O on known disks */

struct comparison {
	struct copy *copy;
	struct io io;
	int src, dst;
	char *memory; /* two blocks */
	bool cached;  /* one of them was read through the page cache */
};

/* O_NOATIME: the copy may already have the source's access time. Only the owner may use the flag.
 */
static int open_to_read(const char *link, int flags)
{
	int fd = open(link, O_RDONLY | O_NOATIME | O_CLOEXEC | flags);
	if (fd < 0 && errno == EPERM)
		fd = open(link, O_RDONLY | O_CLOEXEC | flags);
	return fd;
}

/* With a mode like 0044 even the owner cannot reopen the file, but can read the open descriptor. */
static int open_cached(const char *link, int fd)
{
	int again = open_to_read(link, 0);
	if (again < 0 && errno == EACCES && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
		again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return again;
}

/* Opens the file again. past_cache: with O_DIRECT, after its cached pages were discarded. O_DIRECT
 * alone is not enough: btrfs reads compressed extents through the cache, and ext4 with data=journal
 * every byte; statx(2) shows that. */
static int open_again(struct comparison *m, int fd, const char *path, bool past_cache)
{
	const struct io_path link = io_proc_path(fd);
	int again = -1;
	if (past_cache) {
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (io_direct_align(fd, fd) > 0)
			again = open_to_read(link.text, O_DIRECT);
	}
	if (again < 0) {
		again = open_cached(link.text, fd);
		m->cached = true;
	}
	/* Without /proc the open descriptor itself is read, if it can be. */
	if (again < 0 && errno == ENOENT && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY)
		again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (again < 0)
		m->copy->failed = fd == m->copy->dst.fd ? STEP_OPEN : STEP_OTHER;
	return again < 0 ? error_proc(&m->copy->report->error, "open", path, errno) : again;
}

/* Reads a block at `at`; returns less only at the end of the file. Some files return short reads
 * before that. With O_DIRECT a short read at an unaligned offset is the end of the file: the next
 * read fails with EINVAL. */
static ssize_t read_block(struct io *io, int fd, char *block, off_t at)
{
	size_t have = 0;
	while (have < BLOCK_SIZE) {
		ssize_t got = io_read(io, fd, block + have, BLOCK_SIZE - have, at + (off_t)have);
		if (got == 0 || (got == -EINVAL && have % LARGEST_ALIGN != 0))
			break;
		if (got < 0)
			return got;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* Some FUSE file systems pass O_DIRECT on to their own file, but read that into a buffer that is
 * not aligned: every read fails, with EINVAL or EPERM. Then the file is read through the page
 * cache. */
static ssize_t read_file(struct comparison *m, int *fd, const struct endpoint *of, char *block,
			 off_t at)
{
	const ssize_t n = read_block(&m->io, *fd, block, at);
	if (n >= 0 || n == -EIO || n == -EINTR || !(fcntl(*fd, F_GETFL) & O_DIRECT))
		return n;
	const int again = open_cached(io_proc_path(of->fd).text, of->fd);
	if (again < 0)
		return n;
	close(*fd);
	*fd = again;
	m->cached = true;
	return read_block(&m->io, *fd, block, at);
}

static size_t equal_bytes(const char *a, const char *b, size_t n)
{
	size_t i = 0;
	if (memcmp(a, b, n) == 0)
		return n;
	while (a[i] == b[i])
		i++;
	return i;
}

/* On SMB the lock of a part, flock(2), is a lock of the server: it lets only the descriptor that
 * holds it read (fs/smb/client/file.c, cifs_flock). */
static ssize_t read_copy(struct comparison *m, char *block, off_t at)
{
	ssize_t n = read_file(m, &m->dst, &m->copy->dst, block, at);
	if (n != -EACCES || (fcntl(m->copy->dst.fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
		return n;
	int holder = fcntl(m->copy->dst.fd, F_DUPFD_CLOEXEC, 0);
	if (holder < 0)
		return n;
	close(m->dst);
	m->dst = holder;
	m->cached = true;
	return read_block(&m->io, m->dst, block, at);
}

/* Returns 0, or -errno, recorded: the copy is cancelled. */
static int note_compared(const struct comparison *m, off_t bytes)
{
	struct fcopy_progress *progress = m->copy->options->progress;
	if (progress) {
		__atomic_store_n(&progress->bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
		__atomic_store_n(&progress->moved, (uint64_t)bytes, __ATOMIC_RELAXED);
	}
	return io_cancelled(&m->io) ? error_refuse(&m->copy->report->error, m->copy->dst.path,
						   EINTR, "interrupted", FCOPY_ADVICE_NONE)
				    : 0;
}

/* The holes of one file, which read as zeros. */
struct holes {
	struct extents *all; /* the caller's: it has no fixed size for the compiler */
	struct extent now;
	bool none; /* every byte is read */
};

static void holes_start(struct holes *h, int fd, off_t start, off_t end)
{
	struct stat st;
	*h = (struct holes){.all = h->all, .now = {EXTENT_DATA, start, start}};
	h->none = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < end ||
		  st.st_blocks >= st.st_size / 512 || extents_miss_data(fd, &st);
	if (!h->none)
		extents_start(h->all, fd, start, end, &st);
}

/* The end of the hole at this offset; the offset itself if there is none. */
static off_t holes_end(struct holes *h, off_t at)
{
	while (!h->none && h->now.end <= at)
		h->none = !extents_next(h->all, &h->now);
	return h->none || h->now.kind == EXTENT_DATA ? at : h->now.end;
}

/* Skips what is a hole in both files. */
static off_t skip_holes(struct holes holes[2], off_t at)
{
	off_t from, end;
	do {
		from = at;
		end = holes_end(&holes[0], at);
		if (end > at)
			at = holes_end(&holes[1], at) < end ? holes_end(&holes[1], at) : end;
	} while (at > from);
	return at;
}

/* Returns the offset of the first difference, or `end`, or -errno. holes: of both files, or NULL.
 */
static off_t count_equal(struct comparison *m, off_t start, off_t end, struct holes *holes)
{
	char *a = m->memory, *b = m->memory + BLOCK_SIZE;
	struct fcopy_error *e = &m->copy->report->error;
	for (off_t at = start; at < end;) {
		const off_t data = holes ? skip_holes(holes, at) : at;
		if (data >= end)
			break;
		if (data - data % (off_t)LARGEST_ALIGN > at)
			at = data - data % (off_t)LARGEST_ALIGN;
		ssize_t na = read_file(m, &m->src, &m->copy->src, a, at), nb = read_copy(m, b, at);
		if (na < 0)
			return error_operation(e, "read back", "pread", m->copy->src.path,
					       (int)-na);
		if (nb < 0)
			return error_operation(e, "read back", "pread", m->copy->dst.path,
					       (int)-nb);
		size_t n = (size_t)(na < nb ? na : nb), same = equal_bytes(a, b, n);
		if (same < BLOCK_SIZE)
			return at + (off_t)same < end ? at + (off_t)same : end;
		at += (off_t)n;
		int r = note_compared(m, at - start);
		if (r < 0)
			return r;
	}
	return end;
}

/* Reads the destination's first `end` bytes from the storage. Returns 1 if c->sum is their sum, 0
 * if it is not, or -errno with the failure recorded. *cached: as of compare_files(). */
static int compare_sum(struct copy *c, off_t end, bool *cached)
{
	struct comparison m = {.copy = c, .src = -1, .io.cancel = c->options->cancel};
	uint64_t sum = 0;
	off_t at = 0;
	m.memory = io_alloc(BLOCK_SIZE);
	if (!m.memory)
		return error_call(&c->report->error, "mmap", c->dst.path, errno);
	int r = m.dst = open_again(&m, c->dst.fd, c->dst.path, true);
	while (r >= 0 && at < end) {
		ssize_t n = read_copy(&m, m.memory, at);
		if (n < 0)
			r = error_operation(&c->report->error, "read back", "pread", c->dst.path,
					    (int)-n);
		if (n <= 0)
			break;
		n = n < end - at ? n : end - at;
		sum = sum_add(sum, m.memory, (size_t)n);
		at += n;
		r = note_compared(&m, at);
	}
	io_close(m.dst);
	*cached = m.cached;
	io_free(m.memory, BLOCK_SIZE);
	return r < 0 ? r : at == end && sum == c->sum;
}

/* The descriptors may share their offset with one of the caller. */
static off_t compare_open(struct comparison *m, off_t start, off_t end, bool reads_holes)
{
	const off_t at[2] = {lseek(m->src, 0, SEEK_CUR), lseek(m->dst, 0, SEEK_CUR)};
	struct extents src, dst;
	struct holes holes[2] = {{.all = &src}, {.all = &dst}};
	if (reads_holes)
		return count_equal(m, start, end, NULL);
	holes_start(&holes[0], m->src, start, end);
	holes_start(&holes[1], m->dst, start, end);
	off_t r = count_equal(m, start, end, holes);
	lseek(m->src, at[0], SEEK_SET);
	lseek(m->dst, at[1], SEEK_SET);
	return r;
}

off_t compare_files(struct copy *c, off_t start, off_t end, bool past_cache, bool reads_holes,
		    bool *cached)
{
	struct comparison m = {.copy = c, .io.cancel = c->options->cancel};
	off_t r;
	*cached = false;
	m.memory = io_alloc(2 * BLOCK_SIZE);
	if (!m.memory)
		return error_call(&c->report->error, "mmap", c->dst.path, errno);
	m.src = r = open_again(&m, c->src.fd, c->src.path, past_cache);
	if (r >= 0) {
		m.dst = r = open_again(&m, c->dst.fd, c->dst.path, past_cache);
		if (r >= 0) {
			r = compare_open(&m, start, end, reads_holes);
			close(m.dst);
		}
		close(m.src);
	}
	*cached = m.cached;
	io_free(m.memory, 2 * BLOCK_SIZE);
	return r;
}

/* Compares a copy with its source: before the commit (--verify), and before an interrupted copy is
 * continued (--resume). */

#define RESUME_ALIGN ((off_t)4096) /* direct I/O continues at a block */

int verify_copy(struct copy *c)
{
	bool cached = false;
	struct fcopy_report *report = c->report;
	double start = io_now();
	c->failed = STEP_OTHER;
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)(c->all.offset - c->first));
	const char *in_place = c->dst.old == OLD_OVERWRITTEN ? ", and was written in place" : "";
	off_t same = c->src.positional
			 ? compare_files(c, c->first, c->all.offset, true, true, &cached)
			 : compare_sum(c, c->all.offset, &cached);
	report->seconds[FCOPY_PHASE_VERIFY] += io_now() - start;
	if (same < 0) {
		/* Some object stores open no file that is being written. */
		if (c->failed == STEP_OPEN && !report->error.reason)
			report->error.advice = FCOPY_ADVICE_NO_FSYNC;
		return (int)same;
	}
	if (c->src.positional ? same < c->all.offset : same == 0) {
		if (c->resumes) /* a part keeps only what is equal */
			c->all.offset = same;
		if (c->src.positional)
			snprintf(report->detail, sizeof(report->detail),
				 "differs from the source at byte %jd%s", (intmax_t)same, in_place);
		else
			snprintf(report->detail, sizeof(report->detail),
				 "differs from what the source sent%s", in_place);
		return error_refuse(&report->error, c->dst.path, EIO, report->detail,
				    FCOPY_ADVICE_NONE);
	}
	if (cached)
		copy_warn(c, c->dst.path, EOPNOTSUPP,
			  access("/proc/self/fd", F_OK) < 0
			      ? "verified through the page cache: /proc is not mounted"
			      : "verified through the page cache: O_DIRECT is unsupported here",
			  FCOPY_ADVICE_NONE);
	return 0;
}

/* A clone is one call for the whole file. */
static bool clones_only(const struct copy *c)
{
	return c->options->reflink == FCOPY_WHEN_ALWAYS || mode_uses(c->mode, engine_reflink.name);
}

/* Is st_size where reads end? Files of procfs and sysfs report another size. */
static bool size_is_true(const struct copy *c)
{
	char byte;
	const bool whole = c->size < c->limit;
	return pread(c->src.fd, &byte, 1, whole ? c->size : c->size - 1) == !whole;
}

/* The part is to lose what follows its first `same` bytes: not if the size of the source will make
 * the copy fail. */
static int verify_may_truncate(struct copy *c)
{
	return c->options->strict && size_is_true(c) ? copy_check_size(c, (uint64_t)c->size) : 0;
}

/* Makes the copy continue after its first `same` bytes. A clone replaces what is in the part by one
 * call; if it is refused, the part lacks only what is after the end of SRC. */
static int verify_continue(struct copy *c, off_t same, off_t size)
{
	const bool clones = clones_only(c);
	/* First: the journal must not promise bytes that are truncated. */
	const off_t begun = c->dst.ops->begin_partial(&c->dst, same);
	if (begun < 0)
		return error_operation(&c->report->error, "write of its journal", "write",
				       c->dst.path, (int)-begun);
	c->resumes = true;
	c->all.fresh &= !clones || size == 0;
	c->intact = clones;
	/* FICLONE fails if its last block is partial and DST is longer. */
	const off_t end = clones ? c->size : same;
	if (!clones) {
		c->all.offset = same;
		c->report->resumed = (uint64_t)same;
	}
	const int cut = end < size ? io_truncate(c->dst.fd, end) : 0;
	if (cut < 0) {
		error_call(&c->report->error, "ftruncate", c->dst.path, -cut);
		c->report->error.advice = FCOPY_ADVICE_REMOVE_PART;
	}
	return cut;
}

int verify_prefix(struct copy *c)
{
	bool cached;
	struct stat part;
	off_t known = c->dst.ops->begin_partial ? c->dst.ops->begin_partial(&c->dst, -1) : -1;
	if (known < 0)
		return error_refuse(&c->report->error, c->dst.path, EINVAL,
				    "has no .fcopy-part that could be resumed", FCOPY_ADVICE_USAGE);
	if (fstat(c->dst.fd, &part) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	/* After a failed writeback the page cache may contain data that the disk does not, and the
	 * next fsync would succeed. --fsync promises that nothing is left of one that nobody saw.
	 */
	const bool past_cache = c->options->fsync || c->dst.past_cache;
	off_t end = part.st_size < c->limit ? part.st_size : c->limit;
	double start = io_now();
	known = known < end ? known : end;
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)(end - known));
	/* A new part has nothing to compare. Some object stores open no file that is being written.
	 */
	off_t same = end > known ? compare_files(c, known, end, past_cache, false, &cached) : known;
	c->report->seconds[FCOPY_PHASE_VERIFY] += io_now() - start;
	if (same < 0)
		return (int)same;
	const char *restarts = c->dst.restarts;
	const bool loses = same < part.st_size;
	int r = loses ? verify_may_truncate(c) : 0;
	if (r == 0)
		r = verify_continue(c, same - same % RESUME_ALIGN, part.st_size);
	if (loses && c->all.offset == 0)
		restarts = "its .fcopy-part differs from the source";
	if (r == 0)
		copy_notify(c, FCOPY_EVENT_RESUME, NULL, restarts);
	return r;
}
