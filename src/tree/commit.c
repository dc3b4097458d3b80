/* SPDX-License-Identifier: MIT
 * The end of an operand that names a directory: a new tree gets its name, or it is kept as
 * DST.fcopy-part, or it is removed.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "permissions.h"
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A separate descriptor: the operand's may be O_PATH. */
static int commit_flush_parent(const struct root *r)
{
	int fd = openat(r->to->place.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = fd < 0 ? -errno : io_flush_directory(fd);
	if (fd >= 0)
		close(fd);
	return result < 0 ? root_fail(r, "fsync of the directory", -result) : 0;
}

static int commit_rename(const struct root *r, const char *to)
{
	return private_rename(r->home, r->temporary, r->to->place.dir, to);
}

/* A directory that changes its parent needs w for its owner, because its ".." changes: it gets a
 * mode without w afterwards. */
static int commit_move(const struct root *r)
{
	struct stat st;
	int result = commit_rename(r, r->to->place.name);
	if (result != -EACCES || r->hidden.fd < 0 || fstat(r->dst, &st) < 0 ||
	    st.st_mode & S_IWUSR || fchmod(r->dst, (st.st_mode & 07777) | S_IWUSR) < 0)
		return result;
	result = commit_rename(r, r->to->place.name);
	return fchmod(r->dst, st.st_mode & 07777) < 0 && result == 0 ? root_fail(r, "fchmod", errno)
								     : result;
}

/* The path of a name beside the destination. */
static void commit_path(const struct root *r, const char *name, char path[PATH_MAX])
{
	snprintf(path + operand_directory(r->to, path), PATH_MAX - r->to->start, "%s", name);
}

static void commit_remove(const struct root *r)
{
	struct fcopy_progress *p = r->tree->options->copy.progress;
	double start = io_now();
	copy_phase(&(struct copy){.options = &r->tree->options->copy}, FCOPY_PHASE_REMOVE, 0);
	if (p)
		__atomic_store_n(&p->entries, 0, __ATOMIC_RELAXED);
	int result = remove_tree(r->dst, r->home, r->temporary, p ? &p->entries : NULL);
	r->tree->report->seconds[FCOPY_PHASE_REMOVE] += io_now() - start;
	if (result == 0)
		return;
	commit_path(r, r->hidden.fd >= 0 ? r->hidden.name : r->temporary, r->tree->report->part);
	root_fail(r, "remove", -result);
}

/* Keeps what was copied although entries failed. What cannot be called DST.fcopy-part could not be
 * resumed, and is removed. */
void commit_keep(const struct root *r)
{
	/* It may have its final owner and mode already: --resume requires its own. */
	struct stat parent = {0};
	(void)!fchown(r->dst, geteuid(), (gid_t)-1);
	(void)!fstat(r->to->place.dir, &parent);
	/* What later runs create there inherits its setgid bit. */
	fchmod(r->dst, 0700 | (parent.st_mode & S_ISGID));
	/* Before the times: they say that a file is complete. */
	bool proven = r->tree->proven && flush_all(r->tree, r->dst);
	if (r->record)
		record_keep(r->record);
	/* A failure shows when it is resumed. */
	int marked = r->part[0] ? resume_mark(r->dst) : -ENAMETOOLONG;
	if (proven && (marked == 0 || (marked == -EEXIST && r->resumes)))
		(void)!resume_prove(r->dst, true);
	char *part = r->tree->report->part, earlier[PATH_MAX];
	strcpy(earlier, part);
	if (r->resumes || (r->part[0] && commit_rename(r, r->part) == 0))
		commit_path(r, r->part, part);
	else
		commit_remove(r);
	/* The report has one part. */
	if (earlier[0] && strncmp(earlier, part, strlen(part)) != 0)
		copy_warn(&(struct copy){.options = &r->tree->options->copy}, earlier, EEXIST,
			  "was kept, unfinished", FCOPY_ADVICE_NONE);
}

/* With --keep-going a failure is one of an entry: it is reported and does not prevent the commit.
 */
static int commit_set_attributes(struct root *r, struct directory *d)
{
	struct tree *t = r->tree;
	const bool keep_going = t->options->keep_going;
	struct worker w = {.tree = t};
	uint64_t failures = t->failures;
	if (t->options->copy.preserve)
		directory_set_attributes(&w, d);
	report_add(t->report, &w.sum);
	int result = t->failures > failures ? -EIO : 0;
	if ((result == 0 || keep_going) && r->temporary[0] &&
	    !(t->options->copy.preserve & FCOPY_ATTR_MODE)) {
		int set = permissions_set(r->dst, r->mode);
		if (set < 0 && !permissions_are_fixed(-set))
			directory_warn_mode(&w, d, -set);
	}
	return keep_going ? 0 : result;
}

/* The kernel does not report which files lost data, and reports the failure once: every file of the
 * tree can look complete and not be. */
static int commit_fail_flush(struct root *r, const char *call, int err)
{
	r->unsound = true;
	return root_fail(r, call, err);
}

static int commit_flush(struct root *r)
{
	double start = io_now();
	copy_tree_phase(r->tree->options->copy.progress, FCOPY_PHASE_FSYNC);
	const char *call;
	int result = flush_tree(r->tree, r->dst, &call);
	if (result < 0)
		return commit_fail_flush(r, call, -result);
	r->tree->report->seconds[FCOPY_PHASE_FSYNC] += io_now() - start;
	return 0;
}

/* A part keeps its mark as long as possible: without it, it could not be resumed. */
static int commit_part(struct root *r, struct directory *d)
{
	int result = resume_unmark(r->dst);
	if (result < 0)
		return root_fail(r, "unlink of " RESUME_MARK, -result);
	result = commit_set_attributes(r, d);
	if (result == 0 && r->tree->options->copy.fsync && fsync(r->dst) < 0)
		result = commit_fail_flush(r, "fsync", errno);
	return result;
}

/* Another process was faster. If it was a shard, the caller looks at the records again: a client of
 * NFS can have the name cached that another client has just renamed. */
static int commit_fail_rename(const struct root *r, int err)
{
	if (err == ENOENT && r->tree->shard)
		return -ENOENT;
	if (err != EEXIST && err != ENOTEMPTY)
		return root_fail(r, "rename", err);
	root_refuse(r, EEXIST, "was created by another process during the copy", FCOPY_ADVICE_NONE);
	return -EEXIST;
}

/* If somebody has moved the part away, its name may be that of another copy's part. */
static int commit_check_part(const struct root *r)
{
	struct stat st, named;
	if (fstat(r->dst, &st) < 0)
		return root_fail(r, "fstat", errno);
	bool there = fstatat(r->home, r->temporary, &named, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT)
		return root_fail(r, "stat", errno);
	if (there && st.st_dev == named.st_dev && st.st_ino == named.st_ino)
		return 0;
	if (!r->tree->shard)
		root_refuse(r, ENOENT, PART_REPLACED, FCOPY_ADVICE_NONE);
	return -ENOENT;
}

int commit_root(struct root *r, struct directory *d)
{
	struct tree *t = r->tree;
	const bool durable = t->options->copy.fsync || t->shard;
	int result = r->resumes ? 0 : commit_set_attributes(r, d);
	if (result == 0 && durable)
		result = commit_flush(r);
	if (result == 0 && r->temporary[0] && tree_stopped(t)) /* the flush can take long */
		result = -EINTR;
	if (result == 0 && r->resumes)
		result = commit_part(r, d);
	if (result < 0)
		return result;
	double start = io_now();
	if ((r->resumes || t->shard) && (result = commit_check_part(r)) < 0)
		return result;
	if (r->temporary[0] && !r->named && (result = commit_move(r)) < 0)
		return commit_fail_rename(r, -result);
	if (durable && (result = commit_flush_parent(r)) < 0)
		r->temporary[0] = '\0'; /* it has its name */
	t->report->seconds[FCOPY_PHASE_REPLACE] += io_now() - start;
	t->committed = true;
	return result;
}

int commit_end(struct root *r, struct directory *d)
{
	struct tree *t = r->tree;
	int result = 0;
	bool complete = t->failures == 0;
	if (!tree_stopped(t) && (complete || t->options->keep_going || !r->temporary[0])) {
		result = commit_root(r, d);
		if (result == 0)
			return t->failures == 0 ? 0 : -EIO;
	}
	if (tree_stopped(t) && !t->committed) {
		if (r->resumes && !r->unsound)
			commit_keep(r);
		else if (r->temporary[0])
			commit_remove(r);
		return t->stop ? t->stop : -EINTR;
	}
	/* A part beside a DST that exists could not be resumed. An unsound one must not be. What
	 * cannot be renamed cannot become a part. */
	if (r->temporary[0] && (r->unsound || r->named || (result == -EEXIST && !r->resumes)))
		commit_remove(r);
	else if (r->temporary[0]) {
		commit_keep(r);
		if (result == -ENOENT) /* moved: the name is not that of this part */
			t->report->part[0] = '\0';
	}
	return result < 0 ? result : -EIO;
}
