/* SPDX-License-Identifier: MIT
 * Cheap questions about a file, before the first byte is moved.
 */
#define _GNU_SOURCE
#include "copy.h"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The kernel's headers may be older than the kernel that runs. */
#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5 */
struct cachestat_range {
	uint64_t off, len;
};
struct cachestat {
	uint64_t nr_cache, nr_dirty, nr_writeback, nr_evicted, nr_recently_evicted;
};
#endif

/* On network file systems the server may copy by itself. */
bool ask_is_remote(int fd)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned)fs.f_type) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC: return true;
	default: return false;
	}
}

/* Is so little of the source in the page cache that the device has to be asked anyway? */
bool ask_is_cold(int fd, off_t size)
{
	struct cachestat_range range = {.off = 0, .len = (uint64_t)size};
	struct cachestat cache;
	if (syscall(SYS_cachestat, fd, &range, &cache, 0) < 0)
		return false;
	return cache.nr_cache < (uint64_t)size / (uint64_t)sysconf(_SC_PAGESIZE) / 4;
}
