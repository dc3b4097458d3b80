/* SPDX-License-Identifier: MIT
 * A directory that is being copied: its memory, its attributes, its flush, and its end when
 * everything below it is finished.
 */
#include "directory.h"
#include "displace.h"
#include "endpoints/endpoint.h"
#include "endpoints/error.h"
#include "entry.h"
#include "io/io.h"
#include "io/system.h"
#include "namesakes.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
				.known.shared = parent ? ANSWER_NO : ANSWER_UNKNOWN,
				.st = *st,
				.pending = 1,
				.references = 1};
	memcpy(d->name, name, length + 1);
	if (parent) {
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
		io_close(d->dst);
		io_close(d->link);
		namesakes_forget(d);
		free(d);
		d = parent;
	}
}

int directory_reopen(const struct directory *d)
{
	const struct directory *top = d;
	size_t depth = 0;
	for (; top->parent; top = top->parent)
		depth++;
	/* The owner of SRC decides how deep it is: the stack would be too small. */
	const struct directory **way = calloc(depth + 1, sizeof(*way));
	if (!way)
		return -ENOMEM;
	for (size_t i = depth; i > 0; d = d->parent)
		way[--i] = d;
	int fd = fcntl(top->dst, F_DUPFD_CLOEXEC, 0), err = errno;
	for (size_t i = 0; fd >= 0 && i < depth; i++) {
		const int above = fd;
		fd = openat(above, way[i]->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = errno;
		close(above);
	}
	free(way);
	return fd < 0 ? -err : fd;
}

bool directory_gives_no_acl(struct directory *d)
{
	enum answer acl = __atomic_load_n(&d->known.acl, __ATOMIC_RELAXED);
	if (acl == ANSWER_UNKNOWN) {
		const ssize_t n = xattr_ask(&(struct xattr_file){.fd = d->dst}, XATTR_DEFAULT);
		acl = answer_of(n >= 0 || !xattr_is_absent((int)-n));
		__atomic_store_n(&d->known.acl, acl, __ATOMIC_RELAXED);
	}
	return acl == ANSWER_NO;
}

void directory_warn_mode(struct worker *w, struct directory *d, int err)
{
	struct fcopy_error error;
	error_call(&error, "fchmod", entry_dst, err);
	report_warning(w, &ENTRY(d, ""), &error);
}

/* Has a directory that was there before other attributes than it is to get? */
static bool directory_differs(struct tree *t, const struct directory *d, const struct stat *old,
			      unsigned preserve)
{
	preserve &= equal_preserves(&t->known.equal, d->dst, &d->st, old,
				    t->options->copy.preserve);
	return preserve &&
	       !equal_attributes(&t->known.equal, d->src, &d->st, d->dst, old, preserve);
}

struct outcome directory_outcome(struct tree *t, const struct directory *d)
{
	const bool grown = __atomic_load_n(&d->grown, __ATOMIC_RELAXED);
	struct outcome o = {.action = FCOPY_ACTION_COPIED, .type = S_IFDIR};
	if (d->state != DIRECTORY_OLD)
		return o;
	o.action = d->dst >= 0 && directory_differs(t, d, &d->was,
						    grown ? ~(unsigned)FCOPY_ATTR_TIMESTAMPS : ~0U)
		       ? FCOPY_ACTION_REPAIRED
		       : FCOPY_ACTION_UNCHANGED;
	return o;
}

/* Attributes come last: files below would change the times, and a mode may forbid to create them.
 */
static void directory_set_attributes(struct worker *w, struct directory *d)
{
	const struct fcopy_options *o = &w->tree->options->copy;
	const struct entry e = ENTRY(d, "");
	int lost = preserve_open(w, &e, d->src, d->dst, &d->st, d->state == DIRECTORY_OLD);
	const struct tree *t = w->tree;
	struct stat now;
	if (d->state == DIRECTORY_OLD || o->preserve & FCOPY_ATTR_MODE)
		return;
	const bool resumed = d->state == DIRECTORY_RESUMED;
	bool hidden = permissions_are_hidden(t) && lost == 0;
	mode_t mode = d->st.st_mode & 01777;
	if (hidden || t->root.ground.withheld || resumed)
		mode &= 01000 | permissions_left(t, d->dst);
	/* It was created with all of S_IRWXU, so that entries could be created in it. */
	mode_t extra = 0700 & ~mode, lacks = hidden ? mode & 01077 : 0;
	if (!extra && !lacks && !resumed)
		return;
	if (fstat(d->dst, &now) < 0) {
		report_call(w, &e, "fstat", entry_dst, errno);
		return;
	}
	mode_t is = now.st_mode & 07777, open = (is & ~extra) | lacks;
	/* The source's mode may be another one than when an earlier attempt created the copy. */
	mode = resumed ? (is & 06000) | mode : open;
	if (mode != is && fchmod(d->dst, mode) < 0 && (lacks || !permissions_are_fixed(errno)))
		directory_warn_mode(w, d, errno);
}

void directory_repair(struct worker *w, struct directory *d, struct outcome *o)
{
	struct stat now, after;
	const bool news = o->action == FCOPY_ACTION_REPAIRED;
	if (w->tree->options->update && !news && o->action == FCOPY_ACTION_UNCHANGED &&
	    fstat(d->dst, &now) == 0 && !directory_differs(w->tree, d, &now, ~0U))
		return;
	/* The marker of the mirror, like any temporary name, changed the time of the directory. */
	struct stat before = d->was;
	if (news && fstat(d->dst, &now) == 0)
		before.st_mtim = now.st_mtim;
	const uint64_t old = news ? attributes_sum(d->dst, &d->was) : 0;
	const uint64_t timed = news ? attributes_sum(d->dst, &before) : 0;
	directory_set_attributes(w, d);
	if (!news || fstat(d->dst, &after) < 0)
		return;
	const uint64_t sum = attributes_sum(d->dst, &after);
	if (sum == old || sum == timed)
		o->action = FCOPY_ACTION_UNCHANGED;
}

/* Does the destination have exactly as many names as entries that were copied into it? */
static bool directory_is_exact(const struct directory *d)
{
	_Alignas(8) char buffer[8192];
	struct reader r = reader_open(d->dst, buffer, sizeof(buffer));
	unsigned count = 0;
	while (reader_next(&r))
		count++;
	return reader_close(&r) == 0 && count == d->present;
}

/* syncfs(2) writes the page cache of every file system back. Those on top of a user-space process,
 * a protocol or another file system may then hold the data in a cache of their own, or not report
 * lost data: only fsync(2) flushes that cache and reports the loss. */

bool flush_needs_each(const struct tree *t, int dst)
{
	if (!t->options->copy.fsync && !t->share.by)
		return false;
	const unsigned type = system_type(dst);
	return !type || system_type_has(type, SYSTEM_BLIND);
}

enum flushing flush_find(const struct tree *t, int dst, bool whole)
{
	if (flush_needs_each(t, dst))
		return FLUSH_EACH;
	return !t->options->copy.fsync ? FLUSH_NONE : whole ? FLUSH_WHOLE : FLUSH_FILES;
}

bool flush_all(const struct tree *t, int dst)
{
	const unsigned type = system_type(dst);
	return t->root.ground.flush == FLUSH_EACH ||
	       (type && !system_type_has(type, SYSTEM_BLIND) && syncfs(dst) == 0);
}

/* In a merge another file system can be mounted below the operand's directory. Flushes it if this
 * directory is the uppermost one on it: the syncfs(2) at the end does not reach it. */
static int directory_flush_mount(struct tree *t, struct directory *d, struct failure *fail)
{
	const dev_t dev = opened_inode(t, d).dev, above = opened_inode(t, d->parent).dev;
	if (!dev || !above)
		return fail_at(fail, "fstat");
	if (dev == t->root.inodes.dst.dev)
		return 0;
	if (flush_needs_each(t, d->dst))
		return fail_if(fail, io_flush_directory(d->dst), "fsync");
	return dev != above ? fail_if(fail, system_sync(d->dst), "syncfs") : 0;
}

static int directory_flush_below(struct tree *t, struct directory *d, struct failure *fail)
{
	if (t->root.ground.flush == FLUSH_EACH)
		return fail_if(fail, io_flush_directory(d->dst), "fsync");
	if (!t->root.ground.foreign || !(t->options->copy.fsync || mirror_marks(t)))
		return 0;
	return directory_flush_mount(t, d, fail);
}

/* Where each entry was flushed there is no syncfs(2), either, but for overlayfs: with FUSE it may
 * fail, as system_sync() says. */
int flush_tree(int fd, bool each, struct failure *fail)
{
	int r = each ? fail_if(fail, io_flush_directory(fd), "fsync") : 0;
	if (r < 0 || (each && !system_has(fd, SYSTEM_SYNCS_ALL)))
		return r;
	return syncfs(fd) < 0 ? fail_at(fail, "syncfs") : 0;
}

int flush_singles(struct tree *t, int directory, struct failure *fail)
{
	if (!t->options->copy.fsync)
		return 0;
	double start = io_now();
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail_at(fail, "open");
	int r = flush_tree(fd, flush_needs_each(t, fd), fail);
	close(fd);
	t->report->seconds[FCOPY_PHASE_FSYNC] += io_now() - start;
	return r;
}

/* Flushes a complete directory if each entry is flushed, and, with --fsync or in a mirror, a file
 * system that is mounted there. After a failure a mirror's marker stays. */
static void directory_flush(struct worker *w, struct directory *d)
{
	struct tree *t = w->tree;
	struct failure fail = {.call = "fsync"};
	const int r = directory_flush_below(t, d, &fail);
	if (r == 0)
		return;
	__atomic_store_n(&t->mirror.marker_stays, true, __ATOMIC_RELAXED);
	/* A directory that cannot be read is open as O_PATH. Only --fsync promises a flush. */
	if (r != -EBADF || t->options->copy.fsync)
		report_call(w, &ENTRY(d, ""), fail.call, entry_dst, -r);
}

/* A rename onto an existing file changes the times of its directory, where cp(1), which overwrites
 * the file, does not. If nothing else was done to its names, restores the times: both, as
 * mirror_restore_time() does. */
static void directory_restore_time(const struct tree *t, const struct directory *d)
{
	const struct fcopy_tree_options *o = t->options;
	const struct timespec times[2] = {d->was.st_atim, d->was.st_mtim};
	struct stat now;
	if (d->was.st_nlink > 0 && d->state == DIRECTORY_OLD && !o->dry_run && !o->delete_extra &&
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
		error.reason = "this directory or its copy was moved or replaced";
	report_failure(w, &ENTRY(d, ""), &error);
	/* It may be a mount point. */
	__atomic_store_n(&w->tree->mirror.marker_stays, true, __ATOMIC_RELAXED);
	d->names = NAMES_LOST;
}

/* The directory is open. */
static void directory_complete(struct worker *w, struct directory *d)
{
	const bool dry = w->tree->options->dry_run, whole = !w->tree->root.ground.share;
	bool old = d->state == DIRECTORY_RESUMED; /* stale names may make the number equal */
	bool stale = (old || w->tree->root.ground.journal) && !tree_stopped(w->tree) &&
		     !w->tree->share.batches && (old || !directory_is_exact(d));
	if (stale)
		prune_directory(w, d);
	if (whole && d->list && !d->list->ended && !tree_stopped(w->tree))
		prune_check_list(w, d);
	if (w->tree->options->delete_extra && d->state == DIRECTORY_OLD && d->names == NAMES_READ &&
	    !tree_stopped(w->tree) && (dry || !directory_is_exact(d)))
		mirror_collect(w, d);
	directory_restore_time(w->tree, d);
	const bool stopped = tree_stopped(w->tree), flushes = d->dst >= 0 && !stopped;
	if (flushes && w->tree->root.compares && w->tree->root.ground.flush == FLUSH_EACH)
		directory_flush(w, d);
	if (!d->parent) /* root.c still needs it */
		return;
	struct outcome o = directory_outcome(w->tree, d);
	if (!stopped && !dry && whole)
		directory_repair(w, d, &o);
	admit_end(w->tree, d);
	if (flushes && !dry)
		directory_flush(w, d);
	if (!tree_stopped(w->tree) && whole && !(d->list && d->list->ended))
		report_directory(w, d, &o);
	if (d->list && whole) /* of a share, the chunk with the line may be gone */
		d->list->ended = true;
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

void directory_note_inode(struct directory *d, const struct stat *dst)
{
	d->dst_inode = inode_of(dst);
	d->known.shared = answer_of(private_is_shared(dst));
}
