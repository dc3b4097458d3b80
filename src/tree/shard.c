/* SPDX-License-Identifier: MIT
 * A new tree that several processes copy: copy/shard.h shows the protocol.
 *
 * Each shard walks the whole source, creates every directory in DST.fcopy-part/, and copies its
 * share: entries whose relative path hashes to I modulo N, all names of a hard-linked inode whose
 * number hashes to I, and one range of each large file. All shards add up what they see of the
 * source; the markers hold that sum. The process that sees all markers walks once more: it checks
 * the sum and that every copy is there, gives large files their names, sets attributes of
 * directories and large files, flushes and renames. If the copy has what the source lacks, it walks
 * a second time to remove that. A late retry only compares the sum with the receipt's.
 *
 * A share that was interrupted is copied again from its start: what exists is replaced by a
 * complete copy. The source may have changed since that attempt.
 */
#define _GNU_SOURCE
#include "copy/shard.h"
#include "directory.h"
#include "endpoints/error.h"
#include "flush.h"
#include "permissions.h"
#include "report.h"
#include "root.h"
#include "walk.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct shard_root {
	struct root root;
	struct shard_job job;
	struct fcopy_error error;
	char reason[128];
};

/* Options that the copies of all shards must have in common. */
static unsigned shard_options(const struct fcopy_tree_options *o)
{
	return o->copy.preserve | (unsigned)o->hard_links << 8 | (unsigned)o->follow << 9 |
	       (unsigned)o->one_file_system << 11;
}

static int shard_job_open(struct shard_root *s, struct tree *t, const struct operand *from,
			  const struct operand *to)
{
	s->job = (struct shard_job){.shard = *t->shard,
				    .tree = true,
				    .parent = to->place.dir,
				    .name = to->place.name,
				    .path = to->path,
				    .error = &s->error,
				    .reason = s->reason};
	return shard_job_init(&s->job, &from->place.st, shard_options(t->options));
}

static int shard_report(struct shard_root *s, int r)
{
	if (r < 0)
		report_operand(s->root.tree, &s->error);
	return r;
}

static int shard_call(struct shard_root *s, const char *call)
{
	return error_call(&s->error, call, s->job.path, errno);
}

/* Roots have the same inode number on many file systems, as do subvolumes of btrfs: the inode does
 * not show that it is the same source. */
static bool shard_is_root(const struct operand *from)
{
	struct stat up;
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/..", from->path);
	return n >= (int)sizeof(path) || stat(path, &up) < 0 ||
	       up.st_dev != from->place.st.st_dev || up.st_ino == from->place.st.st_ino;
}

int shard_names_copy(struct tree *t, const struct operand *from, const struct operand *to)
{
	struct shard_root s = {.root.tree = t};
	int r = shard_job_open(&s, t, from, to);
	if (r == 0)
		r = shard_look(&s.job);
	bool ours = s.job.begun || s.job.receipt || s.job.stale[0] || s.job.part ||
		    (s.job.changed && !shard_is_root(from));
	shard_job_free(&s.job);
	return r < 0 ? shard_report(&s, r) : ours;
}

static void shard_sum_text(const struct tree *t, char what[SHARD_DETAIL])
{
	snprintf(what, SHARD_DETAIL, "%016" PRIx64, t->sum);
}

/* After the last walk: did all shards see the same source as it did, and are all copies there?
 * Reports a failure. */
static int shard_end(struct shard_root *s, struct directory *d)
{
	char what[SHARD_DETAIL];
	struct stat part;
	shard_sum_text(s->root.tree, what);
	if (s->job.differ || strcmp(what, s->job.what) != 0)
		return shard_report(s, shard_refuse_source(&s->job));
	if (s->root.tree->differs)
		return shard_report(s, shard_refuse_part(&s->job, "its .fcopy-part was changed by "
								  "something else"));
	/* Only now is it certain that the source lacks what the copy has: walk again. */
	if (s->root.tree->stale && !s->root.tree->prunes) {
		s->root.tree->prunes = true;
		return SHARD_AGAIN;
	}
	if (fstat(s->root.dst, &part) < 0)
		return shard_report(s, shard_call(s, "fstat"));
	s->root.mode |= part.st_mode & S_ISGID;
	shard_birth(s->root.dst, "", &part);
	int r = shard_write_commit(&s->job, &part);
	return r < 0 ? shard_report(s, r) : commit_root(&s->root, d);
}

/* Walks the source; leaves the sum of what it saw in tree->sum. Reports its failures, but for
 * -ENOENT from the rename. */
static int shard_walk(struct shard_root *s, enum walk walk)
{
	const bool finishing = walk == WALK_FINISHES;
	struct tree *t = s->root.tree;
	const struct operand *from = s->root.from, *to = s->root.to;
	struct stat st;
	int src = openat(from->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dst = openat(s->root.dst, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct directory *d = src < 0 || dst < 0 || fstat(dst, &st) < 0
				  ? NULL
				  : directory_new(NULL, "", src, dst, &from->place.st);
	if (!d) {
		int r = shard_report(s, shard_call(s, "open"));
		if (src >= 0)
			close(src);
		if (dst >= 0)
			close(dst);
		return r;
	}
	t->walk = walk;
	t->flush_each = flush_needs_each(t, dst);
	s->job.synced = !t->flush_each;
	t->sum = 0;
	t->dst_dev = st.st_dev;
	t->dst_ino = st.st_ino;
	d->src_path = from->path;
	d->dst_path = to->path;
	d->hash = HASH_START;
	d->fresh = d->resumed = finishing;
	double start = io_now();
	walk_tree(t, d);
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	bool walked = t->failures == 0 || t->differs;
	int r = finishing && walked && !tree_stopped(t) ? shard_end(s, d) : 0;
	close(d->src);
	directory_unref(d);
	if (tree_stopped(t))
		return t->stop ? t->stop : -EINTR;
	return t->failures > 0 ? -EIO : r;
}

/* Failures of entries are reported where they happen. *reported: so was the one returned. */
static int shard_copy_share(struct shard_root *s, bool *reported)
{
	char what[SHARD_DETAIL];
	int lock = -1;
	int r = shard_lock_share(&s->job, &s->root.tree->options->copy, &lock);
	if (r == 0)
		r = shard_lock(&s->job, false, &s->root.tree->options->copy);
	if (r == 0)
		r = shard_open_part(&s->root, &s->job);
	if (r == 0) {
		r = shard_walk(s, WALK_COPIES);
		*reported = r < 0;
		shard_sum_text(s->root.tree, what);
	}
	const char *call;
	if (r == 0 && flush_tree(s->root.tree, s->root.dst, &call) < 0)
		r = shard_call(s, call);
	/* While the part is open, no other directory can have its inode. */
	if (r == 0)
		r = shard_mark(&s->job, what);
	if (s->root.dst >= 0)
		close(s->root.dst);
	s->root.dst = -1;
	if (lock >= 0)
		close(lock);
	return r;
}

static int shard_commit(struct shard_root *s, bool *reported)
{
	struct shard_job *j = &s->job;
	int r = shard_lock(j, true, &s->root.tree->options->copy);
	if (r == SHARD_LEFT)
		return 0;
	if (r == 0)
		r = shard_open_part(&s->root, j);
	if (r == 0)
		r = shard_look(j);
	if (r == 0 && j->complete < j->shard.count)
		r = SHARD_AGAIN;
	if (r == 0) {
		strcpy(s->root.temporary, j->part_name);
		s->root.mode = temporary_mode(j->parent, s->root.from->place.st.st_mode & 01777);
		r = shard_walk(s, WALK_FINISHES);
		if (r == -ENOENT) /* from the rename; all other failures are reported */
			r = SHARD_AGAIN;
		*reported = r < 0;
	}
	if (r == 0 && shard_write_receipt(j) < 0)
		r = 0; /* DST is complete: a retry finds that out without a receipt, too */
	if (s->root.dst >= 0)
		close(s->root.dst);
	s->root.dst = -1;
	return r;
}

static int shard_refuse_change(struct shard_root *s)
{
	return error_refuse(&s->error, s->job.path, EEXIST,
			    "its source has changed since these shards committed it: move it away "
			    "to copy again",
			    FCOPY_ADVICE_NONE);
}

/* A late retry: a job is known by its root's mtime and inode, and entries below may have changed
 * since the commit. */
static int shard_compare(struct shard_root *s, bool *reported)
{
	char what[SHARD_DETAIL];
	s->root.dst = openat(s->job.parent, s->job.name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->root.dst < 0)
		return shard_call(s, "open");
	int r = shard_walk(s, WALK_COMPARES);
	*reported = r < 0;
	close(s->root.dst);
	s->root.dst = -1;
	shard_sum_text(s->root.tree, what);
	return r < 0 || shard_same_sum(&s->job, what) ? r : shard_refuse_change(s);
}

static int shard_run(struct shard_root *s, bool *reported)
{
	struct shard_job *j = &s->job;
	const bool finish = j->shard.finish;
	int r = shard_find(j);
	if (r == SHARD_COMMITTED) {
		r = finish || j->joined ? 0 : shard_compare(s, reported);
		s->root.tree->committed = r == 0;
		return r;
	}
	/* A refused command leaves the records as they are. */
	if (r == 0 && j->exists && j->changed)
		return shard_refuse_change(s);
	if (r == 0 && j->exists) {
		if (j->dst.st_ino == j->part && j->complete == j->shard.count)
			return SHARD_AGAIN; /* renamed since */
		r = error_refuse(&s->error, j->path, EEXIST, "exists: shards only make a new tree",
				 FCOPY_ADVICE_NONE);
	}
	if (r == 0)
		r = finish ? shard_join_finish(j) : shard_join(j);
	if (r == 0 && !finish && !j->marked[j->shard.index])
		r = shard_copy_share(s, reported);
	if (r == 0 && j->complete < j->shard.count)
		return finish ? shard_refuse_missing(j) : 0;
	return r == 0 ? shard_commit(s, reported) : r;
}

int shard_root_copy(struct tree *t, const struct operand *from, const struct operand *to)
{
	struct shard_root s = {.root = {.tree = t,
					.from = from,
					.to = to,
					.home = to->place.dir,
					.part.fd = -1,
					.dst = -1}};
	bool reported = false;
	t->atomic = true; /* what an interrupted attempt left is replaced */
	t->resume = false;
	t->failures = 0;
	t->stale = t->prunes = false;
	t->src_dev = from->place.st.st_dev;
	t->umask = temporary_umask();
	t->withheld = 0700 & (t->umask | ~permissions_left(t, to->place.dir));
	int r = root_check_inside(&s.root, to->place.dir);
	if (r < 0 || (r = root_check_part_source(&s.root)) < 0)
		return r;
	r = shard_job_open(&s, t, from, to);
	if (r == 0)
		r = SHARD_AGAIN;
	for (int tries = 0; r == SHARD_AGAIN && tries < SHARD_TRIES; tries++) {
		shard_pause(tries);
		r = shard_run(&s, &reported);
		shard_unlock(&s.job);
	}
	if (r == SHARD_AGAIN)
		r = shard_refuse_part(&s.job, "its .fcopy-part is gone");
	shard_job_free(&s.job);
	return reported ? r : shard_report(&s, r);
}
