/* SPDX-License-Identifier: MIT
 * The name of DST proves nothing: SRC, DST or the options may have changed
 * since the copy was complete. So DST is compared with SRC.
 */
#define _GNU_SOURCE
#include "directory.h"
#include "endpoints/error.h"
#include "inodes.h"
#include "links.h"
#include "mirror.h"
#include "opened.h"
#include "report.h"
#include "root.h"
#include "update.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t finished_differences(const struct fcopy_tree_report *found)
{
	const uint64_t *n = found->count;
	return n[FCOPY_COUNT_FILES] + n[FCOPY_COUNT_DIRECTORIES] + n[FCOPY_COUNT_SYMLINKS] +
	       n[FCOPY_COUNT_SPECIALS] + n[FCOPY_COUNT_HARD_LINKS] + n[FCOPY_COUNT_REPAIRED];
}

/* The source and the options are those of the killed run, which has set the times of all files:
 * then they prove what the bytes would. */
static bool finished_has_times(const struct building *r)
{
	const struct fcopy_options *o = &r->tree->options->copy;
	return r->committed && o->preserve & FCOPY_ATTR_TIMESTAMPS && !o->verify &&
	       part_same_source(&r->part, &r->record.source, r->record.options);
}

/* Another tree, for a walk that compares: nothing that it does shows in the copy's. They share what
 * is known of SRC and of the storage. */
static struct tree finished_tree(const struct building *r, const struct fcopy_tree_options *o,
				 struct fcopy_tree_report *found)
{
	const struct tree *t = r->tree;
	struct tree compares = {.options = o,
				.filter = t->filter,
				.report = found,
				.io = {.cancel = t->io.cancel},
				.monitor = t->monitor,
				.threads = t->threads,
				.lock = PTHREAD_MUTEX_INITIALIZER,
				.replacing = PTHREAD_MUTEX_INITIALIZER,
				.opened.lock = PTHREAD_MUTEX_INITIALIZER,
				.root = t->root,
				.last = t->last,
				.several = t->several,
				.umask = t->umask,
				.storage = t->storage,
				.equal = t->equal,
				.operand = t->operand,
				.operands = t->operands,
				.destination = t->destination,
				.linked = t->linked,
				.backups = t->backups,
				.mounts = t->mounts,
				.sources = t->sources};
	compares.root.compares = r->committed ? COMPARES_BELOW : COMPARES_ALL;
	return compares;
}

/* Is DST, which r->dst holds open, the complete copy of SRC? Compares, and changes nothing. links:
 * hard links count, too. Returns 1, 0, or -errno, reported. */
static int finished_walk(const struct building *r, bool links, struct fcopy_tree_report *found)
{
	struct tree *t = r->tree;
	struct fcopy_tree_options compares = *t->options;
	struct building rehearsed = *r;
	const bool dry = compares.dry_run;
	*found = (struct fcopy_tree_report){.steps = 0};
	rehearsed.slot.how = HOW_NONE;
	rehearsed.dst = fcntl(r->dst, F_DUPFD_CLOEXEC, 0);
	if (rehearsed.dst < 0)
		return root_fail(r, "fcntl(F_DUPFD)", errno);
	compares.dry_run = true;
	compares.hard_links = links;
	compares.report_entries = false;
	compares.checksum = !finished_has_times(r);
	compares.copy.notify = NULL;
	struct tree other = finished_tree(r, &compares, found);
	other.links = links ? links_new() : NULL;
	other.made = inodes_new(); /* what one walk has met is no rival for the next one */
	other.entered = inodes_new();
	other.reached = inodes_new();
	other.taken = inodes_new();
	const bool memory = other.made && other.entered && other.reached && other.taken &&
			    (!links || other.links);
	if (!memory)
		close(rehearsed.dst);
	rehearsed.tree = &other;
	const bool each = !dry && flush_needs_each(t, r->dst);
	const bool complete = memory &&
			      root_rehearse(&rehearsed, each ? FLUSH_EACH : FLUSH_NONE) == 0 &&
			      finished_differences(found) == 0;
	links_free(other.links);
	inodes_free(other.made);
	inodes_free(other.entered);
	inodes_free(other.reached);
	inodes_free(other.taken);
	t->sources = other.sources;
	t->equal.left_out |= other.equal.left_out;
	if (!memory)
		return root_fail(r, "malloc", ENOMEM);
	return io_cancelled(&t->io) ? -EINTR : complete;
}

/* Where DST has no links, equal bytes are enough. */
static void finished_warn(const struct building *r)
{
	struct fcopy_error error;
	error_refuse(&error, r->to->path, EMLINK,
		     "is the complete copy, but lacks hard links of SRC: files there are equal",
		     FCOPY_ADVICE_NONE);
	report_operand_warning(r->tree, &error);
}

/* The same. The directory itself gets its attributes again at the end of a commit. */
static int finished_compare(const struct building *r)
{
	struct tree *t = r->tree;
	const struct fcopy_tree_options *o = t->options;
	struct fcopy_tree_report found;
	/* Asked below, its answer would change the times of a directory that is compared. */
	if (!o->dry_run) {
		(void)storage_stores(t->storage, r->to->place.dir, STORAGE_CHANGES_MODES);
		(void)storage_stores(t->storage, r->to->place.dir, STORAGE_CHANGES_OWNERS);
	}
	int complete = finished_walk(r, o->hard_links, &found);
	const uint64_t unlinked = found.count[FCOPY_COUNT_HARD_LINKS];
	const bool again = complete == 0 && unlinked > 0 &&
			   finished_differences(&found) == unlinked;
	if (again) /* a name that is missing would be a link, too */
		complete = lseek(r->from->fd, 0, SEEK_SET) < 0 ? root_fail(r, "lseek", errno)
							       : finished_walk(r, false, &found);
	if (complete > 0)
		t->report->count[FCOPY_COUNT_UNCHANGED] += found.count[FCOPY_COUNT_UNCHANGED];
	if (complete > 0 && again)
		finished_warn(r);
	return complete;
}

static int finished_refuse(const struct building *r)
{
	return r->tree->options->copy.no_directory
		   ? root_refuse(r, EEXIST,
				 "exists and is not the complete copy: to merge into it, leave "
				 "out --resume",
				 FCOPY_ADVICE_USAGE)
		   : root_refuse(r, EEXIST, "exists and is not the complete copy",
				 FCOPY_ADVICE_INTO);
}

/* An earlier run was killed between the commit's rename and the removal of the part. */
static int finished_committed(struct building *r)
{
	int result = finished_compare(r);
	if (result > 0)
		return 0;
	/* What is left of the killed run belongs to its command: another one does not remove it. */
	if (result == 0 && part_same_source(&r->part, &r->record.source, r->record.options))
		result = home_leave_committed(r);
	else
		commit_abort(r);
	return result == 0 ? finished_refuse(r) : result;
}

/* If an earlier run was killed after it had removed its part, nothing else shows that DST was
 * complete. */
static int finished_check(struct building *r)
{
	struct tree *t = r->tree;
	const struct fcopy_options *o = &t->options->copy;
	struct failure fail;
	r->dst = directory_open(t, r->to->place.dir, r->to->place.name);
	if (r->dst < 0)
		return root_fail(r, "open", errno);
	/* Then files would have to be read from the storage, or flushed one by one. */
	const bool each = o->verify || (o->fsync && flush_needs_each(t, r->dst));
	int result = each ? 0 : finished_compare(r);
	if (result == 0)
		result = finished_refuse(r);
	else if (result > 0 && o->fsync && !t->options->dry_run &&
		 (result = flush_tree(r->dst, false, &fail)) < 0)
		result = root_fail(r, fail.call, -result);
	close(r->dst);
	if (result < 0)
		return result;
	t->root.committed = true;
	return RESULT_COMMITTED;
}

int finished_open(struct building *r, const struct stat *st)
{
	const struct tree *t = r->tree;
	const bool merges = t->several || t->options->into_directory;
	int result = t->options->dry_run ? RESULT_EXISTS : home_open_committed(r, st);
	if (result == 0 && !merges)
		return finished_committed(r);
	if (result == 0)
		result = home_leave_committed(r);
	if (result < 0)
		return result;
	return merges ? RESULT_MERGES : finished_check(r);
}

/* The walk of one SRC, by a copy, by a dry run, and by the comparison of --resume. */

/* Copies what is in the directory. */
void root_walk(struct building *r, struct directory *d)
{
	struct tree *t = r->tree;
	const bool merges = r->dst >= 0 && !root_is_new(r);
	if (merges && t->options->update == FCOPY_UPDATE_CHANGED) /* the marker */
		admit_changes(t, d);
	if (merges)
		mirror_begin(t, r->to, r->dst);
	if (link_dest_open(t, r->dst >= 0 ? r->dst : r->to->place.dir, r->to->place.name,
			   &d->link) == 0)
		walk_tree(t, d);
	else
		t->root.failures++;
	if (d->link >= 0)
		close(d->link);
	walk_report_missing(t, d);
	if (merges)
		mirror_end(t, d);
	/* What was copied need not be what SRC has: its directory may have been emptied first. Then
	 * a new tree gets no name, not even one that goes without what failed. */
	if ((t->root.failures == 0 || t->options->keep_going) && !tree_stopped(t) &&
	    !opened_has_name(t, d)) {
		const int err = errno;
		t->root.failures++;
		t->root.doubtful = true;
		/* The next mirror copies all again: it cannot be combined with --resume. */
		r->unsound |= t->options->delete_extra;
		if (opened_is_gone(err))
			tree_refuse(t, r->from->path, err,
				    "was moved, replaced or removed during the copy",
				    FCOPY_ADVICE_NONE);
		else
			tree_fail(t, "stat", r->from->path, err);
	}
}

struct directory *root_start(struct building *r, const struct ground *ground)
{
	struct tree *t = r->tree;
	struct stat st = {0};
	struct directory *d = directory_new(NULL, "", r->from->fd, r->dst, &r->from->place.st);
	if (!d || (r->dst >= 0 && fstat(r->dst, &st) < 0)) {
		root_fail(r, d ? "fstat" : "malloc", d ? errno : ENOMEM);
		free(d);
		return NULL;
	}
	t->root.ground = *ground;
	t->root.doubtful = false;
	t->root.failures = 0;
	t->root.src_dev = r->from->place.st.st_dev;
	t->root.src_ino = r->from->place.st.st_ino;
	t->root.dst_dev = st.st_dev;
	t->root.dst_ino = st.st_ino;
	if (r->dst >= 0)
		directory_note_inode(d, &st);
	d->src_path = r->from->path;
	d->dst_path = r->to->path;
	d->state = ground->journal   ? DIRECTORY_RESUMED
		   : ground->foreign ? DIRECTORY_OLD
				     : DIRECTORY_NEW;
	d->was = st;
	if (ground->foreign)
		d->closed = admit_is_closed(t, d, &st);
	return d;
}

/* A directory that DST lacks has the descriptor -1. */
int root_rehearse(struct building *r, enum flushing flush)
{
	struct tree *t = r->tree;
	const bool fresh = r->dst < 0;
	const struct ground ground = {
	    .fresh = fresh, .exclusive = fresh, .foreign = !fresh, .flush = flush};
	struct directory *d = root_start(r, &ground);
	if (!d) {
		if (r->dst >= 0)
			close(r->dst);
		return -ENOMEM;
	}
	root_walk(r, d);
	const struct outcome o = directory_outcome(t, d);
	directory_unref(d);
	t->root.committed = t->root.failures == 0 && !tree_stopped(t);
	/* As the copy: a merge, and a tree that goes without what failed. */
	const bool made = !tree_stopped(t) && (t->root.committed || r->dst >= 0 ||
					       (t->options->keep_going && !t->root.doubtful));
	if (made && o.action != FCOPY_ACTION_UNCHANGED && t->root.compares != COMPARES_BELOW)
		report_operand_outcome(t, &o, r->to->path, NULL);
	return t->root.committed ? 0 : -EIO;
}
