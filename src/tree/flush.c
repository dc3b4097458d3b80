/* SPDX-License-Identifier: MIT
 * syncfs(2) writes the page cache of every file system back. Those below a user-space process or a
 * protocol may then hold the data in a cache of their own: the kernel asks them to flush it only at
 * fsync(2).
 */
#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Of a tree of 190 MB, the copy took 210 ms with an idle disk, then the flush 225 ms. One flush for
 * each 16 to 48 MiB during the copy: 0.81 to 0.84 of the time. For each 4 MiB: 0.90. */
#define AHEAD_SIZE ((uint64_t)32 << 20)

/* None of them has a sync_fs operation that reaches its server: FUSE_SYNCFS is sent to virtiofs and
 * to block devices only (fs/fuse/inode.c), SMB2_FLUSH and 9P's Tfsync by fsync(2) only. */
static bool flush_is_remote(const struct statfs *fs)
{
	switch ((unsigned)fs->f_type) {
	case FUSE_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case V9FS_MAGIC: return true;
	default: return false;
	}
}

bool flush_needs_each(const struct tree *t, int dst)
{
	struct statfs fs;
	return (t->options->copy.fsync || t->shard) && fstatfs(dst, &fs) == 0 &&
	       flush_is_remote(&fs);
}

/* Also returns an earlier failure of flush_ahead: the kernel may report it only once. Returns 0 or
 * -errno, and sets errno. */
static int flush_file_system(const struct tree *t, int dir)
{
	int failure = __atomic_load_n(&t->flush_failure, __ATOMIC_RELAXED);
	if (syncfs(dir) < 0)
		return -errno;
	errno = failure;
	return -failure;
}

bool flush_all(const struct tree *t, int dst)
{
	struct statfs fs;
	return t->flush_each ||
	       (fstatfs(dst, &fs) == 0 && !flush_is_remote(&fs) && flush_file_system(t, dst) == 0);
}

/* In a merge another file system can be mounted below the operand's directory. Flushes it if this
 * directory is the uppermost one on it: the syncfs(2) at the end does not reach it. */
static int flush_mount(const struct tree *t, const struct directory *d, const char **call)
{
	struct stat st, above;
	*call = "fstat";
	if (fstat(d->dst, &st) < 0 || fstat(d->parent->dst, &above) < 0)
		return -errno;
	if (st.st_dev == t->dst_dev)
		return 0;
	*call = "fsync";
	if (flush_needs_each(t, d->dst))
		return io_flush_directory(d->dst);
	*call = "syncfs";
	return st.st_dev != above.st_dev && syncfs(d->dst) < 0 ? -errno : 0;
}

int flush_directory(const struct tree *t, const struct directory *d, const char **call)
{
	*call = "fsync";
	if (t->flush_each)
		return io_flush_directory(d->dst);
	bool merges = t->atomic && !t->resume && !t->shard;
	return t->options->copy.fsync && merges ? flush_mount(t, d, call) : 0;
}

void flush_plan(struct tree *t)
{
	const struct fcopy_options *o = &t->options->copy;
	bool at_end = t->shard ? t->walk == WALK_COPIES : o->fsync && !t->atomic;
	uint64_t moved = __atomic_load_n(&t->monitor.moved, __ATOMIC_RELAXED);
	t->flush_failure = 0;
	t->flush_at = at_end && !t->flush_each && !o->verify ? moved + AHEAD_SIZE : UINT64_MAX;
}

void flush_ahead(struct tree *t, int dir)
{
	uint64_t at = __atomic_load_n(&t->flush_at, __ATOMIC_RELAXED);
	if (t->threads < 2 || tree_stopped(t) ||
	    __atomic_load_n(&t->monitor.moved, __ATOMIC_RELAXED) < at ||
	    !__atomic_compare_exchange_n(&t->flush_at, &at, UINT64_MAX, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	if (syncfs(dir) < 0)
		__atomic_store_n(&t->flush_failure, errno, __ATOMIC_RELAXED);
	at = __atomic_load_n(&t->monitor.moved, __ATOMIC_RELAXED) + AHEAD_SIZE;
	__atomic_store_n(&t->flush_at, at, __ATOMIC_RELEASE);
}

/* Where each entry was flushed there is no syncfs(2), either: with FUSE it fails with ESTALE for
 * files that were removed since they were written (Linux 6.18, writeback_cache). */
int flush_tree(const struct tree *t, int fd, const char **call)
{
	*call = t->flush_each ? "fsync" : "syncfs";
	if (t->flush_each)
		return io_flush_directory(fd);
	return flush_file_system(t, fd);
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
