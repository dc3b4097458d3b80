/* SPDX-License-Identifier: MIT
 * A directory that is being copied: its memory, its attributes, and its end when everything below
 * it is finished.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "mirror.h"
#include "permissions.h"
#include "resume.h"
#include "rivals.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct directory *directory_new(struct directory *parent, const char *name, int src, int dst,
				const struct stat *st)
{
	size_t length = strlen(name);
	struct directory *d = calloc(1, sizeof(*d) + length + 1);
	if (!d)
		return NULL;
	*d = (struct directory){.parent = parent,
				.src = src,
				.dst = dst,
				.link = -1,
				.st = *st,
				.pending = 1,
				.references = 1};
	memcpy(d->name, name, length + 1);
	if (parent) {
		d->hash = hash_add(hash_add(parent->hash, name, length), "/", 1);
		__atomic_add_fetch(&parent->pending, 1, __ATOMIC_RELAXED);
		directory_ref(parent);
	}
	return d;
}

void directory_ref(struct directory *d)
{
	__atomic_add_fetch(&d->references, 1, __ATOMIC_RELAXED);
}

/* The destination of an operand stays open as long as hard links may be made from below it. */
void directory_unref(struct directory *d)
{
	while (d && __atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) == 0) {
		struct directory *parent = d->parent;
		if (d->dst >= 0)
			close(d->dst);
		free(d);
		d = parent;
	}
}

int directory_open(const struct tree *t, int parent, const char *name)
{
	const struct fcopy_options *o = &t->options->copy;
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(parent, name, O_RDONLY | flags);
	if (fd >= 0 || errno != EACCES || o->preserve || o->fsync || t->resume || t->shard)
		return fd;
	return faccessat(parent, name, X_OK, AT_EACCESS) < 0 ? -1
							     : openat(parent, name, O_PATH | flags);
}

int directory_reopen(const struct directory *d)
{
	int parent = d->parent ? directory_reopen(d->parent) : -1;
	if (d->parent && parent < 0)
		return parent;
	int fd = d->parent ? openat(parent, d->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			   : fcntl(d->dst, F_DUPFD_CLOEXEC, 0);
	int err = errno;
	if (d->parent)
		close(parent);
	return fd < 0 ? -err : fd;
}

/* Returns 0 after a warning, or -errno if the attribute is required; reported. */
static int directory_lose(struct worker *w, const struct entry *e, enum fcopy_attribute which,
			  const struct fcopy_error *error)
{
	if (!(w->tree->options->copy.preserve_required & which)) {
		report_warning(w, e, error);
		return 0;
	}
	report_failure(w, e, error);
	return -error->err;
}

int directory_preserve(struct worker *w, const struct entry *e, int src, int dst,
		       const struct stat *st)
{
	const struct fcopy_options *o = &w->tree->options->copy;
	const bool reused = w->tree->resume || w->tree->shard || w->tree->options->update;
	struct metadata_pair pair = {.src = src,
				     .dst = dst,
				     .st = st,
				     .src_path = entry_src,
				     .dst_path = entry_dst,
				     .reused = reused};
	struct fcopy_error error;
	unsigned set = 0, other;
	int lost = 0;
	for (size_t i = 0; i < METADATA_ATTRIBUTES; i++) {
		if (!(o->preserve & metadata_order[i]))
			continue;
		int r = metadata_copy_attribute(metadata_order[i], &pair, &error);
		if (r == 0)
			set |= metadata_order[i];
		else
			lost = directory_lose(w, e, metadata_order[i], &error) ?: lost;
	}
	(void)metadata_read_back(set, &pair, &w->tree->storage, &other);
	for (size_t i = 0; i < METADATA_ATTRIBUTES; i++)
		if (other & metadata_order[i]) {
			metadata_fail_stored(metadata_order[i], entry_dst, &error);
			lost = directory_lose(w, e, metadata_order[i], &error) ?: lost;
		}
	return lost;
}

void directory_warn_mode(struct worker *w, struct directory *d, int err)
{
	struct fcopy_error error;
	error_call(&error, "fchmod", entry_dst, err);
	report_warning(w, &(struct entry){.dir = d, .name = "", .as = ""}, &error);
}

/* Attributes come last: files below would change the times, and a mode may forbid to create them.
 */
void directory_set_attributes(struct worker *w, struct directory *d)
{
	const struct fcopy_options *o = &w->tree->options->copy;
	const struct entry e = {.dir = d, .name = "", .as = ""};
	int lost = directory_preserve(w, &e, d->src, d->dst, &d->st);
	const struct tree *t = w->tree;
	struct stat now;
	if (!d->fresh || o->preserve & FCOPY_ATTR_MODE)
		return;
	bool hidden = permissions_are_hidden(t) && lost == 0;
	mode_t mode = d->st.st_mode & 01777;
	if (hidden || t->withheld || d->resumed)
		mode &= 01000 | permissions_left(t, d->dst);
	/* It was created with all of S_IRWXU, so that entries could be created in it. */
	mode_t extra = 0700 & ~mode, lacks = hidden ? mode & 01077 : 0;
	if (!extra && !lacks && !d->resumed)
		return;
	if (fstat(d->dst, &now) < 0) {
		report_call(w, &e, "fstat", entry_dst, errno);
		return;
	}
	mode_t is = now.st_mode & 07777, open = (is & ~extra) | lacks;
	/* The source's mode may be another one than when an earlier attempt created the copy. */
	mode = d->resumed ? (is & 06000) | mode : open;
	if (mode != is && fchmod(d->dst, mode) < 0 && (lacks || !permissions_are_fixed(errno)))
		directory_warn_mode(w, d, errno);
}

/* Does the destination have exactly as many names as entries that were copied into it? */
static bool directory_is_exact(const struct directory *d)
{
	_Alignas(8) char names[8192];
	unsigned count = 0;
	int dir = io_reopen_directory(d->dst);
	if (dir < 0)
		return false;
	ssize_t n;
	while ((n = getdents64(dir, names, sizeof(names))) > 0)
		for (ssize_t at = 0; at < n; count++)
			at += ((const struct dirent64 *)(const void *)(names + at))->d_reclen;
	close(dir);
	return n == 0 && count == d->present + 2; /* . and .. */
}

static void directory_flush(struct worker *w, struct directory *d)
{
	struct fcopy_error error;
	const char *call;
	int r = flush_directory(w->tree, d, &call);
	if (r == 0)
		return;
	error_call(&error, call, entry_dst, -r);
	report_failure(w, &(struct entry){.dir = d, .name = "", .as = ""}, &error);
}

/* A rename onto an existing file changes the times of its directory, where cp(1), which overwrites
 * the file, does not. If nothing else was done to its names, restores the time. */
static void directory_restore_time(const struct tree *t, const struct directory *d)
{
	const struct fcopy_tree_options *o = t->options;
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, d->was.st_mtim};
	struct stat now;
	if (d->was.st_nlink > 0 && !d->fresh && !o->dry_run && !o->delete_extra &&
	    !(o->copy.preserve & FCOPY_ATTR_TIMESTAMPS) &&
	    !__atomic_load_n(&d->grown, __ATOMIC_RELAXED) && fstat(d->dst, &now) == 0 &&
	    !same_mtime(&now, &d->was))
		(void)!futimens(d->dst, times); /* best effort: only the owner may */
}

void directory_report_lost(struct worker *w, struct directory *d, int err)
{
	struct fcopy_error error;
	error_call(&error, "open", entry_src, err);
	if (err == ESTALE)
		error.reason = "was moved or replaced during the copy, or its copy was";
	report_failure(w, &(struct entry){.dir = d, .name = "", .as = ""}, &error);
	d->unread = true;
}

/* The directory is open. */
static void directory_complete(struct worker *w, struct directory *d)
{
	bool finishes = w->tree->walk == WALK_FINISHES;
	bool old = d->resumed && !finishes; /* stale names may make the number equal */
	bool stale = (d->resumed || w->tree->resume) && !tree_stopped(w->tree) &&
		     (old || !directory_is_exact(d));
	bool waits = stale && finishes && !w->tree->prunes;
	if (waits)
		__atomic_store_n(&w->tree->stale, true, __ATOMIC_RELAXED);
	else if (stale)
		prune_directory(w, d);
	if (w->tree->options->delete_extra && !d->fresh && !d->unread && !d->mounted &&
	    !tree_stopped(w->tree) && !directory_is_exact(d))
		mirror_collect(w, d);
	directory_restore_time(w->tree, d);
	if (!d->parent) /* root.c still needs it */
		return;
	const bool dry = w->tree->options->dry_run;
	if (!tree_stopped(w->tree) && !dry && (finishes ? !waits : !w->tree->shard))
		directory_set_attributes(w, d);
	if (!tree_stopped(w->tree) && !dry && d->dst >= 0)
		directory_flush(w, d);
	if (!tree_stopped(w->tree) && w->tree->walk == WALK_COPIES && (d->fresh || !dry))
		report_directory(w, d);
}

static void directory_finish(struct worker *w, struct directory *d)
{
	int r = opened_use(w->tree, d);
	if (r == 0)
		directory_complete(w, d);
	else
		directory_report_lost(w, d, -r);
	if (d->parent)
		opened_end(w->tree, d);
}

void directory_release(struct worker *w, struct directory *d)
{
	while (d && __atomic_sub_fetch(&d->pending, 1, __ATOMIC_ACQ_REL) == 0) {
		struct directory *parent = d->parent;
		directory_finish(w, d);
		if (parent) /* the operand's belongs to root.c */
			directory_unref(d);
		d = parent;
	}
}

/* With symlinks followed, a directory can contain itself. */
static bool is_cycle(const struct directory *d, const struct stat *st)
{
	for (; d; d = d->parent)
		if (d->st.st_dev == st->st_dev && d->st.st_ino == st->st_ino)
			return true;
	return false;
}

/* In a merge, a directory of the source can be the copy of one above it, by a bind mount or a
 * symlink that is followed. Returns 1 then; 0; or -errno. */
static int is_copy_above(struct tree *t, struct directory *d, const struct stat *st)
{
	dev_t dev;
	ino_t ino;
	for (; d && t->atomic && !t->shard; d = d->parent) {
		bool known = opened_identity(t, d, &dev, &ino);
		if (!known && !t->options->dry_run) /* it has no directories in DST */
			return -errno;
		if (known && dev == st->st_dev && ino == st->st_ino)
			return 1;
	}
	return 0;
}

/* No other directory of a merge may have been copied into it. Returns fd, or closes it. A fresh one
 * may have the inode number of a file that this run has replaced. */
static int directory_claim(struct worker *w, const struct entry *e, int fd, bool fresh)
{
	int r = rivals_possible(w->tree) ? rivals_claim_open(w->tree, fd) : 0;
	if (r == 0 || (fresh && r == -ENOTUNIQ))
		return fd;
	close(fd);
	return r == -ENOTUNIQ ? rivals_report(w, e) : report_call(w, e, "fstat", entry_dst, -r);
}

/* Opens the destination's directory, which is created unless it exists. replaced: what a mirror
 * found in its place has been removed. */
static int directory_make(struct worker *w, const struct entry *e, const struct stat *st,
			  bool *fresh, bool replaced)
{
	struct stat old;
	const struct tree *t = w->tree;
	int dir = e->dir->dst;
	mode_t mode = permissions_are_hidden(t) ? 0700 : (st->st_mode & 01777) | 0700;
	/* mkdir of an existing name waits for the directory's lock, which other shards hold. */
	int found = t->atomic && !e->dir->fresh ? directory_open(t, dir, e->as) : -1;
	if (found >= 0)
		return directory_claim(w, e, found, false);
	*fresh = mkdirat(dir, e->as, mode) == 0;
	int r = *fresh ? 0 : -errno;
	if (r == -EEXIST && t->resume)
		r = resume_make_directory(dir, e->as, mode, fresh);
	if (r == -EEXIST && !t->atomic)
		return rivals_report(w, e);
	if (r < 0 && r != -EEXIST)
		return report_call(w, e, "mkdir", entry_dst, -r);
	if (*fresh && t->withheld && (r = permissions_admit_owner(dir, e->as)) < 0)
		return report_call(w, e, "chmod", entry_dst, -r);
	int fd = directory_open(t, dir, e->as);
	/* Of an interrupted attempt; never a directory that another shard has made since. */
	if (fd < 0 && t->shard && (errno == ENOTDIR || errno == ELOOP) &&
	    unlinkat(dir, e->as, 0) == 0 && mkdirat(dir, e->as, mode) == 0)
		fd = directory_open(t, dir, e->as);
	if (fd < 0 && !*fresh && (errno == ENOTDIR || errno == ELOOP) && t->options->delete_extra &&
	    !replaced) {
		if (fstatat(dir, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0)
			return report_call(w, e, "stat", entry_dst, errno);
		r = mirror_remove_conflict(w, e, &old);
		return r < 0 ? r : directory_make(w, e, st, fresh, true);
	}
	if (fd < 0 && !*fresh && (errno == ENOTDIR || errno == ELOOP))
		return report_refusal(w, e, entry_dst, ENOTDIR,
				      "is not a directory: a directory cannot replace it");
	if (fd < 0)
		return report_call(w, e, "open", entry_dst, errno);
	return directory_claim(w, e, fd, *fresh);
}

/* Of a dry run: *dst is the destination's directory, or -1 if it would be created. */
static int directory_rehearse(struct worker *w, const struct entry *e, int *dst, bool *fresh)
{
	struct stat old;
	*dst = e->dir->dst < 0 ? -1 : directory_open(w->tree, e->dir->dst, e->as);
	*fresh = *dst < 0;
	if (!*fresh || e->dir->dst < 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTDIR && errno != ELOOP)
		return report_call(w, e, "open", entry_dst, errno);
	if (!w->tree->options->delete_extra)
		return report_refusal(w, e, entry_dst, ENOTDIR,
				      "is not a directory: a directory cannot replace it");
	return fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) == 0
		   ? mirror_remove_conflict(w, e, &old)
		   : 0;
}

int directory_enter(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct tree *t = w->tree;
	bool fresh = false;
	const bool mounted = t->options->one_file_system && st->st_dev != t->src_dev;
	int above = mounted ? 0 : is_copy_above(t, e->dir, st);
	if (above < 0) {
		close(fd);
		return report_call(w, e, "fstat", entry_dst, -above);
	}
	if (above || (!mounted && st->st_dev == t->dst_dev && st->st_ino == t->dst_ino)) {
		close(fd);
		tree_stop(t, EINVAL);
		return report_refusal(w, e, entry_src, EINVAL,
				      "is the copy itself: a tree cannot be copied into itself");
	}
	if (t->options->follow == FCOPY_FOLLOW_ALWAYS && is_cycle(e->dir, st)) {
		close(fd);
		return report_refusal(w, e, entry_src, ELOOP, "contains itself through a symlink");
	}
	const bool compares = t->walk == WALK_COMPARES, finishes = t->walk == WALK_FINISHES;
	int dst = -1, r = 0;
	if (t->options->dry_run)
		r = directory_rehearse(w, e, &dst, &fresh);
	else if (!compares)
		r = dst = directory_make(w, e, st, &fresh, false);
	if (r < 0) {
		close(fd);
		return r;
	}
	struct directory *d = directory_new(e->dir, e->name, fd, dst, st);
	if (!d) {
		close(fd);
		if (dst >= 0)
			close(dst);
		tree_stop(t, ENOMEM);
		return report_call(w, e, "malloc", entry_src, ENOMEM);
	}
	d->fresh = fresh || t->resume || finishes;
	if (!d->fresh && dst >= 0)
		(void)!fstat(dst, &d->was);
	w->replaced = !fresh;
	d->resumed = (!fresh && t->resume) || finishes;
	d->mounted = mounted;
	d->link = link_dest_enter(e->dir, e->name);
	opened_add(t, d);
	struct item item = {.dir = d};
	if (mounted)
		directory_release(w, d); /* only the mount point itself */
	else
		pool_push(w, item);
	return t->options->dry_run && !fresh; /* nothing would be created */
}

int directory_make_mount_point(struct worker *w, const struct entry *e)
{
	const struct stat st = {.st_mode = S_IFDIR | 0700};
	bool fresh = false;
	int fd = -1, r = 0;
	if (w->tree->options->dry_run)
		r = directory_rehearse(w, e, &fd, &fresh);
	else if (w->tree->walk != WALK_COMPARES)
		r = fd = directory_make(w, e, &st, &fresh, false);
	if (fd >= 0)
		close(fd);
	w->sum.directories += r >= 0 && w->tree->walk == WALK_COPIES;
	return r < 0 ? r : 0;
}
