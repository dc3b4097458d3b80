/* SPDX-License-Identifier: MIT
 * One file: ranges of it are the chunks, which the processes write into one `data`.
 */
#include "copy/copy.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "job.h"

#include <fcntl.h>
#include <unistd.h>

struct shard_file {
	struct copy *copy;
	struct job job;
	struct monitor monitor; /* of all ranges */
	uint64_t bytes, claimed;
};

static bool shard_file_same(const struct copy *c, const struct stat *now)
{
	const struct stat *then = &c->src.st;
	return now->st_size == then->st_size && now->st_ino == then->st_ino &&
	       same_mtime(now, then);
}

/* Opens the source's name again: another file may have it by now, and NFS clients compare their
 * cached attributes with the server's only at open. */
static int shard_file_check_source(const struct shard_file *f)
{
	struct copy *c = f->copy;
	struct stat open_now = {0}, named = {0};
	int fd = open(c->src.path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? error_call(&c->report->error, "open", c->src.path, errno) : 0;
	if (r == 0 && (fstat(fd, &named) < 0 || fstat(c->src.fd, &open_now) < 0))
		r = error_call(&c->report->error, "fstat", c->src.path, errno);
	if (fd >= 0)
		close(fd);
	if (r < 0 || (shard_file_same(c, &named) && shard_file_same(c, &open_now)))
		return r;
	c->report->source_changed = true;
	return job_refuse_source(&f->job);
}

/* Sets the size that the whole file has. All shards set the same one, so that none truncates what
 * another has written. Direct I/O may have written a padded block past it. */
static int range_set_size(struct copy *c, off_t size)
{
	struct stat st;
	if (fstat(c->dst.fd, &st) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	while (st.st_size != size && ftruncate(c->dst.fd, size) < 0)
		if (errno != EINTR || io_cancelled(&c->all.io))
			return error_call(&c->report->error, "ftruncate", c->dst.path, errno);
	return 0;
}

int range_fill(struct copy *c, off_t size, bool again)
{
	int r = range_set_size(c, size);
	c->dst.st.st_size = size; /* otherwise a hole would set another one */
	c->all.offset = c->last;
	c->again = again;
	if (r == 0 && c->first < c->last)
		r = copy_run_phase(c);
	return r == 0 ? range_set_size(c, size) : r;
}

/* A shard may copy more than its part of the file: the total of its progress grows with it. */
static void shard_file_expect(struct shard_file *f)
{
	struct fcopy_progress *p = f->copy->options->progress;
	f->claimed += (uint64_t)(f->copy->last - f->copy->first);
	if (p && __atomic_load_n(&p->total, __ATOMIC_RELAXED) < f->claimed)
		__atomic_store_n(&p->total, f->claimed, __ATOMIC_RELAXED);
}

/* Copies a range into the open data. The counts of copy_run_phase are of one range. */
static int shard_file_copy_range(struct shard_file *f, unsigned chunk, bool again)
{
	struct copy *c = f->copy;
	struct fcopy_report *report = c->report;
	const off_t size = c->src.st.st_size;
	struct stat st;
	if (fstat(c->dst.fd, &st) < 0)
		return error_call(&report->error, "fstat", c->dst.path, errno);
	/* Every shard sets the full size before its markers. */
	if (f->job.complete > 0 && st.st_size != size)
		return job_refuse_part(&f->job, "its .fcopy-part was truncated");
	range_of(f->job.chunks, chunk, size, &c->first, &c->last);
	report->data = report->bytes = 0;
	shard_file_expect(f);
	int r = range_fill(c, size, again);
	f->bytes += report->bytes;
	report->bytes = f->bytes;
	if (r == 0 && c->all.offset < c->last) {
		report->source_changed = true;
		r = job_refuse_source(&f->job);
	}
	if (r == 0 && c->options->verify && (r = copy_flush(c, true)) == 0 && c->first < c->last)
		r = verify_copy(c);
	return r;
}

static int shard_file_mark(struct shard_file *f)
{
	int r = copy_flush(f->copy, true);
	if (r == 0)
		r = shard_file_check_source(f);
	return r == 0 ? job_mark(&f->job) : r;
}

static int shard_file_copy(struct job *j)
{
	struct shard_file *f = j->owner;
	struct copy *c = f->copy;
	struct fcopy_error ignored;
	unsigned chunk;
	bool again, interrupted = false;
	int r = destination_share(&c->dst, &j->part, &c->report->error);
	if (r < 0)
		return r;
	while (r == 0 && (r = job_claim(j, &chunk, &again)) == 1) {
		r = shard_file_copy_range(f, chunk, again);
		interrupted = r == -EINTR;
		if (r == 0)
			job_claim_ends(j, chunk, true);
		if (r == 0 && job_must_mark(j))
			r = shard_file_mark(f);
	}
	if (r == 0 && j->claims > 0)
		r = shard_file_mark(f);
	if (interrupted && j->claims > 1) { /* a retry need not copy these again */
		const struct fcopy_error why = c->report->error;
		(void)shard_file_mark(f);
		c->report->error = why;
	}
	int closed = destination_unshare(&c->dst, r == 0 ? &c->report->error : &ignored);
	return r == 0 ? closed : r;
}

/* All chunks are complete, and the part is locked. */
static int shard_file_commit(struct job *j)
{
	struct shard_file *f = j->owner;
	struct copy *c = f->copy;
	struct stat st;
	int r = destination_share(&c->dst, &j->part, &c->report->error);
	if (r < 0)
		return r;
	c->first = 0;
	c->last = c->all.offset = c->src.st.st_size;
	c->needs_truncate = false;
	if (fstat(c->dst.fd, &st) < 0)
		r = error_call(&c->report->error, "fstat", c->dst.path, errno);
	else if (st.st_size != c->src.st.st_size)
		r = job_refuse_part(j, "its .fcopy-part was truncated");
	if (r == 0)
		r = shard_file_check_source(f);
	if (r == 0)
		r = copy_settle(c);
	if (r == 0 && fstat(c->dst.fd, &st) < 0)
		r = error_call(&c->report->error, "fstat", c->dst.path, errno);
	if (r == 0)
		r = job_note_commit(j, &st);
	/* -ENOENT: NFS; this client had the name cached, and another one has committed. */
	if (r == 0 && (r = copy_commit(c)) == -ENOENT)
		r = RESULT_AGAIN;
	if (r != 0) {
		struct fcopy_error ignored;
		destination_unshare(&c->dst, &ignored);
		return r;
	}
	c->report->committed = true;
	job_end(j);
	return 0;
}

static int shard_file_check(struct job *j)
{
	struct shard_file *f = j->owner;
	struct copy *c = f->copy;
	return replace_check(&c->dst, &c->report->error);
}

/* Empty: without bytes of a copy, a hidden part can be removed. */
static int shard_file_make(struct job *j, int dir, mode_t *mode, struct failure *fail)
{
	const struct shard_file *f = j->owner;
	*mode = destination_new_mode(&f->copy->dst);
	int fd = openat(dir, PART_DATA, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_at(fail, "open");
	(void)!fchmod(fd, 0600); /* a umask or a default ACL may withhold rights of the owner */
	return fd;
}

/* A share is a range of st_size, which the files of procfs do not have. */
static int shard_file_refuse_unsized(const struct copy *c)
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

/* What the copies of all shards must have in common, also how another version divides the file. */
static uint64_t shard_file_agreed(const struct copy *c)
{
	const struct fcopy_options *o = c->options;
	return o->preserve | (uint64_t)o->default_mode << 7 |
	       (uint64_t)temporary_umask() << JOB_UMASK_BIT |
	       (uint64_t)range_count(o->shard.count, c->src.st.st_size) << 32;
}

int shard_copy_file(struct copy *c)
{
	static const struct job_work work = {shard_file_check, shard_file_make, shard_file_copy,
					     shard_file_commit};
	struct fcopy_report *report = c->report;
	struct shard_file f = {.copy = c};
	f.job = (struct job){.work = &work,
			     .owner = &f,
			     .options = c->options,
			     .source = &c->src.st,
			     .agreed = shard_file_agreed(c),
			     .path = c->dst.path,
			     .error = &report->error,
			     .reason = report->detail};
	f.job.name = destination_name(&c->dst, &f.job.parent);
	f.monitor = (struct monitor){.progress = c->options->progress,
				     .limit_rate = c->options->limit_rate,
				     .start = io_now()};
	/* cppcheck-suppress autoVariables */
	c->shared = &f.monitor; /* the copy ends with this function */
	copy_phase(c, FCOPY_PHASE_COPY, (uint64_t)c->src.st.st_size / c->options->shard.count);
	report->existed = c->dst.old_stat;
	report->atomic = true;
	c->skips_clone = true; /* FICLONE is of the whole file */
	int r = job_init(&f.job);
	if (r == 0)
		r = destination_check_part(&c->dst, &f.job.part, &c->src, &report->error);
	if (r == 0)
		r = shard_file_refuse_unsized(c);
	if (r == 0) /* a shard that was killed early may have left a hidden part */
		stale_warn(f.job.parent, c->options, report);
	if (r == 0)
		r = job_run(&f.job);
	if (r == RESULT_COMMITTED)
		report->committed = true;
	job_free(&f.job);
	c->dst.ops->abort(&c->dst);
	c->src.ops->abort(&c->src);
	report->moved = __atomic_load_n(&f.monitor.moved, __ATOMIC_RELAXED);
	return r < 0 ? r : 0;
}
