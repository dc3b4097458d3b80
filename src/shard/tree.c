/* SPDX-License-Identifier: MIT
 * A new tree that several processes copy: job.h shows the protocol.
 */
#include "tree.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "job.h"
#include "tree/directory.h"
#include "tree/report.h"
#include "tree/root.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Options that the copies of all shards must have in common. */
static uint64_t tree_agreed(const struct tree *t)
{
	const struct fcopy_tree_options *o = t->options;
	return o->copy.preserve | job_umask(&o->copy, t->known.umask) |
	       (uint64_t)o->copy.default_mode << 7 | (uint64_t)o->hard_links << 8 |
	       (uint64_t)o->follow << 9 | (uint64_t)o->one_file_system << 11;
}

static int tree_check(struct job *j)
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

static int tree_make(struct job *j, int dir, mode_t *mode, struct failure *fail)
{
	const struct shard_tree *s = j->owner;
	const mode_t from = s->root.from->place.st.st_mode;
	return private_make_directory(dir, PART_DATA, (from & 01777) | 0700, false, false, mode,
				      fail);
}

static void tree_remove(struct job *j)
{
	int fd = part_open_data(&j->part, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return;
	(void)remove_tree(fd, j->part.fd, PART_DATA, NULL);
	close(fd);
}

/* Opens data of the part that was joined. */
static int tree_open(struct shard_tree *s)
{
	struct tree *t = s->root.tree;
	struct stat st;
	s->root.dst = part_open_data(&s->job.part, O_RDONLY | O_DIRECTORY);
	if (s->root.dst < 0)
		return s->root.dst == -ENOENT
			   ? RESULT_AGAIN
			   : job_fail(&s->job, "open in its .fcopy-part", "openat", -s->root.dst);
	if (fstat(s->root.dst, &st) < 0 || !part_is_data(&s->job.part, &st)) {
		close(s->root.dst);
		s->root.dst = -1;
		return job_refuse_part(&s->job, "the data in its .fcopy-part was replaced");
	}
	(void)permissions_set(s->root.dst, (st.st_mode & 07000) | 0700); /* it may have its own */
	s->ground = t->root.ground = (struct ground){
	    .fresh = true,
	    .separate = true,
	    .faithful = storage_keeps_attributes(t->known.storage, s->root.dst, &st),
	    .flush = flush_find(t, s->root.dst, true),
	    .withheld = 0700 & (t->known.umask | ~permissions_left(t, s->root.dst))};
	s->job.synced = t->root.ground.flush != FLUSH_EACH;
	t->share.differs = false;
	return 0;
}

static void tree_close(struct shard_tree *s)
{
	if (s->root.dst >= 0)
		close(s->root.dst);
	s->root.dst = -1;
}

/* Lists the tree, unless another process does. */
static int tree_list(struct shard_tree *s)
{
	struct job *j = &s->job;
	int fd, r = job_claim_list(j, &fd);
	if (r <= 0)
		return r;
	r = job_look(j);
	if (r == 0 && !j->listed &&
	    (r = list_make(s->root.tree, j, s->root.from, s->root.dst)) == 0 &&
	    !s->root.tree->share.differs && (r = job_end_list(j, fd)) == 0)
		r = job_look(j);
	close(fd);
	return r;
}

static int tree_copy(struct job *j)
{
	struct shard_tree *s = j->owner;
	struct tree *t = s->root.tree;
	int r = tree_open(s);
	if (r != 0)
		return r;
	double start = io_now();
	for (int tries = 0; r == 0 && !t->share.differs; tries++) {
		r = j->listed ? 0 : tree_list(s);
		if (r == 0 && !t->share.differs)
			r = entries_copy(s);
		if (j->listed)
			break;
	}
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	tree_close(s);
	return t->share.differs && (r == 0 || r == -EIO) && t->root.failures == 0 ? job_differs(j)
										  : r;
}

static int tree_commit(struct job *j)
{
	struct shard_tree *s = j->owner;
	struct building *root = &s->root;
	int r = tree_open(s);
	if (r != 0)
		return r;
	root->part = j->part;
	root->slot = (struct slot){
	    .how = HOW_PART, .stage = SLOT_MADE, .home = j->part.fd, .name = PART_DATA};
	root->receipt = true;
	r = finish_tree(s);
	tree_close(s);
	if (r == -ENOENT && root->tree->root.failures == 0)
		return RESULT_AGAIN; /* of the part, or from the rename: another process was faster
				      */
	if (r == 0)
		job_end(j);
	return r;
}

static int tree_begin(struct shard_tree *s, struct tree *t, const struct operand *from,
		      const struct operand *to)
{
	static const struct job_work work = {tree_check, tree_make, tree_remove, tree_copy,
					     tree_commit};
	*s = (struct shard_tree){.root = {.tree = t, .from = from, .to = to, .dst = -1},
				 .lock = PTHREAD_MUTEX_INITIALIZER};
	s->root.part.fd = -1;
	s->job = (struct job){.work = &work,
			      .owner = s,
			      .shard = t->options->copy.shard,
			      .options = &t->options->copy,
			      .source = &from->place.st,
			      .agreed = tree_agreed(t),
			      .tree = true,
			      .parent = to->place.dir,
			      .name = to->place.name,
			      .path = to->path,
			      .error = &s->error,
			      .reason = s->reason};
	return job_init(&s->job);
}

static int tree_end(struct shard_tree *s, int r)
{
	job_free(&s->job);
	if (r < 0 && s->error.err)
		report_operand(s->root.tree, &s->error);
	return r;
}

/* A late retry: a job is known by its root's mtime and inode, and entries below may have changed
 * since the commit. Another name makes another job. */
static int tree_compare(struct shard_tree *s)
{
	uint64_t sum;
	if (s->job.shard.finish || s->job.joined || s->job.shard.job)
		return 0;
	int r = list_sum(s->root.tree, s->root.from, &sum);
	return r < 0 || sum == s->job.sum ? r : job_refuse_committed(&s->job);
}

static int shard_copy_root(struct tree *t, const struct operand *from, const struct operand *to)
{
	struct shard_tree s;
	t->root.ground = (struct ground){.fresh = true}; /* of a walk that only lists */
	t->share.differs = false;
	t->root.failures = 0;
	t->root.src.dev = from->place.st.st_dev;
	t->known.umask = temporary_umask();
	int r = tree_begin(&s, t, from, to);
	if (r == 0)
		r = root_check_inside(&s.root, to->place.dir);
	if (r == 0)
		r = root_check_part_source(&s.root);
	if (r == 0)
		r = job_run(&s.job);
	if (r == RESULT_COMMITTED && (r = tree_compare(&s)) == 0)
		t->root.committed = true;
	return tree_end(&s, r);
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
	static const struct shared_copy shards = {.copy_root = shard_copy_root,
						  .copy_file = shard_copy_file,
						  .list = list_add,
						  .leave = list_leave};
	const bool shared = shard_is_asked(options ? &options->copy : NULL);
	return tree_run(src, n, dst, options, report, shared ? &shards : NULL);
}
