/* SPDX-License-Identifier: MIT
 * Between the last byte and the commit: checks that the source did not change, truncates the
 * destination to its length, sets attributes, flushes and verifies. A failure prevents the commit.
 */
#include "allocate.h"
#include "copy.h"
#include "endpoints/attributes.h"
#include "endpoints/error.h"
#include "endpoints/storage.h"
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUICK_SECONDS 0.01 /* the resolution of file times on many kernels */

/* One read has returned the whole file a moment ago. It cannot be a mixture of two versions, unless
 * it was written at that very moment; then the time of the source differs from that of the copy. */
static bool settle_was_quick(const struct copy *c)
{
	double seconds = 0;
	if (!c->all.exact || !c->all.ended || c->options->strict || c->options->verify)
		return false;
	for (size_t i = 0; i < c->report->steps; i++)
		seconds += c->report->step[i].seconds;
	return seconds < QUICK_SECONDS;
}

/* The peer of a stream does not know how much was to come: it would take a file that was truncated
 * for the whole one. Files that never had as many bytes as their size says were not truncated. */
static int settle_check_truncated(struct copy *c)
{
	struct stat now;
	if (!S_ISREG(c->src.st.st_mode) || c->all.offset >= c->size || fstat(c->src.fd, &now) < 0 ||
	    now.st_size >= c->src.st.st_size)
		return 0;
	c->report->source_changed = true;
	return error_refuse(&c->report->error, c->src.path, EBUSY,
			    "was truncated while it was copied", FCOPY_ADVICE_NONE);
}

/* Did the size or mtime of the source change, or has it lost its name? */
static int settle_check_source(struct copy *c)
{
	struct stat now;
	const struct stat *then = &c->src.st;
	int r = c->dst.positional ? 0 : settle_check_truncated(c);
	if (r < 0 || !S_ISREG(then->st_mode) || settle_was_quick(c))
		return r;
	if (fstat(c->src.fd, &now) < 0)
		return error_call(&c->report->error, "fstat", c->src.path, errno);
	bool gone = now.st_nlink == 0 && then->st_nlink > 0;
	if (!gone && now.st_size == then->st_size && same_mtime(&now, then))
		return 0;
	c->report->source_changed = true;
	if (gone)
		return copy_warn_or_fail(c, EBUSY, "was replaced or removed while it was copied");
	if (!c->outgrown)
		return copy_warn_or_fail(c, EBUSY, "changed while it was copied");
	snprintf(c->report->detail, sizeof(c->report->detail),
		 "grew while it was copied: the copy ends after %jd bytes",
		 (intmax_t)c->all.offset);
	return copy_warn_or_fail(c, EBUSY, c->report->detail);
}

/* Truncates what follows the finished prefix: allocated blocks, old data, a padded last block. Does
 * not call ftruncate without need: XFS writes the whole file out before it sets a size, even if
 * that is unchanged. */
static int settle_truncate_copy(struct copy *c)
{
	struct stat st;
	if (fstat(c->dst.fd, &st) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	if (st.st_size == c->all.offset && c->allocated <= c->all.offset) {
		/* After fallocate, XFS keeps the blocks that it allocated past the last write. */
		if (c->allocated > 0)
			io_punch(c->dst.fd, c->all.offset, c->all.offset + AHEAD_MAX);
		return 0;
	}
	while (ftruncate(c->dst.fd, c->all.offset) < 0) {
		const int err = errno;
		if (err != EINTR && st.st_size < c->all.offset &&
		    allocate_fill(c, c->all.offset) == 0)
			return 0;
		if (err != EINTR || io_cancelled(&c->all.io)) {
			c->failed = STEP_TRUNCATE;
			return error_call(&c->report->error, "ftruncate", c->dst.path, err);
		}
	}
	return 0;
}

static bool settle_is_unsupported(int err)
{
	return err == ENOSYS || err == EOPNOTSUPP || err == EINVAL || err == EPERM ||
	       err == EACCES || err == EMFILE;
}

/* Do not retry fsync: the kernel reports a failed writeback once, and the next call succeeds. */
int copy_flush(struct copy *c, bool metadata)
{
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_FSYNC, 0);
	/* fdatasync need not flush owner, mode and attributes (fsync(2)). */
	bool all = c->options->preserve != 0 || metadata;
	int r = (all ? fsync(c->dst.fd) : fdatasync(c->dst.fd)) < 0 ? -errno : 0;
	c->report->seconds[FCOPY_PHASE_FSYNC] += io_now() - start;
	if (r < 0) {
		error_call(&c->report->error, all ? "fsync" : "fdatasync", c->dst.path, -r);
		if (settle_is_unsupported(-r))
			c->report->error.advice = FCOPY_ADVICE_NO_FSYNC;
		return r;
	}
	if (c->options->no_cache && c->dst.positional)
		posix_fadvise(c->dst.fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

int copy_lose_attribute(void *copy, enum fcopy_attribute attribute, const struct fcopy_error *e)
{
	struct copy *c = copy;
	if (c->options->preserve_required & attribute || error_is_of_storage(e)) {
		c->report->error = *e;
		return -e->err;
	}
	copy_notify(c, FCOPY_EVENT_WARNING, e, NULL);
	return 0;
}

static bool settle_lacks_modes(const struct copy *c)
{
	int dir;
	destination_name(&c->dst, &dir);
	return c->storage && !storage_can(c->storage, dir, STORAGE_CHANGES_MODES);
}

/* Some FUSE file systems without chmod(2) return EIO. */
static int settle_lose_attribute(void *copy, enum fcopy_attribute which,
				 const struct fcopy_error *error)
{
	struct copy *c = copy;
	struct fcopy_error e = *error;
	if (which == FCOPY_ATTR_MODE && e.err == EIO && settle_lacks_modes(c))
		e.err = EOPNOTSUPP;
	return copy_lose_attribute(c, which, &e);
}

int copy_attributes(struct copy *c, bool reused, attributes_loss *lose)
{
	struct attributes_pair pair = {.src.fd = c->src.fd,
				       .dst.fd = c->dst.fd,
				       .st = &c->src.st,
				       .src_path = c->src.path,
				       .dst_path = c->dst.path,
				       .storage = c->storage,
				       .required = c->options->preserve_required,
				       .reused = reused,
				       .held = c->held,
				       .bare = c->bare};
	int r = attributes_apply(&pair, c->options->preserve, lose, c);
	if (r == 0 && pair.at_close)
		c->stored = pair.now;
	return r;
}

static int settle_preserve_attributes(struct copy *c)
{
	struct fcopy_error e;
	if (S_ISREG(c->dst.st.st_mode) && S_ISREG(c->src.st.st_mode))
		return copy_attributes(c, attributes_may_be_old(&c->dst), settle_lose_attribute);
	error_refuse(&e, c->dst.path, EOPNOTSUPP, PRESERVE_IMPOSSIBLE, FCOPY_ADVICE_NONE);
	return copy_lose_attribute(c, c->options->preserve, &e);
}

int copy_check_cancelled(struct copy *c)
{
	/* Not c->all.io: a process that only commits for other shards has no transfer. */
	const struct io io = {.cancel = c->options->cancel};
	if (!io_cancelled(&io))
		return 0;
	return error_refuse(&c->report->error, c->dst.path, EINTR, "interrupted",
			    FCOPY_ADVICE_NONE);
}

/* Do not replace a file by an empty stream: the producer may have failed. */
static int settle_check_empty(struct copy *c)
{
	mode_t from = c->src.st.st_mode;
	const struct stat *old = c->dst.old_stat;
	bool loses = old && S_ISREG(old->st_mode) && old->st_size > 0;
	if (!S_ISFIFO(from) && !S_ISSOCK(from))
		return 0;
	if (c->all.offset > 0 || !loses || c->options->force)
		return 0;
	return error_refuse(&c->report->error, c->dst.path, ENODATA,
			    "is not replaced: the input is empty", FCOPY_ADVICE_FORCE);
}

/* Some file systems return the error of a failed write from other calls than fsync(2), too. On FUSE
 * with the write-back cache, fchmod(2), futimens(2), fallocate(2) and others first write the dirty
 * pages. They return the error of that, and close(2) then succeeds: fuse_do_setattr() in
 * fs/fuse/dir.c. An errno of theirs must be that of the attribute. */
static int settle_check_written(struct copy *c)
{
	struct failure fail;
	const struct stat st = {.st_dev = c->device ? c->device : c->dst.st.st_dev};
	if (!S_ISREG(c->dst.st.st_mode) || !c->dst.positional ||
	    storage_keeps_attributes(c->storage, c->dst.fd, &st))
		return 0;
	const bool flushes = c->options->preserve || c->dst.finishes;
	int r = io_check_written(c->dst.fd, flushes, &fail);
	/* Storage that sets the time at close must do so before copy_look_again(). */
	c->dst.written = r == 0 && flushes && !(c->options->preserve & FCOPY_ATTR_TIMESTAMPS);
	return r < 0 ? error_call(&c->report->error, fail.call, c->dst.path, -r) : 0;
}

/* Gives the copy its owner, mode and attributes. *metadata: fdatasync(2) would not flush them. */
static int settle_finish_copy(struct copy *c, bool *metadata)
{
	*metadata = false;
	int r = c->dst.faithful ? 0 : settle_check_written(c);
	if (r == 0 && c->dst.finishes)
		r = c->dst.ops->finish(&c->dst, &c->report->error);
	*metadata = r == RESULT_CHANGED;
	if (r >= 0 && c->dst.mode_lost && !(c->options->preserve & FCOPY_ATTR_MODE)) {
		struct fcopy_error e;
		error_call(&e, "fchmod", c->dst.path, c->dst.mode_lost);
		copy_notify(c, FCOPY_EVENT_WARNING, &e, NULL);
	}
	if (r < 0)
		return r;
	return c->options->preserve ? settle_preserve_attributes(c) : 0;
}

int copy_settle(struct copy *c)
{
	const struct fcopy_options *o = c->options;
	const bool flushes = o->fsync || o->no_cache;
	int r = settle_check_source(c);
	if (r == 0 && !c->src.positional)
		r = settle_check_empty(c);
	if (r == 0 && (o->expected_size > 0 || o->count > 0))
		r = copy_check_size(c, c->report->bytes);
	if (r == 0 && S_ISREG(c->dst.st.st_mode) && c->dst.positional &&
	    (c->needs_truncate || c->dst.old == OLD_OVERWRITTEN))
		r = settle_truncate_copy(c);
	/* A part that is killed with its final owner or mode could not be resumed if others could
	 * write to it by then. So what takes long comes first. */
	bool metadata = false;
	if (r == 0 && !o->resume)
		r = settle_finish_copy(c, &metadata);
	if (r == 0 && flushes)
		r = copy_flush(c, metadata);
	if (r == 0 && o->verify && !c->share) /* each share was verified */
		r = verify_copy(c);
	if (r == 0 && o->resume)
		r = settle_finish_copy(c, &metadata);
	if (r == 0 && o->resume && flushes)
		r = copy_flush(c, metadata);
	return r < 0 ? r : copy_check_cancelled(c);
}

/* Storage that sets the modification time of a file when it is closed: CIFS since Linux 6.12.62,
 * and some FUSE file systems. Looks at it again after the commit. */

#define UNKNOWN_MS 50   /* the longest wait for a change, while nothing is known of the storage */
#define CHANGES_MS 1000 /* ... if the time of another file has changed */

int copy_hold(const struct copy *c)
{
	return open(io_proc_path(c->dst.fd).text, O_PATH | O_CLOEXEC);
}

/* Not what the kernel has cached. */
static bool settle_time_changed(int held, const struct timespec *stored)
{
	struct statx now;
	if (statx(held, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MTIME, &now) < 0)
		return false;
	return !same_time(statx_time(now.stx_mtime), *stored);
}

/* close(2) does not wait until a FUSE server has released the file. */
static bool settle_wait_for_change(int held, const struct timespec *stored, int most_ms)
{
	bool changed = settle_time_changed(held, stored);
	for (int ms = 1, waited = 0; !changed && waited < most_ms; waited += ms, ms *= 2) {
		nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L},
			  NULL);
		changed = settle_time_changed(held, stored);
	}
	return changed;
}

/* Has only the cache of the storage kept more of the source's time? */
static bool settle_keeps_time(const struct copy *c, int held)
{
	struct stat now;
	if (fstat(held, &now) < 0)
		return false;
	const struct storage_times t = storage_times(c->storage, held, now.st_dev);
	return storage_time_is_equal(&t, &c->src.st.st_mtim, &now);
}

int copy_look_again(struct copy *c, int held, int committed)
{
	const struct stat *stored = &c->stored;
	const enum storage_close known = storage_at_close(c->storage, stored->st_dev);
	const bool written = c->report->bytes > 0; /* another one may keep its time */
	int most_ms = known == CLOSE_KEEPS_TIMES || !written ? 0
		      : known == CLOSE_UNKNOWN               ? UNKNOWN_MS
							     : CHANGES_MS;
	int r = committed;
	bool changed = r == 0 && settle_wait_for_change(held, &stored->st_mtim, most_ms) &&
		       !settle_keeps_time(c, held);
	if (r == 0 && (changed || written))
		storage_note_close(c->storage, stored->st_dev, !changed);
	if (changed) {
		const struct timespec times[2] = {c->src.st.st_atim, c->src.st.st_mtim};
		struct fcopy_error e;
		int set = io_set_times(held, times) < 0 ? errno : 0;
		if (set)
			error_call(&e, "utimensat", c->dst.path, set);
		else if (settle_time_changed(held, &stored->st_mtim))
			set = settle_keeps_time(c, held)
				  ? 0
				  : -attributes_fail_stored(FCOPY_ATTR_TIMESTAMPS, c->dst.path, &e);
		if (set)
			r = copy_lose_attribute(c, FCOPY_ATTR_TIMESTAMPS, &e);
	}
	close(held);
	return r;
}
