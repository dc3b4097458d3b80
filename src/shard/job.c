/* SPDX-License-Identifier: MIT
 * The states of a job, as job.h shows them: first, enters it; then settles, and commits.
 */
#include "job.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "part/left.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS   20 /* of a shard with one thread, beside its claims: rather too many */
#define TRIES         8  /* each fails if another process changes the part first */
#define PAUSE_MS      1  /* the first of the waits, each half as long again as the one before */
#define PAUSE_MOST_MS 320
#define SETTLE_S      1.3 /* the kernel may hold the locks of a killed process for 0.3 s */

/* Each chunk that is claimed has one, too: if few are left, chunks are flushed sooner. Returns
 * false if there are too few. The kernel returns the lowest free descriptor: all after the last one
 * are free. */
static bool job_find_descriptors(struct job *j, int last)
{
	struct rlimit limit;
	j->most = JOB_MARK;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return true;
	const rlim_t needed = (rlim_t)last + DESCRIPTORS;
	if (limit.rlim_cur <= needed)
		return false;
	const rlim_t most = (limit.rlim_cur - needed) / 2 + 1;
	j->most = most < JOB_MARK ? (unsigned)most : JOB_MARK;
	return true;
}

int job_init(struct job *j)
{
	j->part.fd = j->part.lock = j->part.log = -1;
	/* The commit closes the caller's descriptor. */
	j->parent = openat(j->parent, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (j->parent < 0)
		return job_fail(j, NULL, "openat", errno);
	part_init(&j->part, j->parent, j->name);
	if (j->options->preserve & FCOPY_ATTR_MODE)
		j->agreed &= ~JOB_UMASK;
	if (!job_find_descriptors(j, j->parent))
		return error_refuse(j->error, j->path, EMFILE,
				    "is copied in shards, which need 20 more open files: raise the "
				    "limit (ulimit -n)",
				    FCOPY_ADVICE_NONE);
	return 0;
}

/* Chunks are missing, and this process can claim none. Those that share the lock of the part may
 * copy them. Returns RESULT_AGAIN if more is complete now, or -errno. */
static int job_end_missing(struct job *j)
{
	const unsigned complete = j->complete;
	if (j->part.lock < 0 || part_is_receipt(&j->part))
		return job_refuse_missing(j);
	if (private_take_lock(j->part.lock, LOCK_EX, j->options->cancel) == -EWOULDBLOCK)
		return error_refuse(j->error, j->path, EBUSY,
				    "is being copied: run this again when the other shards have "
				    "ended",
				    FCOPY_ADVICE_NONE);
	const int r = job_look(j);
	return r < 0 ? r : j->complete > complete ? RESULT_AGAIN : job_refuse_missing(j);
}

/* Releases the part and everything in it. */
static void job_leave(struct job *j)
{
	job_release(j);
	partial_close(&j->part, false, j->options);
	part_init(&j->part, j->parent, j->name);
	j->listed = !j->tree;
	j->chunks = j->tree ? 0 : range_count(j->options->shard.count, j->source->st_size);
	j->complete = 0;
	j->unlooked = 0;
	if (j->done)
		memset(j->done, CHUNK_OPEN, j->room);
}

void job_free(struct job *j)
{
	if (j->parent < 0)
		return;
	job_leave(j);
	close(j->parent);
	free(j->done);
	j->parent = -1;
	j->done = NULL;
}

/* Of a directory: replaces the mtime by the time of creation, or by 0. */
static void job_birth(int dir, const char *name, struct stat *st)
{
	struct statx sx;
	const int flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
	st->st_mtim = (struct timespec){0};
	if (statx(dir, name, flags, STATX_BTIME, &sx) == 0 && sx.stx_mask & STATX_BTIME)
		st->st_mtim = statx_time(sx.stx_btime);
}

static int job_look_at_destination(struct job *j)
{
	private_refresh(j->parent);
	j->exists = fstatat(j->parent, j->name, &j->dst, AT_SYMLINK_NOFOLLOW) == 0;
	if (!j->exists && errno != ENOENT)
		return job_fail(j, NULL, "stat", errno);
	if (j->exists && j->tree)
		job_birth(j->parent, j->name, &j->dst);
	return 0;
}

/* Not every client of a network file system may know when a directory was created. */
static bool job_fits_destination(const struct job *j)
{
	const struct journal_source *c = &j->part.journal.commit.source;
	const struct timespec t = j->dst.st_mtim;
	if (!j->exists || c->inode != j->dst.st_ino)
		return false;
	if (j->tree && (c->mtime.tv_sec == 0 || t.tv_sec == 0))
		return true;
	return same_time(c->mtime, t) && (j->tree || c->size == j->dst.st_size);
}

static bool job_is_same(const struct job *j)
{
	const struct journal *of = &j->part.journal;
	const struct journal_source *s = &of->source.source;
	return job_has_name(j) && of->source.tree == j->tree && of->options.number == j->agreed &&
	       of->shards.number == j->options->shard.count && s->inode == j->source->st_ino &&
	       same_time(s->mtime, j->source->st_mtim) &&
	       (j->tree || s->size == j->source->st_size);
}

/* The process that renamed may have died before it flushed the directory, or cleaned up. */
static int job_confirm(struct job *j)
{
	const int r = job_flush_parent(j);
	if (r == 0)
		part_remove_shares(&j->part);
	return r < 0 ? r : RESULT_COMMITTED;
}

/* What was committed before, by this job or by another one. What has become of DST since is not
 * replaced by a late shard, but by the next job: it may be anybody's work. */
static int job_check_receipt(struct job *j)
{
	int r = job_look_at_destination(j); /* it may have been renamed since */
	if (r < 0)
		return r;
	const bool same = job_is_same(j), fits = job_fits_destination(j);
	if (same && (fits || j->joined)) { /* an NFS client may not see DST yet */
		j->sum = j->part.journal.commit.number;
		return job_confirm(j);
	}
	if (j->tree ? fits : same && j->exists)
		return job_refuse_committed(j);
	r = j->work->check(j);
	if (r < 0 || j->options->shard.finish)
		return r < 0 ? r : job_end_missing(j);
	/* NFS removes no directory with open files; and the next job may commit before. */
	const int receipt = j->part.fd;
	j->part.fd = -1;
	job_leave(j);
	(void)left_sweep(j->parent, j->part.public, receipt);
	close(receipt);
	return RESULT_AGAIN;
}

/* Makes the part, and leaves it open. */
static int job_begin(struct job *j)
{
	struct part *p = &j->part;
	struct failure fail;
	const char *job = j->options->shard.job ? j->options->shard.job : "";
	const struct journal_fact source = part_source(-1, j->source);
	mode_t mode;
	int r = j->work->check(j);
	if (r < 0 || j->options->shard.finish)
		return r < 0 ? r : job_end_missing(j);
	if (part_make(p) < 0)
		return job_fail_part(j);
	r = part_can_move(p);
	int data = r < 0 ? -1 : j->work->make(j, p->fd, &mode, &fail);
	if (r == 0 && data < 0)
		r = part_fail(p, fail.call, -data);
	if (r == 0)
		r = part_describe(p, j->name, &source, j->agreed, data, mode);
	part_note(p, &(struct journal_fact){.kind = JOURNAL_SHARDS,
					    .number = j->options->shard.count,
					    .text = job,
					    .size = strlen(job)});
	if (r == 0 && p->lost)
		r = part_fail(p, "write", p->lost);
	if (r == 0 && (r = part_share(p)) == 0)
		r = part_publish(p, &data);
	io_close(data);
	if (r == 0)
		return 0;
	/* ENOENT, ESTALE: another client has removed the hidden part. */
	const bool others = r == -EAGAIN || r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR ||
			    r == -ENOENT || r == -ESTALE;
	if (!others)
		job_fail_part(j);
	/* If it has its name nevertheless, other shards may use it. */
	const bool removes = !private_has_name(p->fd, p->parent, p->public);
	if (removes)
		(void)part_remove_data(p);
	partial_close(p, removes, j->options);
	part_init(p, j->parent, j->name);
	return others ? RESULT_AGAIN : r;
}

/* Returns 0 with the part open and its lock shared, RESULT_COMMITTED, RESULT_AGAIN or -errno. */
static int job_enter(struct job *j)
{
	const struct part_claim claim = {
	    .dst = j->name, .of = PART_OF_SHARDS, .resumes = true, .cancel = j->options->cancel};
	job_leave(j);
	int r = job_look_at_destination(j);
	if (r < 0)
		return r;
	switch (part_acquire(&j->part, &claim)) {
	case PART_FRESH:
		if ((r = job_begin(j)) != 0)
			return r;
		break;
	case PART_RECEIPT: return job_check_receipt(j);
	case PART_BUSY:
	case PART_REFUSED: return job_fail_part(j);
	default: break;
	}
	if (!job_is_same(j))
		return job_refuse_other(j);
	if (j->tree && j->exists) {
		/* DST is what was built here: this client does not see the "commit" line yet. */
		if (part_is_data(&j->part, &j->dst))
			return j->joined ? job_confirm(j) : RESULT_AGAIN;
		if ((r = j->work->check(j)) < 0)
			return r;
	}
	j->flushed = io_now();
	r = job_look(j);
	j->late |= !j->joined && j->complete > 0;
	j->joined = true;
	return r;
}

static void job_pause(unsigned tries)
{
	long ns = PAUSE_MS * 1000000L;
	while (tries-- > 0 && ns < PAUSE_MOST_MS * 1000000L)
		ns += ns / 2;
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static bool job_is_complete(const struct job *j)
{
	return j->listed && j->complete == j->chunks;
}

/* Returns 0 if other processes have chunks; RESULT_AGAIN if all are complete, or one is free. */
static int job_settle(struct job *j)
{
	const double start = io_now();
	const struct io io = {.cancel = j->options->cancel};
	flock(j->part.lock, LOCK_UN);
	for (unsigned tries = 0; !job_is_complete(j); tries++) {
		unsigned chunk;
		bool again;
		struct stat st;
		private_refresh(j->part.fd);
		if (fstatat(j->part.fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break; /* it was committed */
		const int r = job_claim(j, &chunk, &again);
		job_release(j);
		if (r != 0)
			return r < 0 ? r : RESULT_AGAIN;
		if (job_is_complete(j))
			break;
		if (io_now() - start > SETTLE_S || !j->busy || io_cancelled(&io))
			return 0;
		job_pause(tries);
	}
	return RESULT_AGAIN;
}

/* Takes the exclusive lock of the part. Another process that has it commits: waits for it. Those
 * that share it still copy, and one of them commits. */
static int job_lock_commit(struct job *j)
{
	int r;
	do
		r = private_take_lock(j->part.lock, LOCK_EX, j->options->cancel);
	while (r == -EWOULDBLOCK && private_flock(j->part.lock, LOCK_SH) == -EWOULDBLOCK);
	/* They may have released it since the last try. */
	if (r == -EWOULDBLOCK && flock(j->part.lock, LOCK_EX | LOCK_NB) == 0)
		r = 0;
	if (r == 0)
		return part_is_named(&j->part) ? 0 : RESULT_AGAIN;
	if (r == -EINTR)
		return error_refuse(j->error, j->path, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	if (r != -EWOULDBLOCK)
		return job_fail(j, "lock of its .fcopy-part", "flock", -r);
	if (j->options->shard.finish)
		return error_refuse(j->error, j->path, EBUSY,
				    "another fcopy is using its .fcopy-part", FCOPY_ADVICE_NONE);
	job_warn_left(j);
	return RESULT_LEFT;
}

static int job_commit(struct job *j)
{
	struct stat st;
	int r = job_lock_commit(j);
	private_refresh(j->part.fd);
	if (r == 0 && fstatat(j->part.fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = RESULT_AGAIN; /* another process was faster */
	if (r == 0 && !part_is_data(&j->part, &st))
		r = job_refuse_part(j, "its .fcopy-part was changed by something else");
	return r == 0 ? j->work->commit(j) : r;
}

/* One pass through the states. */
static int job_pass(struct job *j)
{
	int r = job_enter(j);
	if (r != 0)
		return r;
	if (!j->options->shard.finish && !job_is_complete(j)) {
		r = j->work->copy(j);
		if (r == 0)
			r = job_settle(j);
		if (r != RESULT_AGAIN || !job_is_complete(j))
			return r == 0 ? RESULT_LEFT : r;
	}
	return job_is_complete(j) ? job_commit(j) : job_end_missing(j);
}

/* Did this pass end because the part, or a file of it, is gone? Another process has committed, or
 * has removed a part that it made at the same time; a client of NFS sees that late, at any call. */
static bool job_lost_part(const struct job *j, int r)
{
	const struct fcopy_error *e = j->error;
	return (r == -ENOENT || r == -ESTALE) && e->err == -r && e->call && e->path == j->path;
}

int job_run(struct job *j)
{
	struct fcopy_error lost = {.err = 0};
	int r = RESULT_AGAIN;
	unsigned complete = 0;
	for (unsigned tries = 0; r == RESULT_AGAIN && tries < TRIES; tries++) {
		if (tries > 0)
			job_pause(3 * (tries - 1));
		r = job_pass(j);
		if (job_lost_part(j, r))
			r = RESULT_AGAIN;
		if (r == RESULT_AGAIN) {
			lost = *j->error;
			*j->error = (struct fcopy_error){.err = 0};
		}
		if (j->complete > complete) { /* it makes progress */
			complete = j->complete;
			tries = 0;
		}
	}
	if (r == RESULT_AGAIN && lost.err) {
		*j->error = lost;
		r = -lost.err;
	}
	if (r == RESULT_AGAIN)
		r = job_refuse_part(j, part_exists(&j->part)
					   ? "its .fcopy-part can be neither used nor removed"
					   : "its .fcopy-part is gone");
	job_leave(j);
	return r == RESULT_LEFT ? 0 : r;
}

int job_differs(struct job *j)
{
	job_release(j);
	int r = job_look(j);
	if (r < 0 || j->complete > 0 || !part_is_named(&j->part) ||
	    flock(j->part.lock, LOCK_EX | LOCK_NB) < 0)
		return r < 0 ? r : job_refuse_source(j);
	if (part_hide(&j->part) < 0)
		return job_refuse_source(j);
	(void)part_remove_data(&j->part);
	part_remove_shares(&j->part);
	partial_close(&j->part, true, j->options);
	part_init(&j->part, j->parent, j->name);
	return RESULT_AGAIN;
}

int job_note_commit(struct job *j, const struct stat *data)
{
	struct journal_source c = journal_source_of(data);
	struct stat st = *data;
	if (j->tree) {
		job_birth(j->part.fd, PART_DATA, &st);
		c.size = 0;
		c.mtime = st.st_mtim;
	}
	part_append(&j->part, "\n", 1); /* ends a torn line */
	part_note(&j->part,
		  &(struct journal_fact){.kind = JOURNAL_COMMIT, .number = j->sum, .source = c});
	const int err = j->part.lost ? j->part.lost : fdatasync(j->part.log) < 0 ? errno : 0;
	return err ? job_fail(j, "write of its journal", "write", err) : 0;
}

/* Closes the claims first: NFS renames an open file that is removed. */
void job_end(struct job *j)
{
	job_release(j);
	part_remove_shares(&j->part);
}
