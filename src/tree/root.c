/* SPDX-License-Identifier: MIT
 * The directory that an operand names: a new one is built under a temporary name and renamed, an
 * existing one is merged into.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART_SUFFIX ".fcopy-part"

struct root {
	struct tree *tree;
	const struct operand *operand;
	char temporary[NAME_MAX + 1]; /* empty: the destination existed */
	char part[NAME_MAX + 1];      /* where an unfinished tree is kept; empty: no such name */
	mode_t mode;                  /* that the temporary directory gets last */
	bool resumes;                 /* temporary is the part */
	int dst;
};

static int root_fail(const struct root *r, const char *call, int err)
{
	struct fcopy_error error;
	error_call(&error, call, r->operand->dst, err);
	report_operand(r->tree, &error);
	return -err;
}

static int root_refuse(const struct root *r, int err, const char *reason, enum fcopy_advice advice)
{
	struct fcopy_error error;
	error_refuse(&error, r->operand->dst, err, reason, advice);
	report_operand(r->tree, &error);
	return -err;
}

/* Is this directory, or one above it, the source? Goes up to the root, and closes fd. 1: it is; 0;
 * -errno. */
static int root_is_below(int fd, const struct stat *src)
{
	struct stat st, below = {0};
	int result = -1;
	while (result < 0) {
		if (fd < 0 || fstat(fd, &st) < 0) {
			result = -errno;
			break;
		}
		if (st.st_dev == src->st_dev && st.st_ino == src->st_ino)
			result = 1;
		else if (st.st_dev == below.st_dev && st.st_ino == below.st_ino)
			result = 0; /* the parent of / is / */
		if (result >= 0)
			break;
		below = st;
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		int err = errno;
		close(fd);
		errno = err;
		fd = up;
	}
	if (fd >= 0)
		close(fd);
	return result;
}

static int root_check_inside(const struct root *r, int dir)
{
	int fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool bound = fd >= 0 &&
		     inside_by_mount(r->operand->src, fd, r->tree->options->one_file_system);
	int result = root_is_below(fd, &r->operand->st);
	if (result == 1 || bound)
		return root_refuse(r, EINVAL, "is inside the tree that is to be copied",
				   FCOPY_ADVICE_USAGE);
	/* A process that may not search there cannot have opened SRC there either. */
	return result == -EACCES || result == 0 ? 0 : root_fail(r, "open", -result);
}

/* Creates it with the mode that the umask and default ACLs leave, for the commit to restore, and
 * closes it to others at once. setgid stays: new files get the directory's group from it. */
static int root_create(struct root *r)
{
	struct stat st;
	int parent = r->operand->parent, result = -EEXIST;
	for (int tries = 0; result == -EEXIST && tries < 8; tries++) {
		result = temporary_draw(r->temporary);
		if (result == 0 &&
		    mkdirat(parent, r->temporary, (r->operand->st.st_mode & 01777) | 0700) < 0)
			result = -errno;
	}
	if (result < 0)
		return root_fail(r, "mkdir", -result);
	r->dst = openat(parent, r->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->dst >= 0 && fstat(r->dst, &st) == 0 &&
	    fchmod(r->dst, (st.st_mode & 07000) | 0700) == 0) {
		r->mode = st.st_mode & 07777 & ~(0700 & ~r->operand->st.st_mode);
		return 0;
	}
	result = root_fail(r, "open", errno);
	if (r->dst >= 0)
		close(r->dst);
	unlinkat(parent, r->temporary, AT_REMOVEDIR);
	return result;
}

/* The default ACL that mkdir(2) may have used is lost with the mode. */
static int root_resume(struct root *r)
{
	struct fcopy_error error;
	mode_t mode = r->operand->st.st_mode;
	r->dst = resume_open(r->operand->parent, r->part, r->operand->dst, mode | 0700, &error);
	if (r->dst < 0) {
		report_operand(r->tree, &error);
		return r->dst;
	}
	r->mode = mode & 01777 & ~temporary_umask();
	r->resumes = true;
	strcpy(r->temporary, r->part);
	return 0;
}

/* A part that an earlier copy left has to be dealt with first. */
static int root_check_part(struct root *r)
{
	struct stat st;
	bool resume = r->tree->options->copy.resume;
	int n = snprintf(r->part, sizeof(r->part), "%s" PART_SUFFIX, r->operand->name);
	if (n >= (int)sizeof(r->part)) {
		r->part[0] = '\0';
		return resume ? root_fail(r, "open of its .fcopy-part", ENAMETOOLONG) : 0;
	}
	if (!resume && fstatat(r->operand->parent, r->part, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return root_refuse(r, EEXIST,
				   "an earlier copy left its .fcopy-part: resume it, or remove it",
				   FCOPY_ADVICE_REMOVE_PART);
	return 0;
}

static int root_open(struct root *r)
{
	struct stat st;
	int parent = r->operand->parent;
	const char *name = r->operand->name;
	int result = root_check_inside(r, parent);
	if (result < 0)
		return result;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return root_fail(r, "stat", errno);
		result = root_check_part(r);
		if (result < 0)
			return result;
		return r->tree->options->copy.resume ? root_resume(r) : root_create(r);
	}
	if (!S_ISDIR(st.st_mode))
		return root_refuse(r, ENOTDIR, "is not a directory: it is not replaced by one",
				   FCOPY_ADVICE_NONE);
	if (st.st_dev == r->operand->st.st_dev && st.st_ino == r->operand->st.st_ino)
		return root_refuse(r, EINVAL, "is the directory that is to be copied",
				   FCOPY_ADVICE_USAGE);
	r->dst = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->dst < 0)
		return root_fail(r, "open", errno);
	result = root_check_inside(r, r->dst); /* the directory itself may be a bind mount */
	if (result < 0)
		close(r->dst);
	return result;
}

/* A separate descriptor: the operand's may be O_PATH. */
static int root_flush_parent(const struct root *r)
{
	int fd = openat(r->operand->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = fd < 0 || fsync(fd) < 0 ? root_fail(r, "fsync of the directory", errno) : 0;
	if (fd >= 0)
		close(fd);
	return result;
}

/* NFS and others lack the flag. rename(2) refuses to replace a directory that has entries. */
static int root_rename(const struct root *r, const char *to)
{
	int dir = r->operand->parent;
	if (renameat2(dir, r->temporary, dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	return renameat(dir, r->temporary, dir, to) < 0 ? -errno : 0;
}

/* The path of a name beside the destination. */
static void root_path(const struct root *r, const char *name, char path[PATH_MAX])
{
	const char *dst = r->operand->dst;
	size_t end = strlen(dst);
	while (end > 1 && dst[end - 1] == '/')
		end--;
	while (end > 0 && dst[end - 1] != '/')
		end--;
	snprintf(path, PATH_MAX, "%.*s%s", (int)end, dst, name);
}

/* Keeps what was copied although entries failed. */
static void root_keep(const struct root *r)
{
	bool named = r->resumes || (r->part[0] && root_rename(r, r->part) == 0);
	root_path(r, named ? r->part : r->temporary, r->tree->report->part);
}

static void root_remove(const struct root *r)
{
	int result = remove_tree(r->dst, r->operand->parent, r->temporary);
	if (result == 0)
		return;
	root_path(r, r->temporary, r->tree->report->part);
	root_fail(r, "remove", -result);
}

/* Everything is copied: attributes, flush, name. */
static int root_commit(struct root *r, struct directory *d)
{
	struct tree *t = r->tree;
	struct worker w = {.tree = t};
	double start = io_now();
	uint64_t failures = t->failures;
	int result = 0;
	if (t->options->copy.preserve)
		directory_set_attributes(&w, d);
	report_add(t->report, &w.sum);
	if (t->failures > failures)
		return -EIO;
	if (r->temporary[0] && !(t->options->copy.preserve & FCOPY_ATTR_MODE) &&
	    fchmod(r->dst, r->mode) < 0)
		return root_fail(r, "fchmod", errno);
	if (t->options->copy.fsync) {
		if (t->options->copy.progress)
			__atomic_store_n(&t->options->copy.progress->phase, FCOPY_PHASE_FSYNC,
					 __ATOMIC_RELAXED);
		if (syncfs(r->dst) < 0)
			return root_fail(r, "syncfs", errno);
		t->report->seconds[FCOPY_PHASE_FSYNC] += io_now() - start;
		start = io_now();
	}
	if (r->temporary[0] && (result = root_rename(r, r->operand->name)) < 0)
		return root_fail(r, "rename", -result);
	if (t->options->copy.fsync && (result = root_flush_parent(r)) < 0)
		r->temporary[0] = '\0'; /* it has its name */
	t->report->seconds[FCOPY_PHASE_REPLACE] += io_now() - start;
	t->committed = true;
	return result;
}

static int root_end(struct root *r, struct directory *d)
{
	struct tree *t = r->tree;
	int result = 0;
	if (tree_stopped(t)) {
		result = t->stop ? t->stop : -EINTR;
		if (r->resumes)
			root_keep(r);
		else if (r->temporary[0])
			root_remove(r);
		return result;
	}
	bool complete = t->failures == 0;
	if (complete || t->options->keep_going || !r->temporary[0]) {
		result = root_commit(r, d);
		if (result == 0)
			return complete ? 0 : -EIO;
	}
	if (r->temporary[0])
		root_keep(r);
	return result < 0 ? result : -EIO;
}

int root_copy(struct tree *t, const struct operand *o)
{
	struct root r = {.tree = t, .operand = o};
	struct stat st;
	int result = root_open(&r);
	if (result < 0) {
		close(o->src);
		return result;
	}
	t->atomic = !r.temporary[0] || r.resumes;
	t->resume = r.resumes;
	t->failures = 0;
	t->src_dev = o->st.st_dev;
	struct directory *d = directory_new(NULL, "", o->src, r.dst, &o->st);
	if (!d || fstat(r.dst, &st) < 0) {
		result = d ? root_fail(&r, "fstat", errno) : root_fail(&r, "malloc", ENOMEM);
		if (r.resumes)
			root_keep(&r);
		else if (r.temporary[0])
			unlinkat(o->parent, r.temporary, AT_REMOVEDIR);
		close(o->src);
		close(r.dst);
		free(d);
		return result;
	}
	t->dst_dev = st.st_dev;
	t->dst_ino = st.st_ino;
	d->src_path = o->path;
	d->dst_path = o->dst;
	d->fresh = r.temporary[0];
	d->resumed = r.resumes;
	t->report->directories++;
	double start = io_now();
	pool_run(t, d);
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	result = root_end(&r, d);
	close(d->src);
	directory_unref(d);
	return result;
}
