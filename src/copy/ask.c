/* SPDX-License-Identifier: MIT
 * Cheap questions about a file, before the first byte is moved.
 */
#define _GNU_SOURCE
#include "ask.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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
bool ask_is_uncached(int fd)
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
bool ask_is_cold(int fd, off_t size)
{
	struct ask_range range = {.off = 0, .len = (uint64_t)size};
	struct ask_cached cache;
	if (syscall(SYS_cachestat, fd, &range, &cache, 0) < 0)
		return false;
	return cache.nr_cache < (uint64_t)size / (uint64_t)sysconf(_SC_PAGESIZE) / 4;
}
