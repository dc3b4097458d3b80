/* SPDX-License-Identifier: MIT
 * syncfs(2) writes the page cache of every file system back. Those on top of a user-space process,
 * a protocol or another file system may then hold the data in a cache of their own, or not report
 * lost data: only fsync(2) flushes that cache and reports the loss.
 */
#define _GNU_SOURCE
#include "io/system.h"
#include "opened.h"
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool flush_needs_each(const struct tree *t, int dst)
{
	return (t->options->copy.fsync || t->shared) && system_has(dst, SYSTEM_BLIND);
}

enum flushing flush_find(const struct tree *t, int dst, bool whole)
{
	if (flush_needs_each(t, dst))
		return FLUSH_EACH;
	return !t->options->copy.fsync ? FLUSH_NONE : whole ? FLUSH_WHOLE : FLUSH_FILES;
}

bool flush_all(const struct tree *t, int dst)
{
	const unsigned type = system_type(dst);
	return t->root.ground.flush == FLUSH_EACH ||
	       (type && !system_type_has(type, SYSTEM_BLIND) && syncfs(dst) == 0);
}

/* In a merge another file system can be mounted below the operand's directory. Flushes it if this
 * directory is the uppermost one on it: the syncfs(2) at the end does not reach it. */
static int flush_mount(struct tree *t, struct directory *d, struct failure *fail)
{
	dev_t dev, above;
	ino_t ino;
	if (!opened_identity(t, d, &dev, &ino) || !opened_identity(t, d->parent, &above, &ino))
		return fail_at(fail, "fstat");
	if (dev == t->root.dst_dev)
		return 0;
	if (flush_needs_each(t, d->dst))
		return fail_if(fail, io_flush_directory(d->dst), "fsync");
	return dev != above ? fail_if(fail, flush_page_cache(d->dst), "syncfs") : 0;
}

static int flush_below(struct tree *t, struct directory *d, struct failure *fail)
{
	if (t->root.ground.flush == FLUSH_EACH)
		return fail_if(fail, io_flush_directory(d->dst), "fsync");
	if (!t->root.ground.foreign || !(t->options->copy.fsync || t->mirror.marked))
		return 0;
	return flush_mount(t, d, fail);
}

int flush_directory(struct tree *t, struct directory *d, struct failure *fail)
{
	const int r = flush_below(t, d, fail);
	if (r == 0)
		return 0;
	__atomic_store_n(&t->mirror.unsafe, true, __ATOMIC_RELAXED);
	/* A directory that cannot be read is open as O_PATH. Only --fsync promises a flush. */
	return r == -EBADF && !t->options->copy.fsync ? 0 : r;
}

/* Where each entry was flushed there is no syncfs(2), either, but for overlayfs: with FUSE it fails
 * with ESTALE for files that were removed since they were written (Linux 6.18, writeback_cache). */
int flush_tree(int fd, bool each, struct failure *fail)
{
	int r = each ? fail_if(fail, io_flush_directory(fd), "fsync") : 0;
	if (r < 0 || (each && !system_has(fd, SYSTEM_SYNCS_ALL)))
		return r;
	return syncfs(fd) < 0 ? fail_at(fail, "syncfs") : 0;
}

/* The same kernel reports those files here, and has written the others back. */
int flush_page_cache(int fd)
{
	const int err = syncfs(fd) < 0 ? errno : 0;
	const bool removed = err == ESTALE && system_has(fd, SYSTEM_SERVED);
	return removed ? 0 : -err;
}

int flush_singles(struct tree *t, int directory, struct failure *fail)
{
	if (!t->options->copy.fsync)
		return 0;
	double start = io_now();
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail_at(fail, "open");
	int r = flush_tree(fd, flush_needs_each(t, fd), fail);
	close(fd);
	t->report->seconds[FCOPY_PHASE_FSYNC] += io_now() - start;
	return r;
}
