/* SPDX-License-Identifier: MIT
 * The share of one file, and the commit: shard.h shows the states.
 */
#define _GNU_SOURCE
#include "shard.h"
#include "endpoints/error.h"
#include "notify.h"
#include "settle.h"
#include "verify.h"

#include <fcntl.h>
#include <unistd.h>

struct share {
	struct copy *copy;
	struct shard_job job;
};

static bool same_source(const struct copy *c, const struct stat *now)
{
	const struct stat *then = &c->src.st;
	return now->st_size == then->st_size && now->st_ino == then->st_ino &&
	       same_mtime(now, then);
}

/* Opens the source's name again: another file may have it by now, and NFS clients compare their
 * cached attributes with the server's only at open. */
static int check_source_again(const struct share *s)
{
	struct copy *c = s->copy;
	struct stat open_now, named;
	int fd = open(c->src.path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? error_call(&c->report->error, "open", c->src.path, errno) : 0;
	if (r == 0 && (fstat(fd, &named) < 0 || fstat(c->src.fd, &open_now) < 0))
		r = error_call(&c->report->error, "fstat", c->src.path, errno);
	if (fd >= 0)
		close(fd);
	if (r < 0 || (same_source(c, &named) && same_source(c, &open_now)))
		return r;
	c->report->source_changed = true;
	return shard_refuse_source(&s->job);
}

static int open_part(struct share *s, bool commit)
{
	struct copy *c = s->copy;
	int r = shard_lock(&s->job, commit, c->options);
	if (r == 0)
		r = shared_open(&c->dst, commit, s->job.part, c->options->cancel,
				&c->report->error);
	if (r == -ELOOP || r == -EISDIR)
		return s->job.part ? shard_refuse_part(&s->job, SHARD_OTHER_PART)
				   : error_refuse(&c->report->error, c->dst.path, EPERM,
						  "its .fcopy-part is not a regular file",
						  FCOPY_ADVICE_REMOVE_PART);
	return r == -ENOENT ? SHARD_AGAIN : r;
}

/* Sets the size that the whole file has. All shards set the same one, so that none truncates what
 * another has written. Direct I/O may have written a padded block past it. */
static int set_size(struct copy *c, off_t size)
{
	struct stat st;
	if (fstat(c->dst.fd, &st) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	while (st.st_size != size && ftruncate(c->dst.fd, size) < 0)
		if (errno != EINTR || io_cancelled(&c->all.io))
			return error_call(&c->report->error, "ftruncate", c->dst.path, errno);
	return 0;
}

static enum endpoint_old shard_old(const struct endpoint *e, const struct stat **st)
{
	(void)e;
	*st = NULL;
	return OLD_OVERWRITTEN;
}

int shard_fill_range(struct copy *c, off_t size, bool again)
{
	static const struct endpoint_ops overwrites = {.old = shard_old};
	const struct endpoint_ops *ops = c->dst.ops;
	int r = set_size(c, size);
	c->dst.st.st_size = size; /* otherwise a hole would set another one */
	c->all.offset = c->last;
	if (again)
		c->dst.ops = &overwrites;
	if (r == 0 && c->first < c->last)
		r = copy_run_phase(c);
	c->dst.ops = ops;
	return r == 0 ? set_size(c, size) : r;
}

/* Copies this process's range into the open part. */
static int copy_range(struct share *s)
{
	struct copy *c = s->copy;
	struct stat st;
	shard_range(&s->job.shard, s->job.shard.index, s->job.size, &c->first, &c->last);
	if (fstat(c->dst.fd, &st) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	/* Every shard sets the full size before its marker: bytes that markers vouch for are gone.
	 */
	if (s->job.complete > 0 && st.st_size < s->job.size)
		return shard_refuse_part(&s->job, "its .fcopy-part was truncated");
	const bool again = st.st_size > 0;
	int r = shard_record_part(&s->job, &st, !again);
	if (r == 0)
		r = shard_fill_range(c, s->job.size, again);
	if (r == 0 && c->all.offset < c->last) {
		c->report->source_changed = true;
		r = shard_refuse_source(&s->job);
	}
	if (r == 0)
		r = copy_flush(c, true);
	if (r == 0 && c->options->verify && c->first < c->last)
		r = verify_copy(c);
	return r == 0 ? check_source_again(s) : r;
}

static int copy_share(struct share *s)
{
	struct copy *c = s->copy;
	struct fcopy_error ignored;
	int r = open_part(s, false);
	if (r != 0)
		return r;
	r = copy_range(s);
	/* Keep the inode in use until the marker exists: otherwise the part of another job could
	 * get the same inode number. */
	int held = r == 0 ? fcntl(c->dst.fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (r == 0 && held < 0)
		r = error_call(&c->report->error, "fcntl(F_DUPFD)", c->dst.path, errno);
	int closed = shared_close(&c->dst, r == 0 ? &c->report->error : &ignored);
	if (r == 0)
		r = closed;
	if (r == 0)
		r = shard_mark(&s->job, NULL);
	if (held >= 0)
		close(held);
	return r;
}

/* All markers were there before the lock was taken. */
static int commit_locked(struct share *s)
{
	struct copy *c = s->copy;
	struct stat st;
	int r = shard_look(&s->job);
	if (r < 0)
		return r;
	if (s->job.complete < s->job.shard.count)
		return SHARD_AGAIN;
	if (fstat(c->dst.fd, &st) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	if (st.st_ino != s->job.part || st.st_size != s->job.size)
		return shard_refuse_part(&s->job, "its .fcopy-part was changed by something else");
	r = check_source_again(s);
	c->all.offset = s->job.size;
	c->needs_truncate = false;
	if (r == 0)
		r = copy_settle(c);
	if (r == 0 && fstat(c->dst.fd, &st) < 0)
		r = error_call(&c->report->error, "fstat", c->dst.path, errno);
	if (r == 0)
		r = shard_write_commit(&s->job, &st);
	/* -ENOENT: NFS; this client had the name cached, and another one has committed. */
	if (r == 0 && (r = copy_commit(c)) == -ENOENT)
		return SHARD_AGAIN;
	if (r < 0)
		return r;
	c->report->committed = true;
	/* DST is complete. A retry finds that out without a receipt, too. */
	if (shard_write_receipt(&s->job) < 0)
		copy_notify(c, FCOPY_EVENT_WARNING, &c->report->error, NULL);
	c->report->error = (struct fcopy_error){0};
	return 0;
}

static int commit_shares(struct share *s)
{
	struct copy *c = s->copy;
	int r = open_part(s, true);
	if (r != 0)
		return r == SHARD_LEFT ? 0 : r;
	r = commit_locked(s);
	if (!c->report->committed)
		endpoint_close(&c->dst);
	return r;
}

/* One pass through the states. Returns SHARD_AGAIN if another process was faster somewhere. */
static int run_share(struct share *s)
{
	struct shard_job *j = &s->job;
	struct copy *c = s->copy;
	bool finish = j->shard.finish;
	int r = shard_find(j);
	if (r == SHARD_COMMITTED) {
		c->report->committed = true;
		return 0;
	}
	/* A refused command leaves the records as they are. */
	if (r == 0)
		r = replace_check(&c->dst, c->options, &c->report->error);
	if (r == 0)
		r = finish ? shard_join_finish(j) : shard_join(j);
	if (r == 0 && !finish && !j->marked[j->shard.index])
		r = copy_share(s);
	if (r == 0 && j->complete < j->shard.count)
		return finish ? shard_refuse_missing(j) : 0;
	return r == 0 ? commit_shares(s) : r;
}

/* A share is a range of st_size, which the files of procfs do not have. */
static int refuse_unsized(const struct copy *c)
{
	char byte;
	struct fcopy_error *e = &c->report->error;
	ssize_t n = c->src.st.st_size == 0 ? pread(c->src.fd, &byte, 1, 0) : 0;
	if (n < 0)
		return error_call(e, "pread", c->src.path, errno);
	return n > 0 ? error_refuse(e, c->src.path, EINVAL,
				    "has content, but reports no size: shards cannot divide it",
				    FCOPY_ADVICE_NONE)
		     : 0;
}

int shard_copy_file(struct copy *c)
{
	struct fcopy_report *report = c->report;
	struct share s = {.copy = c,
			  .job = {.shard = c->options->shard,
				  .path = c->dst.path,
				  .error = &report->error,
				  .reason = report->detail}};
	s.job.name = destination_name(&c->dst, &s.job.parent);
	report->existed = endpoint_old_stat(&c->dst);
	report->atomic = true;
	c->no_clone = true; /* FICLONE is of the whole file */
	int r = shard_job_init(&s.job, &c->src.st, c->options->preserve);
	if (r == 0)
		r = refuse_unsized(c);
	if (r == 0)
		r = SHARD_AGAIN;
	for (int tries = 0; r == SHARD_AGAIN && tries < SHARD_TRIES; tries++) {
		shard_pause(tries);
		report->error = (struct fcopy_error){0};
		r = run_share(&s);
		shard_unlock(&s.job);
	}
	if (r == SHARD_AGAIN)
		r = shard_refuse_part(&s.job, "its .fcopy-part is gone");
	shard_job_free(&s.job);
	c->dst.ops->abort(&c->dst);
	c->src.ops->abort(&c->src);
	return r;
}
