/* SPDX-License-Identifier: MIT
 * The end of an operand that names a directory: a new tree gets its name, or it is kept as
 * DST.fcopy-part, or it is removed.
 */
#include "directory.h"
#include "endpoints/error.h"
#include "io/io.h"
#include "io/system.h"
#include "report.h"
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int commit_flush_parent(const struct building *r)
{
	const int result = io_flush_place(r->to->place.dir);
	if (result == 0)
		return 0;
	struct fcopy_error error;
	error_call(&error, "fsync of the directory", r->to->path, -result);
	error.advice = FCOPY_ADVICE_FLUSH;
	return report_operand(r->tree, &error);
}

#define WRITEBACK_MS 4096 /* the longest of the waits, each twice as long as the one before */

static bool commit_waits(const struct building *r, int result)
{
	return result < 0 && result != -EEXIST && result != -ENOTEMPTY && result != -ENOENT &&
	       result != -EACCES && result != -EXDEV && !tree_stopped(r->tree) &&
	       !storage_is_known(r->to->place.dir);
}

static int commit_once(struct building *r)
{
	struct failure fail;
	const int result = slot_commit(&r->slot, r->to->place.dir, r->to->place.name, &fail);
	return result == RESULT_TAKEN ? -EEXIST : result;
}

/* Some storage renames no directory whose files are open, or that it still writes back: waits. */
static int commit_rename(struct building *r)
{
	int release = 1, result = commit_once(r);
	while (result == -EACCES && !tree_stopped(r->tree) && !storage_is_known(r->to->place.dir) &&
	       private_await_release(EACCES, &release))
		result = commit_once(r);
	for (long ms = 1; ms <= WRITEBACK_MS && commit_waits(r, result); ms *= 2) {
		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
		result = commit_once(r);
	}
	return result;
}

/* F2FS changes the modification time of a directory whose ".." changes. before: its time was that
 * of SRC, unless it could not be set. */
static void commit_restore_time(const struct building *r, const struct stat *before)
{
	struct stat st;
	if (before->st_mtim.tv_sec != r->from->place.st.st_mtim.tv_sec || fstat(r->dst, &st) < 0 ||
	    st.st_mtim.tv_sec == before->st_mtim.tv_sec)
		return;
	if (futimens(r->dst, (struct timespec[2]){before->st_atim, before->st_mtim}) < 0)
		root_fail(r, "utimensat", errno);
	else if (r->tree->options->copy.fsync && fsync(r->dst) < 0)
		root_fail(r, "fsync", errno);
}

/* A directory that changes its parent needs w for its owner, because its ".." changes: it gets a
 * mode without w afterwards. */
static int commit_move(struct building *r)
{
	struct stat st;
	const bool moves = r->part.fd >= 0 && fstat(r->dst, &st) == 0;
	int result = commit_rename(r);
	if (result == -EACCES && moves && !(st.st_mode & S_IWUSR) &&
	    fchmod(r->dst, (st.st_mode & 07777) | S_IWUSR) == 0) {
		result = commit_rename(r);
		if (fchmod(r->dst, st.st_mode & 07777) < 0 && result == 0)
			root_fail(r, "fchmod", errno);
	}
	if (result == 0 && moves && r->tree->options->copy.preserve & FCOPY_ATTR_TIMESTAMPS)
		commit_restore_time(r, &st);
	return result;
}

/* The path of a name beside the destination. */
static void commit_path(const struct building *r, const char *name, char path[PATH_MAX])
{
	snprintf(path + operand_directory(r->to, path), PATH_MAX - r->to->start, "%s", name);
}

static void commit_warn(const struct building *r, const char *name, const char *operation,
			const char *call, int err)
{
	char path[PATH_MAX];
	struct fcopy_error error;
	commit_path(r, name, path);
	error_operation(&error, operation, call, path, err);
	report_operand_warning(r->tree, &error);
}

void commit_warn_left(const struct building *r, const char *name, int err)
{
	commit_warn(r, name, NULL, "remove", err);
}

/* Closes the part, if there is one; `keep`: it stays, to be resumed. Nobody may continue a part
 * that is being removed. */
static void commit_close_part(struct building *r, bool keep)
{
	if (r->part.fd < 0 || r->receipt)
		return;
	if (!keep && r->part.published)
		part_hide(&r->part);
	const int result = part_close(&r->part, !keep);
	if (result < 0 && keep)
		commit_warn(r, r->part.name, "close of its journal", "close", -result);
	else if (result < 0 && !r->tree->report->part[0])
		commit_warn_left(r, r->part.name, -result);
}

void commit_abort(struct building *r)
{
	io_close(r->dst);
	const bool earlier = r->resumes || r->committed;
	if (r->slot.stage == SLOT_MADE && !earlier)
		unlinkat(r->slot.home, root_name(r), AT_REMOVEDIR);
	commit_close_part(r, earlier);
}

/* Another process has made entries in DST: they are not removed. */
static void commit_leave(struct building *r)
{
	const int set = permissions_set(r->dst, r->mode);
	r->tree->root.in_place = true;
	if (set < 0 && !permissions_are_fixed(-set))
		root_fail(r, "fchmod", -set);
}

static void commit_remove(struct building *r)
{
	if (r->slot.how == HOW_FINAL &&
	    __atomic_load_n(&r->tree->root.shared_by, __ATOMIC_RELAXED)) {
		commit_leave(r);
		return;
	}
	struct fcopy_progress *p = r->tree->options->copy.progress;
	double start = io_now();
	copy_phase(&(struct copy){.options = &r->tree->options->copy}, FCOPY_PHASE_REMOVE, 0);
	if (p)
		__atomic_store_n(&p->entries, 0, __ATOMIC_RELAXED);
	if (r->part.published)
		part_hide(&r->part);
	int result = remove_tree(r->dst, r->slot.home, root_name(r), p ? &p->entries : NULL);
	if (result < 0)
		commit_path(r, r->part.fd >= 0 ? r->part.name : root_name(r),
			    r->tree->report->part);
	commit_close_part(r, false);
	r->tree->report->seconds[FCOPY_PHASE_REMOVE] += io_now() - start;
	if (result < 0)
		root_fail(r, "remove", -result);
}

/* Makes the part continuable: by its journal, its name, and what is on the storage. */
static bool commit_keep_part(struct building *r)
{
	/* It may have its final owner and mode already. */
	struct stat parent = {0};
	(void)!fchown(r->dst, geteuid(), (gid_t)-1);
	(void)!fstat(r->to->place.dir, &parent);
	/* What later runs create there inherits its setgid bit. */
	fchmod(r->dst, 0700 | (parent.st_mode & S_ISGID));
	record_keep(&r->record);
	if (r->part.log < 0 || (!r->part.published && fdatasync(r->part.log) < 0 &&
				!system_has(r->part.fd, SYSTEM_LOCAL)))
		return false; /* without its journal it could not be resumed */
	if (flush_all(r->tree, r->dst))
		part_note_flushed(&r->part);
	else
		part_note_lost(&r->part);
	return r->part.published || part_publish(&r->part, &r->dst) == 0;
}

/* Keeps what was copied although entries failed. What cannot be resumed is removed, and links: a
 * later run could change what they are names of. */
static void commit_keep(struct building *r)
{
	const struct fcopy_tree_options *o = r->tree->options;
	const bool links = o->link_dest || o->link || o->symbolic_link || o->attributes_only;
	if (r->part.fd >= 0 && !links && commit_keep_part(r)) {
		commit_path(r, r->part.public, r->tree->report->part);
		commit_close_part(r, true);
	} else {
		commit_remove(r);
	}
}

/* With --keep-going a failure is one of an entry: it is reported and does not prevent the commit.
 */
static int commit_set_attributes(struct building *r, struct directory *d, struct outcome *o)
{
	struct tree *t = r->tree;
	const bool keep_going = t->options->keep_going;
	struct worker w = {.tree = t};
	uint64_t failures = t->root.failures;
	if (t->options->copy.preserve)
		directory_repair(&w, d, o);
	report_add(t->report, &w.sum);
	int result = t->root.failures > failures ? -EIO : 0;
	if ((result == 0 || keep_going) && root_is_new(r) &&
	    !(t->options->copy.preserve & FCOPY_ATTR_MODE)) {
		int set = permissions_set(r->dst, r->mode);
		if (set < 0 && !permissions_are_fixed(-set))
			directory_warn_mode(&w, d, -set);
	}
	return keep_going ? 0 : result;
}

/* The kernel does not report which files lost data, and reports the failure once: every file of the
 * tree can look complete and not be. */
static int commit_fail_flush(struct building *r, const char *call, int err)
{
	r->tree->root.doubt = DOUBT_PART;
	return root_fail(r, call, err);
}

static int commit_flush(struct building *r)
{
	double start = io_now();
	copy_tree_phase(r->tree->options->copy.progress, FCOPY_PHASE_FSYNC);
	struct failure fail = {.call = "syncfs"};
	const bool durable = r->tree->options->copy.fsync || r->tree->share.by;
	int result = durable ? flush_tree(r->dst, r->tree->root.ground.flush == FLUSH_EACH, &fail)
			     : system_sync(r->dst);
	if (result < 0)
		return commit_fail_flush(r, fail.call, -result);
	r->tree->report->seconds[FCOPY_PHASE_FSYNC] += io_now() - start;
	return 0;
}

/* Another process was faster. If the copy is shared, the caller looks at the part again: a client
 * of NFS can have the name cached that another client has just renamed. */
static int commit_fail_rename(const struct building *r, int err)
{
	if ((err == ENOENT || err == ESTALE) && r->tree->share.by)
		return -ENOENT;
	if (err != EEXIST && err != ENOTEMPTY)
		return root_fail(r, "rename", err);
	root_refuse(r, EEXIST, "was created by another process during the copy", FCOPY_ADVICE_NONE);
	return -EEXIST;
}

/* If the part was renamed, its name may now belong to the part of another copy. */
static int commit_check_part(const struct building *r)
{
	if (part_is_named(&r->part))
		return 0;
	if (errno && errno != ENOENT)
		return root_fail(r, "stat", errno);
	root_refuse(r, ENOENT, PART_REPLACED, FCOPY_ADVICE_NONE);
	return -ENOENT;
}

int commit_root(struct building *r, struct directory *d, struct outcome *o)
{
	struct tree *t = r->tree;
	const bool durable = t->options->copy.fsync || t->share.by;
	int result = commit_set_attributes(r, d, o);
	admit_end(t, d);
	/* With --resume, too: a power cut must not leave a tree with its name, but without its
	 * bytes, which the same command would refuse to complete. Nor after a first mirror: the
	 * next one would take size and time for a proof. */
	const bool mirrored = t->options->update == FCOPY_UPDATE_CHANGED && root_is_new(r);
	if (result == 0 && (durable || mirrored || r->part.published))
		result = commit_flush(r);
	if (result == 0 && root_is_new(r) && !r->committed && tree_stopped(t))
		result = -EINTR; /* the flush can take long */
	if (result < 0)
		return result;
	double start = io_now();
	if (r->part.published && (result = commit_check_part(r)) < 0)
		return result;
	if (HOW_IS(&r->slot, HOW_INVISIBLE) && (result = commit_move(r)) < 0)
		return commit_fail_rename(r, -result);
	r->slot.stage = SLOT_NAMED;
	result = durable ? commit_flush_parent(r) : 0;
	commit_close_part(r, false);
	t->report->seconds[FCOPY_PHASE_REPLACE] += io_now() - start;
	t->root.committed = true;
	return result;
}

/* The operand's own directory is finished. A merge has no commit: with a failure, it is incomplete.
 */
static void commit_report(const struct building *r, const struct directory *d,
			  const struct outcome *o)
{
	struct tree *t = r->tree;
	if (!root_is_new(r) && t->root.failures > 0)
		t->root.committed = false;
	if (!d->failed && o->action != FCOPY_ACTION_UNCHANGED)
		report_operand_outcome(t, o, r->to->path, NULL);
}

static enum fate commit_fate(const struct building *r, int result)
{
	struct tree *t = r->tree;
	return decide_fate(&(struct end_facts){
	    .stopped = tree_stopped(t),
	    .failed = t->root.failures > 0,
	    .goes_on = t->options->keep_going && t->root.doubt == DOUBT_NONE,
	    .fresh = root_is_new(r),
	    .committed = r->committed || r->slot.stage == SLOT_NAMED,
	    .part = r->part.fd >= 0,
	    .published = r->part.published,
	    .doubted = t->root.doubt == DOUBT_PART,
	    .result = result,
	});
}

int commit_end(struct building *r, struct directory *d)
{
	struct tree *t = r->tree;
	int result = 0;
	if (commit_fate(r, 0) == FATE_COMMIT) {
		struct outcome o = directory_outcome(t, d);
		result = commit_root(r, d, &o);
		if (result == 0) {
			commit_report(r, d, &o);
			return t->root.failures == 0 ? 0 : -EIO;
		}
	}
	const bool stopped = tree_stopped(t) && !t->root.committed;
	if (!r->committed)
		admit_end(t, d);
	switch (commit_fate(r, result < 0 ? result : -EIO)) {
	case FATE_KEEP:
		commit_keep(r);
		if (result == -ENOENT) /* moved: the name is not that of this part */
			t->report->part[0] = '\0';
		break;
	case FATE_REMOVE: commit_remove(r); break;
	case FATE_STAY:
	case FATE_COMMIT: commit_close_part(r, true); break;
	}
	if (stopped && !r->committed)
		return t->stop ? t->stop : -EINTR;
	return result < 0 || r->committed ? result : -EIO;
}
