/* SPDX-License-Identifier: MIT
 * mmap(2) of the source in windows, and write(2) from them: the CPU copies each byte once. Only the
 * kernel reads the mapping, so a source that shrinks causes a short count and then EFAULT, never
 * SIGBUS.
 */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

#define WINDOW_SIZE ((size_t)1 << 20) /* small: mapped pages count as resident memory */

/* write(2) could not read the mapping at t->offset. Returns 0 if the source ends there now, or the
 * -errno of a read: the storage failed. */
static int explain_fault(struct transfer *t)
{
	char byte;
	ssize_t got = io_read(&t->io, t->src, &byte, 1, t->offset);
	return got == 0 ? 0 : transfer_fail(t, "pread", SIDE_SRC, got < 0 ? (int)got : -EFAULT);
}

/* Writes one window of n bytes. */
static int write_window(struct transfer *t, const char *window, size_t n)
{
	size_t put;
	int r = io_write_all(&t->io, t->dst, window, n, transfer_dst_at(t), &put);
	int stop = transfer_advance(t, put);
	if (r == -EFAULT && put > 0)
		return stop; /* then check the source's size again */
	if (r == -EFAULT)
		return explain_fault(t);
	if (r < 0)
		return transfer_fail(t, t->dst_positional ? "pwrite" : "write", SIDE_DST, r);
	return stop;
}

/* If the storage fails to read a page, MADV_POPULATE_READ never returns on Linux 6.1, but does on
 * 6.12 (both probed). */
static bool populate_returns(void)
{
	struct utsname system;
	int major, minor;
	return uname(&system) == 0 && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 12));
}

/* Maps and writes n bytes at t->offset. */
static int mmap_window(struct transfer *t, size_t n, bool populate)
{
	size_t skip = (size_t)(t->offset % (off_t)sysconf(_SC_PAGESIZE));
	char *window = mmap(NULL, n + skip, PROT_READ, MAP_SHARED, t->src, t->offset - (off_t)skip);
	if (window == MAP_FAILED)
		return errno == ENODEV ? transfer_refuse(t, "mmap", SIDE_SRC, ENODEV)
				       : transfer_judge(t, "mmap", SIDE_SRC);
	/* Saves a page fault per page; write(2) reports what cannot be read. MAP_POPULATE never
	 * returns if the storage fails to read a page (6.18). */
	if (populate)
		madvise(window, n + skip, MADV_POPULATE_READ);
	int r = write_window(t, window + skip, n);
	munmap(window, n + skip);
	return r;
}

/* Returns how many bytes the source has after t->offset, or -errno. */
static off_t source_left(struct transfer *t, size_t window)
{
	struct stat st;
	if (fstat(t->src, &st) < 0)
		return transfer_fail(t, "fstat", SIDE_SRC, -errno);
	if (S_ISBLK(st.st_mode) && (st.st_size = lseek(t->src, 0, SEEK_END)) < 0)
		return transfer_fail(t, "lseek", SIDE_SRC, -errno);
	/* The source was truncated: the last window may have had zeros past the source's new end.
	 * They do not belong to the finished prefix, and the commit truncates them. */
	if (t->offset > st.st_size && t->dst_positional)
		t->offset = MAX(st.st_size, t->offset - (off_t)window);
	return st.st_size > t->offset ? st.st_size - t->offset : 0;
}

static int mmap_copy(struct transfer *t)
{
	size_t size = t->buffer_size ? t->buffer_size : WINDOW_SIZE, want;
	const bool populate = populate_returns();
	if (!t->src_positional)
		return transfer_refuse(t, NULL, SIDE_SRC, ESPIPE);
	while ((want = transfer_chunk(t, size)) > 0) {
		off_t n = source_left(t, size);
		if (n == 0) {
			int r = transfer_end(t, "mmap");
			if (r != RESULT_NEXT || (n = source_left(t, size)) == 0)
				return r; /* the end; a failure; or still no bytes: refused */
		}
		int r = n < 0 ? (int)n
			      : mmap_window(t, (off_t)want < n ? want : (size_t)n, populate);
		if (r)
			return r;
	}
	return 0;
}

const struct engine engine_mmap = {
    .name = "mmap", .positional = true, .leaves_zeros = true, .copy = mmap_copy};
