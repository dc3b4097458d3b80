/* SPDX-License-Identifier: MIT
 * Chunks: which are listed, claimed and complete. A claim is a lock on share.claim.K, so that it
 * ends with its process.
 *
 * An NFS client may remember that a name does not exist, until it sees another change of the
 * directory. It asks the server about a file when it opens or locks it: so a file that was claimed
 * is not empty when the chunk, or the list, is complete.
 */
#include "job.h"
#include "source/reader.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define FLUSH_SECONDS 5 /* what a kill costs: so much work, and the chunk at work */
#define CLAIMS_PART   8 /* of the chunks: so many are tried between two looks at all markers */

void job_chunk_name(char name[JOB_NAME], const char *kind, unsigned chunk)
{
	snprintf(name, JOB_NAME, PART_SHARE "%s.%u", kind, chunk);
}

int job_create(const struct job *j, const char *name, bool *again)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(j->part.fd, name, flags | O_CREAT | O_EXCL, 0600);
	*again = fd < 0 && errno == EEXIST;
	/* A umask or a default ACL may withhold a right of the owner, who locks the file. */
	if (fd >= 0)
		(void)!fchmod(fd, 0600);
	else if (*again)
		fd = openat(j->part.fd, name, flags);
	/* cppcheck-suppress resourceLeak ; the caller closes it */
	return fd < 0 ? job_fail(j, "open in its .fcopy-part", "openat", errno) : fd;
}

static int job_grow(struct job *j, unsigned chunk)
{
	unsigned room = j->room ? j->room : 64;
	while (room <= chunk)
		room *= 2;
	if (room == j->room)
		return 0;
	unsigned char *done = realloc(j->done, room);
	if (!done)
		return job_fail(j, NULL, "malloc", ENOMEM);
	memset(done + j->room, CHUNK_OPEN, room - j->room);
	j->done = done;
	j->room = room;
	return 0;
}

static void job_note_done(struct job *j, unsigned chunk)
{
	j->complete += j->done[chunk] != CHUNK_DONE;
	j->done[chunk] = CHUNK_DONE;
}

/* The list is complete when JOB_LISTER has a line: the number of its chunks, and their sum. One
 * that is torn does not count. */
static int job_read_end(struct job *j, int fd)
{
	char text[64];
	struct io io = {.cancel = NULL};
	uintmax_t sum;
	unsigned chunks;
	const ssize_t n = io_read(&io, fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return job_fail(j, "read of its list", "pread", (int)-n);
	text[n] = '\0';
	if (n == 0 || text[n - 1] != '\n')
		return 0;
	if (sscanf(text, "%u %jx\n", &chunks, &sum) != 2 || chunks >= 1u << 30)
		return job_refuse_part(j, LIST_DAMAGED);
	j->chunks = chunks;
	j->sum = sum;
	j->listed = true;
	return chunks ? job_grow(j, chunks - 1) : 0;
}

static int job_look_for_end(struct job *j)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	const int fd = j->listed ? -1 : openat(j->part.fd, JOB_LISTER, flags);
	if (fd < 0)
		return j->listed || errno == ENOENT
			   ? 0
			   : job_fail(j, "open in its .fcopy-part", "openat", errno);
	const int r = job_read_end(j, fd);
	close(fd);
	return r;
}

int job_end_list(const struct job *j, int fd, unsigned chunks, uint64_t sum)
{
	char text[64];
	struct io io = {.cancel = NULL};
	size_t done;
	const int n = snprintf(text, sizeof(text), "%u %" PRIx64 "\n", chunks, sum);
	/* First the names of the chunks: fsync(2) of a file on btrfs makes no other name durable.
	 */
	int r = io_flush_directory(j->part.fd);
	if (r == 0)
		r = io_truncate(fd, 0);
	if (r == 0)
		r = io_write_all(&io, fd, text, (size_t)n, 0, &done);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	return r < 0 ? job_fail(j, "write of its list", "write", -r) : 0;
}

/* After the list is complete, only markers count that belong to it. */
static int job_read_name(struct job *j, const char *name)
{
	const size_t prefix = sizeof(PART_SHARE "done.") - 1;
	char *end;
	if (strncmp(name, PART_SHARE "done.", prefix) != 0)
		return 0;
	unsigned long k = strtoul(name + prefix, &end, 10);
	if (*end || k >= 1ul << 30 || (j->listed && k >= j->chunks))
		return 0;
	int r = job_grow(j, (unsigned)k);
	if (r == 0)
		job_note_done(j, (unsigned)k);
	return r;
}

int job_look(struct job *j)
{
	_Alignas(8) char buffer[READER_SIZE];
	int r = job_look_for_end(j);
	struct reader names = reader_open(j->part.fd, buffer, sizeof(buffer));
	if (r == 0 && names.fd >= 0 && j->chunks > 0)
		r = job_grow(j, j->chunks - 1);
	for (const char *name; r == 0 && (name = reader_next(&names));)
		r = job_read_name(j, name);
	const int err = reader_close(&names);
	if (err < 0)
		return job_fail(
		    j, names.fd < 0 ? "open of its .fcopy-part" : "list of its .fcopy-part",
		    names.call, -err);
	return r;
}

static bool job_has(const struct job *j, const char *kind, unsigned chunk)
{
	char name[JOB_NAME];
	job_chunk_name(name, kind, chunk);
	return faccessat(j->part.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Of a list that is not complete: how many chunks it has. */
static int job_count_chunks(struct job *j)
{
	if (j->listed)
		return 0;
	private_refresh(j->part.fd);
	int r = job_look_for_end(j);
	while (r == 0 && !j->listed && job_has(j, "list", j->chunks))
		r = job_grow(j, j->chunks++);
	return r;
}

/* Of a locked claim: is its chunk complete? */
static bool job_is_settled(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_size > 0;
}

/* Returns 1 if this process has the chunk now, 0, or -errno. */
static int job_try_claim(struct job *j, unsigned chunk, bool *again)
{
	char name[JOB_NAME];
	job_chunk_name(name, "claim", chunk);
	j->unlooked -= j->unlooked > 0;
	int fd = job_create(j, name, again);
	if (fd < 0)
		return fd;
	const int r = private_flock(fd, LOCK_EX);
	const bool taken = r == -EWOULDBLOCK;
	if (r < 0 && !taken) {
		close(fd);
		return job_fail(j, "lock of a chunk", "flock", -r);
	}
	if (!taken && (job_is_settled(fd) || job_has(j, "done", chunk)))
		job_note_done(j, chunk);
	else
		j->busy |= taken;
	if (taken || j->done[chunk] != CHUNK_OPEN) {
		close(fd);
		return 0;
	}
	j->done[chunk] = CHUNK_MINE;
	j->claim[j->claims++] = (struct job_claim){.chunk = chunk, .fd = fd};
	return 1;
}

/* Does another share have a chunk that is not known to be complete? */
static bool job_others_have(const struct job *j)
{
	for (unsigned k = 0; k < j->chunks; k++)
		if (j->done[k] == CHUNK_OPEN &&
		    k % j->options->shard.count != j->options->shard.index)
			return true;
	return false;
}

/* First the chunks of this process's share, so that processes rarely meet. */
int job_claim(struct job *j, unsigned *chunk, bool *again)
{
	const unsigned n = j->options->shard.count;
	int r = job_count_chunks(j);
	j->busy = false;
	for (int pass = 0; r == 0 && pass < 2; pass++) {
		/* One look, instead of one at each chunk; and not one for each chunk: a look takes
		 * time in proportion to their number. */
		if (pass > 0 && j->unlooked == 0 && job_others_have(j)) {
			r = job_look(j);
			j->unlooked = j->chunks / CLAIMS_PART;
		}
		for (unsigned k = pass ? 0 : j->options->shard.index;
		     r == 0 && k < j->chunks && j->claims < JOB_CLAIMS; k += pass ? 1 : n) {
			if (j->done[k] == CHUNK_OPEN && (!pass || k % n != j->options->shard.index))
				r = job_try_claim(j, k, again);
			*chunk = k;
		}
	}
	return r;
}

void job_claim_ends(struct job *j, unsigned chunk, bool complete)
{
	if (j->done[chunk] == CHUNK_MINE)
		j->done[chunk] = complete ? CHUNK_COPIED : CHUNK_FAILED;
}

bool job_must_mark(const struct job *j)
{
	return j->claims >= j->most || io_now() - j->flushed > FLUSH_SECONDS;
}

static int job_end_flush(const struct job *j, int r)
{
	return r < 0 ? job_fail(j, "fsync of the directory", "fsync", -r) : 0;
}

int job_flush_parent(const struct job *j)
{
	return job_end_flush(j, io_flush_place(j->parent));
}

/* The part's name, and its other files, must be on the storage before the first marker. */
static int job_flush_part(const struct job *j)
{
	int r = job_flush_parent(j);
	if (r == 0)
		r = job_end_flush(j, io_flush_directory(j->part.fd));
	if (r == 0 && j->part.log >= 0 && fdatasync(j->part.log) < 0)
		r = job_fail(j, "fsync of the directory", "fsync", errno);
	return r;
}

static int job_create_marker(const struct job *j, const struct job_claim *c)
{
	char name[JOB_NAME];
	bool again;
	const int r = io_truncate(c->fd, 1);
	if (r < 0)
		return job_fail(j, "write in its .fcopy-part", "ftruncate", -r);
	job_chunk_name(name, "done", c->chunk);
	const int fd = job_create(j, name, &again);
	return fd >= 0 && close(fd) < 0 ? job_fail(j, "create of a marker", "close", errno)
	       : fd < 0                 ? fd
					: 0;
}

int job_mark(struct job *j)
{
	unsigned left = 0;
	int r = j->complete == 0 && !j->synced ? job_flush_part(j) : 0;
	for (unsigned i = 0; r == 0 && i < j->claims; i++)
		if (j->done[j->claim[i].chunk] == CHUNK_COPIED)
			r = job_create_marker(j, &j->claim[i]);
	if (r == 0)
		r = job_end_flush(j, io_flush_directory(j->part.fd));
	if (r < 0)
		return r;
	for (unsigned i = 0; i < j->claims; i++) {
		const struct job_claim c = j->claim[i];
		if (j->done[c.chunk] == CHUNK_COPIED) {
			job_note_done(j, c.chunk);
			close(c.fd);
		} else {
			j->claim[left++] = c;
		}
	}
	j->claims = left;
	j->flushed = io_now();
	return 0;
}

void job_release(struct job *j)
{
	for (; j->claims > 0; j->claims--) {
		const struct job_claim *c = &j->claim[j->claims - 1];
		if (j->done[c->chunk] != CHUNK_FAILED)
			j->done[c->chunk] = CHUNK_OPEN;
		close(c->fd);
	}
}

int job_claim_list(struct job *j, int *fd)
{
	bool again;
	*fd = job_create(j, JOB_LISTER, &again);
	if (*fd < 0)
		return *fd;
	int r = private_flock(*fd, LOCK_EX);
	if (r == 0) {
		private_refresh(j->part.fd);
		r = job_read_end(j, *fd);
	} else if (r != -EWOULDBLOCK) {
		r = job_fail(j, "lock of the list", "flock", -r);
	}
	if (r == 0)
		return 1;
	close(*fd);
	return r == -EWOULDBLOCK ? 0 : r;
}

/* The chunks of one file. */

/* A stopped process copies its last range again, and the slowest one ends at most one range after
 * the others: so ranges are small. But each begins without read-ahead: from storage that takes 3 ms
 * to answer, ranges of 64 MiB took 16 % longer than those of 256 MiB, and those of 128 MiB 5 %. */
unsigned range_count(unsigned n, off_t size)
{
	const off_t part = size / RANGES_MOST, most = part > RANGE_SIZE ? part : RANGE_SIZE;
	const off_t ranges = size > 0 ? (size - 1) / most + 1 : 1;
	return (unsigned)((ranges - 1) / n + 1) * n;
}

/* The last unit may be partial: near 2^63 its end would overflow. */
static off_t range_bound(unsigned n, unsigned i, off_t size)
{
	off_t whole = size / RANGE_UNIT, at = (whole + (size % RANGE_UNIT != 0)) * i / n;
	return at > whole ? size : at * RANGE_UNIT;
}

void range_of(unsigned n, unsigned i, off_t size, off_t *start, off_t *end)
{
	*start = range_bound(n, i, size);
	*end = range_bound(n, i + 1, size);
}
