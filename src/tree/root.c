/* SPDX-License-Identifier: MIT
 * The directory that an operand names: a new one is built under a temporary name and renamed, an
 * existing one is merged into.
 */
#define _GNU_SOURCE
#include "root.h"
#include "endpoints/error.h"
#include "io/libc.h"
#include "mirror.h"
#include "permissions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Is this directory, or one above it, `top`? Goes up to the root, and closes fd. 1: it is; 0;
 * -errno with the call. */
static int root_is_below(int fd, const struct stat *top, const char **call)
{
	struct stat st, below = {0};
	int result = -1;
	while (result < 0) {
		*call = fd < 0 ? "open" : "fstat";
		if (fd < 0 || fstat(fd, &st) < 0) {
			result = -errno;
			break;
		}
		if (st.st_dev == top->st_dev && st.st_ino == top->st_ino)
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

int root_check_inside(const struct root *r, int dir)
{
	const bool one = r->tree->options->one_file_system;
	struct stat st;
	const char *call;
	if (one && fstat(dir, &st) == 0 && st.st_dev != r->from->place.st.st_dev)
		return 0; /* of what is mounted there, the copy has only the mount point */
	int fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool bound = fd >= 0 && inside_by_mount(r->from->fd, fd, one);
	int result = root_is_below(fd, &r->from->place.st, &call);
	if (result == 1 || bound)
		return root_refuse(r, EINVAL, "is inside the source tree", FCOPY_ADVICE_USAGE);
	/* A process that may not search there cannot have opened SRC there either. */
	return result == -EACCES || result == 0 ? 0 : root_fail(r, call, -result);
}

int root_check_part_source(const struct root *r)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	char name[NAME_MAX + sizeof(PART_SUFFIX)];
	struct stat st;
	const char *call = "fstat";
	snprintf(name, sizeof(name), "%s" PART_SUFFIX, r->to->place.name);
	int part = openat(r->to->place.dir, name, flags | O_NOFOLLOW), src = r->from->fd;
	if (part < 0)
		switch (errno) {
		case ENOENT:
		case ENOTDIR:
		case ELOOP: /* the caller creates or refuses it */
		case ENAMETOOLONG: return 0;
		default: return root_fail(r, "open of its .fcopy-part", errno);
		}
	int result = fstat(part, &st) < 0 ? -errno
					  : root_is_below(openat(src, ".", flags), &st, &call);
	if (result == 1 || inside_by_mount(part, src, false))
		result = root_refuse(r, EBUSY, "its .fcopy-part contains the source",
				     FCOPY_ADVICE_NONE);
	else if (result == 0 || result == -EACCES) /* as in root_check_inside */
		result = root_check_inside(r, part);
	else
		result = root_fail(r, call, -result);
	close(part);
	return result;
}

/* In an append-only directory a temporary name could be neither renamed nor removed. */
static int root_check_parent(const struct root *r)
{
	struct statx sx;
	if (statx(r->to->place.dir, "", AT_EMPTY_PATH, STATX_MODE, &sx) < 0 ||
	    !(sx.stx_attributes & STATX_ATTR_APPEND))
		return 0; /* a failure shows when it is renamed */
	return root_refuse(r, EPERM, "cannot be renamed: its directory is append-only",
			   FCOPY_ADVICE_NONE);
}

/* Landlock, project quotas and some FUSE file systems refuse to move a directory to another one.
 * Then the tree is built beside its final name. */
static bool root_can_move(const struct root *r)
{
	char name[TEMPORARY_SIZE];
	const int parent = r->to->place.dir;
	if (temporary_draw(name) < 0 || mkdirat(r->home, ROOT_DATA, 0700) < 0)
		return false;
	if (private_rename(r->home, ROOT_DATA, parent, name) == 0) {
		unlinkat(parent, name, AT_REMOVEDIR);
		return true;
	}
	unlinkat(r->home, ROOT_DATA, AT_REMOVEDIR);
	return false;
}

/* Chooses where the tree is built: as `data` in a private directory, or beside its final name. */
static int root_find_home(struct root *r)
{
	const char *call;
	r->home = r->to->place.dir;
	if (r->named) {
		strcpy(r->temporary, r->to->place.name);
		return 0;
	}
	int result = private_make(&r->hidden, r->to->place.dir, &call);
	if (result == -ESTALE)
		return root_refuse(r, ESTALE, "another process replaces its temporary directory",
				   FCOPY_ADVICE_NONE);
	if (result < 0)
		return root_fail(r, call, -result);
	r->home = r->hidden.fd;
	if (root_can_move(r)) {
		strcpy(r->temporary, ROOT_DATA);
		return 0;
	}
	private_end(&r->hidden);
	r->home = r->to->place.dir;
	result = temporary_draw(r->temporary);
	return result < 0 ? root_fail(r, "getrandom", -result) : 0;
}

/* Best effort: beside its final name the directory is closed to others at once; the commit restores
 * the mode that the umask and default ACLs left. setgid stays: new files get the directory's group
 * from it. */
static void root_close_to_others(const struct root *r, mode_t mode)
{
	if (r->hidden.fd < 0)
		(void)!permissions_set(r->dst, (mode & 07000) | 0700);
}

static int root_create(struct root *r)
{
	struct stat st;
	const mode_t mode = r->from->place.st.st_mode;
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int admitted = 0, result = root_find_home(r);
	if (result < 0)
		return result;
	const char *call = "mkdir";
	if (mkdirat(r->home, r->temporary, (mode & 01777) | 0700) < 0) {
		if (errno == EEXIST && r->named)
			return root_refuse(r, EEXIST, "was created by another process",
					   FCOPY_ADVICE_NONE);
		result = root_fail(r, call, errno);
		private_end(&r->hidden);
		return result;
	}
	r->dst = openat(r->home, r->temporary, flags);
	if (r->dst < 0 && errno == EACCES &&
	    (admitted = permissions_admit_owner(r->home, r->temporary)) > 0)
		r->dst = openat(r->home, r->temporary, flags);
	call = r->dst < 0 ? "open" : fstat(r->dst, &st) < 0 ? "fstat" : NULL;
	int err = errno;
	if (!call) {
		root_close_to_others(r, st.st_mode);
		/* Best effort: by this lock another copy sees that the tree is in use. */
		if (r->hidden.fd < 0)
			(void)!flock(r->dst, LOCK_EX | LOCK_NB);
		r->mode = st.st_mode & 07777 & ~(mode_t)admitted & ~(0700 & ~mode);
		return 0;
	}
	result = root_fail(r, call, err);
	if (r->dst >= 0)
		close(r->dst);
	unlinkat(r->home, r->temporary, AT_REMOVEDIR);
	private_end(&r->hidden);
	return result;
}

/* With --fsync each file is flushed before it gets its name. Otherwise the files of this run are
 * not on the disk before its end. */
static int root_prove(const struct root *r)
{
	const struct tree *t = r->tree;
	if (t->proven && t->options->copy.fsync)
		(void)!resume_prove(r->dst, true);
	int result = 0;
	if (!t->options->copy.fsync && resume_is_proven(r->dst))
		result = resume_prove(r->dst, false);
	if (result == 0)
		return 0;
	close(r->dst);
	return root_fail(r, "fsync in its .fcopy-part", -result);
}

/* The default ACL that mkdir(2) may have used is lost with the mode. */
static int root_resume(struct root *r)
{
	struct stat st;
	struct fcopy_error error;
	mode_t mode = r->from->place.st.st_mode;
	if (fstatat(r->from->fd, RESUME_MARK, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return root_refuse(r, EEXIST,
				   "the source has an entry " RESUME_MARK
				   ", a name that --resume needs: rename or remove it",
				   FCOPY_ADVICE_NONE);
	bool follow = r->tree->options->follow == FCOPY_FOLLOW_ALWAYS;
	r->dst = resume_open(r->from, r->to, r->part, mode | 0700, follow, &r->tree->proven,
			     &error);
	if (r->dst < 0) {
		report_operand(r->tree, &error);
		return r->dst;
	}
	r->mode = temporary_mode(r->to->place.dir, mode & 01777);
	if (fstat(r->dst, &st) == 0)
		r->mode |= st.st_mode & S_ISGID;
	r->resumes = true;
	strcpy(r->temporary, r->part);
	return root_prove(r);
}

/* Refuses a DST.fcopy-part of an earlier copy, unless it is to be resumed. */
static int root_check_part(struct root *r)
{
	struct stat st;
	bool resume = r->tree->options->copy.resume;
	int n = snprintf(r->part, sizeof(r->part), "%s" PART_SUFFIX, r->to->place.name);
	if (n >= (int)sizeof(r->part)) {
		r->part[0] = '\0';
		return resume ? root_fail(r, "open of its .fcopy-part", ENAMETOOLONG) : 0;
	}
	int result = root_check_part_source(r), parent = r->to->place.dir;
	if (result < 0 || resume || fstatat(parent, r->part, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return result;
	struct fcopy_error error;
	result = part_refuse_shared(parent, r->to->place.name, r->to->path, &error);
	if (result < 0)
		report_operand(r->tree, &error);
	else
		result = root_refuse(r, EEXIST, "an earlier copy left its .fcopy-part",
				     FCOPY_ADVICE_RESUME);
	return result;
}

/* With --inplace, or where directories cannot be renamed, the tree is built under its final name.
 * What is left of an unfinished one could not be resumed. */
static int root_check_storage(struct root *r)
{
	struct tree *t = r->tree;
	const bool always = in_place_always(&t->options->copy);
	if (!always && storage_can(&t->storage, r->to->place.dir, STORAGE_RENAMES_DIRECTORIES))
		return 0;
	if (t->options->copy.resume)
		return root_refuse(r, EOPNOTSUPP,
				   "cannot be resumed: directories cannot be renamed here",
				   FCOPY_ADVICE_NONE);
	r->named = true;
	report_not_atomic(t, r->to->path, always ? IN_PLACE_REASON : STORAGE_NO_RENAME);
	return 0;
}

static int root_open(struct root *r)
{
	const struct place *place = &r->to->place;
	const struct stat *st = &place->st;
	/* With -x an existing directory counts, not its parent: it may be a mount point. */
	int result = place->exists && r->tree->options->one_file_system
			 ? 0
			 : root_check_inside(r, place->dir);
	if (result < 0)
		return result;
	if (!place->exists) {
		r->dst = -1;
		if (r->tree->options->dry_run)
			return 0;
		result = root_check_part(r);
		if (result == 0)
			result = root_check_parent(r);
		if (result == 0)
			result = root_check_storage(r);
		if (result < 0)
			return result;
		return r->tree->options->copy.resume ? root_resume(r) : root_create(r);
	}
	if (place->symlink || !S_ISDIR(st->st_mode))
		return root_refuse(r, ENOTDIR, "is not a directory and is not replaced by one",
				   FCOPY_ADVICE_NONE);
	if (st->st_dev == r->from->place.st.st_dev && st->st_ino == r->from->place.st.st_ino)
		return root_refuse(r, EINVAL, "is the source directory", FCOPY_ADVICE_USAGE);
	r->dst = directory_open(r->tree, place->dir, place->name);
	if (r->dst < 0)
		return root_fail(r, "open", errno);
	result = root_check_inside(r, r->dst); /* the directory itself may be a bind mount */
	if (result < 0)
		close(r->dst);
	return result;
}

/* Walks as a copy does, and changes nothing. A directory that DST lacks has the descriptor -1. */
static int root_rehearse(struct root *r)
{
	struct tree *t = r->tree;
	const struct operand *from = r->from, *to = r->to;
	struct stat st = {0};
	struct directory *d = directory_new(NULL, "", from->fd, r->dst, &from->place.st);
	if (!d) {
		if (r->dst >= 0)
			close(r->dst);
		return root_fail(r, "malloc", ENOMEM);
	}
	t->atomic = r->dst >= 0;
	t->failures = 0;
	t->src_dev = from->place.st.st_dev;
	if (r->dst >= 0 && fstat(r->dst, &st) == 0)
		mirror_begin(t, r->to, r->dst);
	t->dst_dev = st.st_dev;
	t->dst_ino = st.st_ino;
	d->src_path = from->path;
	d->dst_path = to->path;
	d->fresh = r->dst < 0;
	t->report->directories += d->fresh;
	walk_tree(t, d);
	walk_report_missing(t, d);
	if (r->dst >= 0)
		mirror_end(t, d);
	directory_unref(d);
	t->committed = t->failures == 0 && !tree_stopped(t);
	return t->committed ? 0 : -EIO;
}

int root_copy(struct tree *t, const struct operand *from, const struct operand *to)
{
	struct root r = {.tree = t,
			 .from = from,
			 .to = to,
			 .home = to->place.dir,
			 .hidden.fd = -1,
			 .hidden.lock = -1};
	struct stat st;
	t->proven = true;  /* a new tree */
	t->resume = false; /* an earlier operand may have set it, and directory_open() reads it */
	int result = root_open(&r);
	if (result < 0)
		return result;
	if (t->options->dry_run)
		return root_rehearse(&r);
	t->atomic = !r.temporary[0] || r.resumes;
	t->flush_each = flush_needs_each(t, r.dst);
	t->resume = r.resumes;
	t->failures = 0;
	t->src_dev = from->place.st.st_dev;
	t->umask = temporary_umask();
	t->withheld = 0700 & (t->umask | ~permissions_left(t, r.dst));
	struct directory *d = directory_new(NULL, "", from->fd, r.dst, &from->place.st);
	if (!d || fstat(r.dst, &st) < 0) {
		result = d ? root_fail(&r, "fstat", errno) : root_fail(&r, "malloc", ENOMEM);
		if (r.resumes)
			commit_keep(&r);
		else if (r.temporary[0])
			unlinkat(r.home, r.temporary, AT_REMOVEDIR);
		private_end(&r.hidden);
		close(r.dst);
		free(d);
		return result;
	}
	t->dst_dev = st.st_dev;
	t->dst_ino = st.st_ino;
	d->src_path = from->path;
	d->dst_path = to->path;
	d->fresh = r.temporary[0];
	d->resumed = r.resumes;
	t->report->directories++;
	double start = io_now();
	struct record record = {.parent = to->place.dir, .dst = r.dst, .fd = -1};
	bool timed = t->options->copy.preserve & FCOPY_ATTR_TIMESTAMPS;
	t->record = t->atomic || timed ? NULL : &record;
	if (!r.temporary[0])
		mirror_begin(t, to, r.dst);
	walk_tree(t, d);
	walk_report_missing(t, d);
	if (!r.temporary[0])
		mirror_end(t, d);
	t->record = NULL;
	r.record = &record;
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	result = commit_end(&r, d);
	private_end(&r.hidden);
	record_end(&record);
	directory_unref(d);
	return result;
}
