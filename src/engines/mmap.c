/* SPDX-License-Identifier: MIT
 * mmap(2) of the source in windows, and write(2) out of them: one copy by the CPU. Only the kernel
 * touches the mapping, so a source that shrinks meanwhile shows as a short count, then EFAULT, and
 * never as SIGBUS.
 */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

#define WINDOW_SIZE ((size_t)1 << 20) /* mapped pages count as resident memory: keep it small */

/* Nothing at t->offset could be read through the mapping: the source ends there now (0), or its
 * storage failed, which a read tells better than EFAULT does. */
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
		return stop; /* the next round looks at the source's size again */
	if (r == -EFAULT)
		return explain_fault(t);
	if (r < 0)
		return transfer_fail(t, t->dst_positional ? "pwrite" : "write", SIDE_DST, r);
	return stop;
}

/* Maps and writes n bytes at t->offset. */
static int copy_window(struct transfer *t, size_t n)
{
	size_t skip = (size_t)(t->offset % (off_t)sysconf(_SC_PAGESIZE));
	char *window = mmap(NULL, n + skip, PROT_READ, MAP_SHARED, t->src, t->offset - (off_t)skip);
	if (window == MAP_FAILED)
		return errno == ENODEV ? transfer_refuse(t, "mmap", SIDE_SRC, ENODEV)
				       : transfer_judge(t, "mmap", SIDE_SRC);
	/* Saves a page fault each; what it cannot read the write will tell. MAP_POPULATE does not
	 * return from a page that the storage fails to read (6.18). */
	madvise(window, n + skip, MADV_POPULATE_READ);
	int r = write_window(t, window + skip, n);
	munmap(window, n + skip);
	return r;
}

/* How many bytes the source has behind t->offset, or -errno. */
static off_t left(struct transfer *t)
{
	struct stat st;
	if (fstat(t->src, &st) < 0)
		return transfer_fail(t, "fstat", SIDE_SRC, -errno);
	/* A source that shrank has left the zeros of its last page behind its new end: they do not
	 * belong to the finished prefix, and commit cuts them off. */
	if (t->offset > st.st_size && t->dst_positional)
		t->offset = st.st_size;
	return st.st_size > t->offset ? st.st_size - t->offset : 0;
}

static int copy(struct transfer *t)
{
	size_t size = t->buffer_size ? t->buffer_size : WINDOW_SIZE, want;
	if (!t->src_positional)
		return transfer_refuse(t, NULL, SIDE_SRC, ESPIPE);
	while ((want = transfer_chunk(t, size)) > 0) {
		off_t n = left(t);
		if (n == 0) {
			int r = transfer_end(t, "mmap");
			if (r != ENGINE_NEXT || (n = left(t)) == 0)
				return r; /* not grown between the two looks, so truly refused */
		}
		int r = n < 0 ? (int)n : copy_window(t, (off_t)want < n ? want : (size_t)n);
		if (r)
			return r;
	}
	return 0;
}

const struct engine engine_mmap = {.name = "mmap", .falls_back = true, .copy = copy};
