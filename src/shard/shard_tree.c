/* SPDX-License-Identifier: MIT
 * A new tree that several processes copy: job.h shows the protocol.
 */
#include "shard_tree.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "job.h"
#include "tree/directory.h"
#include "tree/report.h"
#include "tree/root.h"

#include <fcntl.h>
#include <unistd.h>

static int shard_tree_check(struct job *j)
{
	struct shard_tree *s = j->owner;
	struct storage *storage = s->root.tree->known.storage;
	if (j->exists)
		return error_refuse_operand(j->error, j->path, EEXIST,
					    "exists: shards only make a new tree",
					    FCOPY_ADVICE_NONE);
	if (storage_can(storage, j->parent, STORAGE_RENAMES_DIRECTORIES) &&
	    storage_can(storage, j->parent, STORAGE_KEEPS_INODES))
		return 0;
	return error_refuse(j->error, j->path, EOPNOTSUPP,
			    "cannot be copied in shards: directories cannot be renamed here",
			    FCOPY_ADVICE_NO_PART);
}

static int shard_tree_make(struct job *j, int dir, mode_t *mode, struct failure *fail)
{
	const struct shard_tree *s = j->owner;
	const mode_t from = s->root.from->place.st.st_mode;
	return private_make_directory(dir, PART_DATA, (from & 01777) | 0700, false, false, mode,
				      fail);
}

/* Opens data of the part that was joined. */
static int shard_tree_open(struct shard_tree *s)
{
	struct tree *t = s->root.tree;
	struct stat st;
	const int fd = part_open_data(&s->job.part, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT)
		return RESULT_AGAIN;
	if (fd < 0)
		return job_fail(&s->job, "open in its .fcopy-part", "openat", -fd);
	if (fstat(fd, &st) < 0 || !part_is_data(&s->job.part, &st)) {
		close(fd);
		return job_refuse_part(&s->job, "the data in its .fcopy-part was replaced");
	}
	(void)permissions_set(fd, (st.st_mode & 07000) | 0700); /* it may have its own */
	s->root.dst = fd;
	s->ground = (struct ground){.fresh = true,
				    .separate = true,
				    .faithful = storage_keeps_attributes(t->known.storage, fd, &st),
				    .flush = flush_find(t, fd, true),
				    .withheld = 0700 & (t->known.umask | ~permissions_left(t, fd))};
	s->job.synced = s->ground.flush != FLUSH_EACH;
	t->share.differs = false;
	return 0;
}

static void shard_tree_close(struct shard_tree *s)
{
	close(s->root.dst);
	s->root.dst = -1;
}

/* Lists the tree, unless another process does. */
static int shard_tree_list(struct shard_tree *s)
{
	struct job *j = &s->job;
	int fd, r = job_claim_list(j, &fd);
	if (r <= 0)
		return r;
	r = j->listed ? 0 : list_make(s, fd);
	close(fd);
	return r == 0 && !s->root.tree->share.differs ? job_look(j) : r;
}

static int shard_tree_copy(struct job *j)
{
	struct shard_tree *s = j->owner;
	struct tree *t = s->root.tree;
	int r = shard_tree_open(s);
	if (r != 0)
		return r;
	const double start = io_now();
	do {
		r = j->listed ? 0 : shard_tree_list(s);
		if (r == 0 && !t->share.differs)
			r = entries_copy(s);
	} while (r == 0 && !t->share.differs && !j->listed);
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	shard_tree_close(s);
	return t->share.differs && (r == 0 || r == -EIO) && t->root.failures == 0 ? job_differs(j)
										  : r;
}

static int shard_tree_commit(struct job *j)
{
	struct shard_tree *s = j->owner;
	struct building *root = &s->root;
	int r = shard_tree_open(s);
	if (r != 0)
		return r;
	root->part = j->part;
	root->slot = (struct slot){
	    .how = HOW_PART, .stage = SLOT_MADE, .home = j->part.fd, .name = PART_DATA};
	root->receipt = true;
	r = finish_tree(s);
	shard_tree_close(s);
	if (r == -ENOENT && root->tree->root.failures == 0)
		return RESULT_AGAIN; /* of the part or the rename: another process was faster */
	if (r == 0)
		job_end(j);
	return r;
}

/* A late retry: a job is known by its root's mtime and inode, and entries below may have changed
 * since the commit. Another name makes another job. */
static int shard_tree_compare(struct shard_tree *s)
{
	uint64_t sum;
	const struct fcopy_shard *shard = &s->job.options->shard;
	if (shard->finish || s->job.joined || shard->job)
		return 0;
	int r = list_sum(s, &sum);
	return r < 0 || sum == s->job.sum ? r : job_refuse_committed(&s->job);
}

static int shard_tree_work(struct shard_tree *s)
{
	int r = job_init(&s->job);
	if (r == 0)
		r = root_check_inside(&s->root, s->root.to->place.dir);
	if (r == 0)
		r = root_check_part_source(&s->root);
	if (r == 0)
		r = job_run(&s->job);
	if (r == RESULT_COMMITTED && (r = shard_tree_compare(s)) == 0)
		s->root.tree->root.committed = true;
	job_free(&s->job);
	return r;
}

static int shard_tree_run(struct tree *t, const struct operand *from, const struct operand *to)
{
	static const struct job_work work = {shard_tree_check, shard_tree_make, shard_tree_copy,
					     shard_tree_commit};
	struct shard_tree s = {.root = {.tree = t, .from = from, .to = to, .dst = -1},
			       .lock = PTHREAD_MUTEX_INITIALIZER};
	t->share.differs = false;
	t->root.failures = 0;
	t->root.inodes.src.dev = from->place.st.st_dev;
	t->known.umask = temporary_umask();
	s.root.part.fd = -1;
	s.job = (struct job){.work = &work,
			     .owner = &s,
			     .options = &t->options->copy,
			     .source = &from->place.st,
			     .agreed = root_options(t),
			     .tree = true,
			     .parent = to->place.dir,
			     .name = to->place.name,
			     .path = to->path,
			     .error = &s.error,
			     .reason = s.reason};
	const int r = shard_tree_work(&s);
	if (r < 0 && s.error.err)
		report_operand(t, &s.error);
	return r;
}

/* The public functions: a copy by one process, or a share of it. */

static bool shard_is_asked(const struct fcopy_options *o)
{
	return o && o->api == FCOPY_API && (o->shard.count > 0 || o->shard.finish);
}

int fcopy_copy(const char *src, const char *dst, const struct fcopy_options *options,
	       struct fcopy_report *report)
{
	static const struct fcopy_service once = {.once = true};
	if (operand_is_http(dst))
		return fcopy_serve(&src, 1, dst, options, &once, report);
	return copy_paths(src, dst, options, report,
			  shard_is_asked(options) ? shard_copy_file : NULL);
}

int fcopy_tree(const char *const *src, size_t n, const char *dst,
	       const struct fcopy_tree_options *options, struct fcopy_tree_report *report)
{
	static const struct shared_copy shards = {.copy_root = shard_tree_run,
						  .copy_file = shard_copy_file,
						  .list = list_add,
						  .leave = list_leave};
	const bool shared = shard_is_asked(options ? &options->copy : NULL);
	return tree_run(src, n, dst, options, report, shared ? &shards : NULL);
}
