/* SPDX-License-Identifier: MIT
 * syncfs(2) writes the page cache of every file system back. Those below a user-space process or a
 * protocol may then hold the data in a cache of their own: the kernel asks them to flush it only at
 * fsync(2).
 */
#define _GNU_SOURCE
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

/* None of them has a sync_fs operation that reaches its server: FUSE_SYNCFS is sent to virtiofs and
 * to block devices only (fs/fuse/inode.c), SMB2_FLUSH and 9P's Tfsync by fsync(2) only. */
bool flush_needs_each(const struct tree *t, int dst)
{
	struct statfs fs;
	if ((!t->options->copy.fsync && !t->shard) || fstatfs(dst, &fs) < 0)
		return false;
	switch ((unsigned)fs.f_type) {
	case FUSE_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case V9FS_MAGIC: return true;
	default: return false;
	}
}

int flush_directory(const struct tree *t, int fd)
{
	return t->flush_each ? io_flush_directory(fd) : 0;
}

/* Where each entry was flushed there is no syncfs(2), either: with FUSE it fails with ESTALE for
 * files that were removed since they were written (Linux 6.18, writeback_cache). */
int flush_tree(const struct tree *t, int fd, const char **call)
{
	*call = t->flush_each ? "fsync" : "syncfs";
	if (t->flush_each)
		return io_flush_directory(fd);
	return syncfs(fd) < 0 ? -errno : 0;
}

int flush_singles(struct tree *t, const char *directory, const char **call)
{
	if (!t->options->copy.fsync)
		return 0;
	double start = io_now();
	*call = "open";
	int fd = open(directory[0] ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	t->flush_each = flush_needs_each(t, fd);
	int r = flush_tree(t, fd, call);
	close(fd);
	t->report->seconds[FCOPY_PHASE_FSYNC] += io_now() - start;
	return r;
}
