/* SPDX-License-Identifier: MIT
 * Copies one name: opens it without following a symlink, and copies what the open descriptor is.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LARGE_SIZE ((off_t)16 << 20) /* such a file is shown as progress */

const char entry_src[] = "SRC", entry_dst[] = "DST";

void entry_prepare(struct worker *w)
{
	const struct tree *t = w->tree;
	struct fcopy_options *o = &w->options;
	*o = t->options->copy;
	o->progress = NULL;
	o->shard = (struct fcopy_shard){0}; /* of the tree, not of a file */
	if (t->shard)
		o->force = o->strict = true; /* an existing file is of an earlier attempt */
	if (!t->single)
		o->threads = 1; /* the pool's threads copy several files at once instead */
	/* A new tree is resumed as a whole, and the time says that a file is complete. */
	o->resume &= t->atomic && !t->resume;
	if (t->resume)
		o->preserve |= FCOPY_ATTR_TIMESTAMPS;
	/* A new tree is flushed as a whole, but only what is on the disk can be read back. */
	o->fsync = o->verify || (o->fsync && t->atomic && !t->shard);
	o->notify = report_event;
	o->user = w;
}

static int entry_fail(struct worker *w, const struct entry *e, const char *call, const char *path,
		      int err)
{
	struct fcopy_error error;
	error_call(&error, call, path, err);
	report_failure(w, e, &error);
	return -err;
}

static int entry_refuse(struct worker *w, const struct entry *e, const char *path, int err,
			const char *reason)
{
	struct fcopy_error error;
	error_refuse(&error, path, err, reason, FCOPY_ADVICE_NONE);
	report_failure(w, e, &error);
	return -err;
}

/* FICLONE was refused by the file system, and not because of this file. */
static bool refuses_clones(const struct fcopy_report *r)
{
	for (size_t i = 0; i < r->steps; i++)
		if (r->step[i].engine == engine_reflink.name)
			switch (r->step[i].refusal) {
			case EOPNOTSUPP:
			case ENOTTY:
			case ENOSYS:
			case EXDEV: return true;
			default: return false;
			}
	return false;
}

void entry_count_file(struct worker *w, const struct stat *st)
{
	const struct fcopy_report *r = &w->file;
	struct fcopy_tree_report *sum = &w->sum;
	sum->bytes += r->bytes;
	sum->data += r->data;
	sum->holes += r->holes;
	sum->changed += r->source_changed;
	sum->cloned += r->cloned;
	report_add_steps(sum, r->step, r->steps);
	if (!w->refuses_clones && refuses_clones(r)) {
		w->refuses_clones = true;
		w->no_clone = st->st_dev;
	}
}

static int entry_open_destination(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct copy *c = &w->copy;
	struct fcopy_error *error = &w->file.error;
	if (w->tree->shard) {
		int r = created_open(&c->dst, e->dir->dst, e->as, st->st_mode & 0777, entry_dst,
				     error);
		if (r != -EEXIST)
			return r;
		*error = (struct fcopy_error){0};
	}
	if (w->tree->atomic)
		return destination_open_in(&c->dst, e->dir->dst, e->as, entry_dst, &c->src,
					   &w->options, w->tree->options->hard_links, error);
	return created_open(&c->dst, e->dir->dst, e->as, st->st_mode & 0777, entry_dst, error);
}

int entry_copy_file(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct copy *c = &w->copy;
	memset(&w->file, 0, offsetof(struct fcopy_report, dst));
	if (w->tree->resume && resume_is_complete(w, e, fd, st)) {
		close(fd);
		w->sum.skipped++;
		return 0;
	}
	*c = (struct copy){.options = &w->options,
			   .report = &w->file,
			   .mode = w->options.mode ? w->options.mode : fcopy_modes(),
			   .shared = &w->tree->monitor,
			   .keeps_buffer = true,
			   .buffer = w->buffer,
			   .buffer_size = w->buffer_size};
	c->no_clone = w->options.reflink <= FCOPY_WHEN_AUTO && w->refuses_clones &&
		      w->no_clone == st->st_dev;
	source_adopt(&c->src, fd, entry_src, st);
	int r = entry_open_destination(w, e, st);
	if (r != 0) {
		c->src.ops->abort(&c->src);
	} else {
		bool large = st->st_size >= LARGE_SIZE;
		/* Threads that have no file help with the ranges of this one. */
		if (!w->tree->single)
			w->options.threads = large ? 1 + pool_idle(w->tree) : 1;
		if (large)
			report_large(w, e);
		r = copy_run(c);
		if (large)
			report_large(w, NULL);
	}
	w->buffer = c->buffer;
	w->buffer_size = c->buffer_size;
	entry_count_file(w, st);
	if (r == ENDPOINT_KEPT) {
		w->sum.kept++;
		return -EEXIST;
	}
	w->sum.files += r == 0;
	if (r == 0 && w->tree->record)
		record_add(w, e, st);
	if (r < 0)
		report_failure(w, e, &w->file.error);
	return r;
}

/* With symlinks followed, a directory can contain itself. */
static bool is_cycle(const struct directory *d, const struct stat *st)
{
	for (; d; d = d->parent)
		if (d->st.st_dev == st->st_dev && d->st.st_ino == st->st_ino)
			return true;
	return false;
}

/* Opens the destination's directory, which is created unless it exists. */
static int entry_make_directory(struct worker *w, const struct entry *e, const struct stat *st,
				bool *fresh)
{
	const struct tree *t = w->tree;
	int dir = e->dir->dst;
	/* Others may see a directory in an existing tree: not before it has its owner and ACL. */
	bool hidden = t->atomic && !t->resume && !t->shard && t->options->copy.preserve;
	mode_t mode = hidden ? 0700 : (st->st_mode & 01777) | 0700;
	*fresh = mkdirat(dir, e->as, mode) == 0;
	int r = *fresh ? 0 : -errno;
	if (r == -EEXIST && t->resume)
		r = resume_make_directory(dir, e->as, mode, fresh);
	if (r < 0 && !(r == -EEXIST && t->atomic))
		return entry_fail(w, e, "mkdir", entry_dst, -r);
	int fd = openat(dir, e->as, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && !*fresh && (errno == ENOTDIR || errno == ELOOP))
		return entry_refuse(w, e, entry_dst, ENOTDIR,
				    "is not a directory and is not replaced by one");
	if (fd < 0)
		return entry_fail(w, e, "open", entry_dst, errno);
	return fd;
}

/* Takes fd. What is in the directory is copied by the items that this pushes. */
static int entry_enter(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct tree *t = w->tree;
	bool fresh;
	if (st->st_dev == t->dst_dev && st->st_ino == t->dst_ino) {
		close(fd);
		tree_stop(t, EINVAL);
		return entry_refuse(w, e, entry_src, EINVAL,
				    "is the copy itself: a tree cannot be copied into itself");
	}
	if (t->options->follow == FCOPY_FOLLOW_ALWAYS && is_cycle(e->dir, st)) {
		close(fd);
		return entry_refuse(w, e, entry_src, ELOOP, "contains itself by a symlink");
	}
	int dst = entry_make_directory(w, e, st, &fresh);
	if (dst < 0) {
		close(fd);
		return dst;
	}
	struct directory *d = directory_new(e->dir, e->name, fd, dst, st);
	if (!d) {
		close(fd);
		close(dst);
		tree_stop(t, ENOMEM);
		return entry_fail(w, e, "malloc", entry_src, ENOMEM);
	}
	d->fresh = fresh || t->resume || t->finishing;
	d->resumed = (!fresh && t->resume) || t->finishing;
	w->sum.directories += !t->finishing;
	struct item item = {.dir = d};
	if (t->options->one_file_system && st->st_dev != t->src_dev)
		directory_release(w, d); /* only the mount point itself */
	else if (!pool_push(t, item))
		directory_run(w, &item);
	return 0;
}

static int entry_vanished(struct worker *w, const struct entry *e, const char *call)
{
	struct fcopy_error error;
	struct stat st;
	if (e->follow && fstatat(e->dir->src, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		return entry_refuse(w, e, entry_src, ENOENT, "is a dangling symlink");
	error_call(&error, call, entry_src, ENOENT);
	error.reason = "vanished before it could be copied";
	w->sum.vanished++;
	report_warning(w, e, &error);
	return -ENOENT;
}

/* Where symlinks are followed, a file may have any number of names, as with cp -aL. */
bool entry_may_be_linked(const struct worker *w, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	return o->hard_links && (st->st_nlink > 1 || o->follow == FCOPY_FOLLOW_ALWAYS);
}

/* What an entry that is not copied now returns. */
static int links_result(enum link_state state)
{
	return state == LINK_WAITS ? -EINPROGRESS : state == LINK_FAILED ? -EIO : 0;
}

/* Never opened: that could block, or have an effect on a device. */
static int entry_copy_special(struct worker *w, const struct entry *e, const struct stat *st)
{
	bool linked = entry_may_be_linked(w, st);
	enum link_state state = linked ? links_claim(w, e, st) : LINK_COPY;
	if (state != LINK_COPY)
		return links_result(state);
	int r = special_copy(w, e, st);
	if (linked)
		links_done(w, e, st, r);
	return r;
}

/* Takes fd. */
static int entry_copy_open(struct worker *w, const struct entry *e, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		int err = errno;
		close(fd);
		return entry_fail(w, e, "fstat", entry_src, err);
	}
	if (S_ISDIR(st.st_mode))
		return entry_enter(w, e, fd, &st);
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return entry_copy_special(w, e, &st);
	}
	if (w->tree->shard && shard_is_large(w, &st))
		return shard_copy_range(w, e, fd, &st);
	bool linked = entry_may_be_linked(w, &st);
	enum link_state state = linked ? links_claim(w, e, &st) : LINK_COPY;
	if (state != LINK_COPY) {
		close(fd);
		return links_result(state);
	}
	int r = entry_copy_file(w, e, fd, &st);
	if (linked)
		links_done(w, e, &st, r);
	return r;
}

int entry_copy_any(struct worker *w, const struct entry *e)
{
	struct stat st;
	bool opened = e->type == DT_REG || e->type == DT_DIR;
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (e->follow ? 0 : O_NOFOLLOW);
	if (strlen(e->name) > NAME_MAX) /* FUSE knows longer ones */
		return entry_fail(w, e, "open", entry_src, ENAMETOOLONG);
	for (int tries = 0; tries < 2; tries++, opened = false) {
		if (!opened) {
			if (fstatat(e->dir->src, e->name, &st,
				    e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
				return errno == ENOENT ? entry_vanished(w, e, "stat")
						       : entry_fail(w, e, "stat", entry_src, errno);
			if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
				return entry_copy_special(w, e, &st);
		}
		int fd = openat(e->dir->src, e->name, flags);
		if (fd >= 0)
			return entry_copy_open(w, e, fd);
		if (errno == ENOENT)
			return entry_vanished(w, e, "open");
		/* ELOOP, ENXIO: it has become a symlink or a socket since it was listed. */
		if (tries > 0 || !opened || (errno != ELOOP && errno != ENXIO))
			return entry_fail(w, e, "open", entry_src, errno);
	}
	return 0;
}

void entry_copy(struct worker *w, const struct entry *e)
{
	struct fcopy_progress *progress = w->tree->options->copy.progress;
	w->entry = e;
	int r = w->tree->shard ? shard_entry_copy(w, e) : entry_copy_any(w, e);
	w->entry = NULL;
	if (r == 0)
		report_entry(w, e);
	if (r != -EINPROGRESS && progress)
		__atomic_add_fetch(&progress->entries, 1, __ATOMIC_RELAXED);
}
