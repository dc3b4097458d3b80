/* SPDX-License-Identifier: MIT
 * The name of DST proves nothing: SRC, DST or the options may have changed
 * since the copy was complete. So DST is compared with SRC.
 */
#include "directory.h"
#include "endpoints/error.h"
#include "entry.h"
#include "report.h"
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The source and the options are those of the killed run, which has set the times of all files:
 * then they prove what the bytes would. */
static bool finished_has_times(const struct building *r)
{
	const struct fcopy_options *o = &r->tree->options->copy;
	return r->committed && o->preserve & FCOPY_ATTR_TIMESTAMPS && !o->verify &&
	       part_same_source(&r->part, &r->record.source, r->record.options);
}

/* Is DST, which r->dst holds open, the complete copy of SRC? Compares, and changes nothing: walks
 * as another tree, which shares what is known of SRC and of the storage, but not what the first one
 * has met: that is no rival. links: hard links count, too. Returns 1, 0, or -errno, reported. */
static int finished_walk(const struct building *r, bool links, struct fcopy_tree_report *found)
{
	struct tree *t = r->tree;
	struct fcopy_tree_options o = *t->options;
	struct tree other = {.options = &o,
			     .filter = t->filter,
			     .operands = t->operands,
			     .report = found,
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .root = {.source = t->root.source,
				      .last = t->root.last,
				      .inodes.within = t->root.inodes.within,
				      .compares = r->committed ? COMPARES_BELOW : COMPARES_ALL},
			     .known = {.storage = t->known.storage,
				       .equal = t->known.equal,
				       .mounts = t->known.mounts,
				       .umask = t->known.umask},
			     .links = links ? links_new() : NULL,
			     .claims = CLAIMS_EMPTY};
	struct building rehearsed = *r;
	const bool each = !o.dry_run && flush_needs_each(t, r->dst);
	*found = (struct fcopy_tree_report){.steps = 0};
	o.dry_run = true;
	o.hard_links = links;
	o.report_entries = false;
	o.checksum = !finished_has_times(r);
	o.copy.notify = NULL;
	if (links && !other.links)
		return root_fail(r, "malloc", ENOMEM);
	rehearsed.tree = &other;
	rehearsed.slot.how = HOW_NONE;
	rehearsed.dst = fcntl(r->dst, F_DUPFD_CLOEXEC, 0);
	const int err = rehearsed.dst < 0 ? errno : 0;
	const bool complete = err == 0 &&
			      root_rehearse(&rehearsed, each ? FLUSH_EACH : FLUSH_NONE) == 0 &&
			      outcome_sum(found->count, SUM_CHANGES) == 0;
	links_free(other.links);
	claims_free(&other.claims);
	t->known.equal.left_out |= other.known.equal.left_out;
	if (err)
		return root_fail(r, "fcntl(F_DUPFD)", err);
	return tree_is_cancelled(t) ? -EINTR : complete;
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

/* Is DST the complete copy of SRC, or would it be if DST could have hard links? Returns as
 * finished_walk(). The directory itself gets its attributes again at the end of a commit. */
static int finished_compare(const struct building *r)
{
	struct tree *t = r->tree;
	const struct fcopy_tree_options *o = t->options;
	struct fcopy_tree_report found;
	/* Asked below, its answer would change the times of a directory that is compared. */
	if (!o->dry_run) {
		(void)storage_stores(t->known.storage, r->to->place.dir, STORAGE_CHANGES_MODES);
		(void)storage_stores(t->known.storage, r->to->place.dir, STORAGE_CHANGES_OWNERS);
	}
	int complete = finished_walk(r, o->hard_links, &found);
	const uint64_t unlinked = found.count[FCOPY_COUNT_HARD_LINKS];
	const bool again = complete == 0 && unlinked > 0 &&
			   outcome_sum(found.count, SUM_CHANGES) == unlinked;
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
		return root_fail(r, "open", -r->dst);
	/* Files would have to be read from the storage, or flushed one by one. */
	const char *unknown = o->verify ? "exists; whether it is the complete copy is not known "
					  "with --verify: leave that out"
			      : o->fsync && flush_needs_each(t, r->dst)
				  ? "exists; whether it is the complete copy is not known with "
				    "--fsync on this storage: leave that out"
				  : NULL;
	int result = unknown ? root_refuse(r, EEXIST, unknown, FCOPY_ADVICE_USAGE)
			     : finished_compare(r);
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
	const bool merges = tree_has_several(t) || t->options->into_directory;
	int result = t->options->dry_run ? RESULT_EXISTS : home_open_committed(r, st);
	if (result == 0 && !merges)
		return finished_committed(r);
	if (result == 0)
		result = home_leave_committed(r);
	if (result < 0)
		return result;
	return merges ? RESULT_MERGES : finished_check(r);
}
