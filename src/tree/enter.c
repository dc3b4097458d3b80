/* SPDX-License-Identifier: MIT
 * Enters a subdirectory of the source: opens or creates its copy.
 */
#include "directory.h"
#include "displace.h"
#include "entry.h"
#include "io/io.h"
#include "io/system.h"
#include "namesakes.h"
#include "pool.h"
#include "report.h"
#include "rivals.h"
#include "root.h"
#include "spelling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY_ABSENT INT_MIN /* no descriptor, and no -errno */

/* With symlinks followed, a directory can contain itself. */
static bool directory_is_cycle(const struct directory *d, const struct stat *st)
{
	for (; d; d = d->parent)
		if (same_inode(&d->st, st))
			return true;
	return false;
}

/* In a merge, a directory of the source can be the copy of one above it, by a bind mount or a
 * symlink that is followed. */
static bool directory_is_copy_above(const struct tree *t, const struct directory *d,
				    const struct stat *st)
{
	for (; d && !t->root.ground.fresh; d = d->parent)
		if (inode_is(d->dst_inode, st))
			return true;
	return false;
}

/* One that is being made. */
struct entering {
	const struct tree *tree;
	mode_t mode;
	int fd;
};

static int directory_mkdir(int dir, const char *name, void *arg)
{
	const struct entering *x = arg;
	return mkdirat(dir, name, x->mode) < 0 ? -errno : 0;
}

static int directory_complete_new(int dir, const char *name, void *arg, struct failure *fail)
{
	struct entering *x = arg;
	int r = x->tree->root.ground.withheld ? permissions_admit_owner(dir, name) : 0;
	if (r < 0)
		return fail_if(fail, r, "chmod");
	if (x->fd >= 0) /* of a first try */
		close(x->fd);
	x->fd = directory_open(x->tree, dir, name);
	return fail_if(fail, x->fd < 0 ? x->fd : 0, "open");
}

/* Returns a descriptor of the new directory, or -errno with the failed call. Where it cannot be
 * made aside, what was opened must be new and empty: another user may have exchanged it. */
static int directory_create(struct worker *w, const struct entry *e, mode_t mode,
			    struct failure *fail)
{
	if (aside_is_shared(w->tree, e->dir) && !aside_is_possible(w->tree, e->dir))
		return private_make_directory(e->dir->dst, e->as, mode, false, false, &mode, fail);
	struct entering x = {.tree = w->tree, .mode = mode, .fd = -1};
	const struct making m = {.call = "mkdir",
				 .make = directory_mkdir,
				 .complete = directory_complete_new,
				 .arg = &x};
	int r = aside_make(w, e, &m, false, fail);
	if (r < 0 && x.fd >= 0)
		close(x.fd);
	return r < 0 ? r : x.fd;
}

/* No other directory of a merge may have been copied into it, unless by a symlink that is followed:
 * lib -> usr/lib gets both lib and usr/lib. The symlink stays. */
static bool directory_is_free(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct stat link;
	if (w->tree->options->keep_directory_symlink)
		return fstatat(e->dir->dst, e->as, &link, AT_SYMLINK_NOFOLLOW) < 0 ||
		       !S_ISLNK(link.st_mode) || namesakes_follow(w->tree, e, st);
	return !spelling_meets(w, e, st, false) && !spelling_note(w, e) &&
	       rivals_claim(w->tree, e, st);
}

/* Returns fd, or closes it. */
static int directory_claim(struct worker *w, const struct entry *e, int fd)
{
	struct stat st;
	if (!rivals_possible(w->tree))
		return fd;
	const int err = fstat(fd, &st) < 0 ? errno : 0;
	if (err == 0 && directory_is_free(w, e, &st))
		return fd;
	close(fd);
	return err ? report_call(w, e, "fstat", entry_dst, err) : rivals_report(w, e);
}

/* What is there is no directory. */
static int directory_refuse(struct worker *w, const struct entry *e)
{
	struct stat st;
	const bool symlink = fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			     S_ISLNK(st.st_mode);
	return report_refusal(w, e, entry_dst, ENOTDIR,
			      symlink ? SYMLINK_STAYS : NO_DIRECTORY_HERE);
}

static int directory_fail(struct worker *w, const struct entry *e, int err)
{
	return err == EPERM && w->tree->options->keep_directory_symlink
		   ? report_refusal(w, e, entry_dst, EPERM, SYMLINK_FOREIGN)
		   : report_call(w, e, "open", entry_dst, err);
}

/* A mirror found no directory under the name. Returns 0 if it may be cleared; -EEXIST if the
 * options leave it alone or refuse it: then the outcome is known. */
static int directory_may_clear(struct worker *w, const struct entry *e, const struct stat *st)
{
	facts_find(w, e, st);
	if (facts_decide(w, e, -1))
		return -EEXIST;
	if (spelling_meets(w, e, st, false))
		return rivals_report(w, e);
	return !w->tree->options->dry_run && !displace_may(w, e) ? -EEXIST : 0;
}

/* A new tree has something of this name. In a private directory only this process makes names: an
 * empty directory may be what NFS has made, although it says that the name existed; another one was
 * listed twice. Returns a descriptor, or -errno, reported. */
static int directory_take(struct worker *w, const struct entry *e, bool *fresh)
{
	struct tree *t = w->tree;
	int r = rivals_report_new(w, e);
	if (r < 0)
		return r;
	int fd = directory_open(t, e->dir->dst, e->as);
	if (fd < 0)
		return t->root.ground.named ? rivals_report_other(w, e) : directory_refuse(w, e);
	if (t->root.ground.named) {
		__atomic_store_n(&t->root.shared_by, true, __ATOMIC_RELAXED);
	} else if (private_is_empty(fd) != 1) {
		close(fd);
		w->work.outcome.stage = OUTCOME_NONE;
		return -EEXIST;
	}
	*fresh = true;
	return fd;
}

/* What exists is no directory. other: set, without a report; NULL: that is refused. */
static int directory_meet(struct worker *w, const struct entry *e, bool *other)
{
	if (!other)
		return directory_refuse(w, e);
	*other = true;
	return -ENOTDIR;
}

/* An unfinished tree has something of this name. A directory gets S_IRWXU, because the earlier copy
 * may have given it the mode of its source. Anything else is replaced. Returns 0 or -errno. */
static int directory_resume(const struct entry *e, mode_t mode, bool *fresh)
{
	struct stat st;
	const int dir = e->dir->dst;
	if (fstatat(dir, e->as, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	int r = S_ISDIR(st.st_mode) ? permissions_admit_owner(dir, e->as)
				    : remove_entry(dir, e->as);
	if (r >= 0 && !S_ISDIR(st.st_mode))
		*fresh = (r = mkdirat(dir, e->as, mode) < 0 ? -errno : 0) == 0;
	return r < 0 ? r : 0;
}

/* Creates the destination's directory, or opens what has appeared. Returns a descriptor, or -errno,
 * reported. */
static int directory_make_new(struct worker *w, const struct entry *e, const struct stat *st,
			      bool *fresh, bool *other)
{
	const struct tree *t = w->tree;
	struct failure fail;
	int dir = e->dir->dst;
	mode_t mode = permissions_are_hidden(t) ? 0700 : (st->st_mode & 01777) | 0700;
	admit_changes(w->tree, e->dir);
	int r = directory_create(w, e, mode, &fail);
	*fresh = r >= 0;
	if (r >= 0)
		return directory_claim(w, e, r);
	if (r == -EEXIST && t->root.ground.journal)
		r = directory_resume(e, mode, fresh);
	if (r == -EEXIST && t->root.ground.exclusive)
		return directory_take(w, e, fresh);
	if (r < 0 && r != -EEXIST)
		return report_call(w, e, fail.call, entry_dst, -r);
	/* That of another process may not have its rights yet, or those that its source has. */
	const bool lacks = t->share.by || (*fresh && t->root.ground.withheld);
	if (lacks && (r = permissions_admit_owner(dir, e->as)) < 0)
		return report_call(w, e, "chmod", entry_dst, -r);
	int fd = directory_open_old(t, dir, e->as);
	/* Of an interrupted attempt; never a directory that another shard has made since. */
	if (t->share.by && (fd == -ENOTDIR || fd == -ELOOP) && unlinkat(dir, e->as, 0) == 0 &&
	    mkdirat(dir, e->as, mode) == 0)
		fd = directory_open(t, dir, e->as);
	if (!*fresh && (fd == -ENOTDIR || fd == -ELOOP))
		return directory_meet(w, e, other);
	return fd < 0 ? directory_fail(w, e, -fd) : directory_claim(w, e, fd);
}

/* Opens the destination's directory, which is created unless it exists. Returns a descriptor;
 * DIRECTORY_ABSENT: a dry run would create it; or -errno, reported. */
static int directory_find(struct worker *w, const struct entry *e, const struct stat *st,
			  bool *fresh, bool *other)
{
	const struct tree *t = w->tree;
	/* mkdir of an existing name waits for the directory's lock, which other shards hold. */
	const bool old = e->listed ? e->dir->state != DIRECTORY_NEW
				   : !t->root.ground.exclusive && e->dir->state == DIRECTORY_OLD;
	int fd = old ? directory_open_old(t, e->dir->dst, e->as) : -ENOENT;
	if (fd == -EACCES)
		fd = admit_find(t, e->dir->dst, e->as);
	if (fd >= 0 && e->listed && t->root.ground.withheld)
		(void)permissions_admit_owner(e->dir->dst, e->as);
	if (fd >= 0)
		return directory_claim(w, e, fd);
	if (!t->options->dry_run)
		return directory_make_new(w, e, st, fresh, other);
	*fresh = true;
	if (fd == -ENOENT)
		return DIRECTORY_ABSENT;
	return fd == -ENOTDIR || fd == -ELOOP ? directory_meet(w, e, other)
					      : directory_fail(w, e, -fd);
}

/* Opens or creates the destination's directory; a mirror replaces what is no directory. Returns
 * what directory_find() does. */
static int directory_make(struct worker *w, const struct entry *e, const struct stat *st,
			  bool *fresh)
{
	struct cleared cleared;
	bool other = false;
	int r = directory_find(w, e, st, fresh, w->tree->options->delete_extra ? &other : NULL);
	if (!other)
		return r;
	r = directory_may_clear(w, e, st);
	admit_changes(w->tree, e->dir);
	if (r == 0)
		r = displace_clear(w, e, &cleared);
	if (r == 0 && w->tree->options->dry_run)
		return DIRECTORY_ABSENT;
	if (r == 0) {
		r = directory_make_new(w, e, st, fresh, NULL);
		displace_clear_end(w, e, &cleared, r >= 0);
	}
	if (r < 0)
		spelling_fail(w);
	return r;
}

/* Is it a part, or a new copy without its name, of a DST that the source contains and excludes? */
static bool directory_is_own(const struct tree *t, const struct stat *st)
{
	return t->root.inodes.within &&
	       (inode_is(t->root.inodes.part, st) ||
		(!t->root.ground.foreign && inode_is(t->root.inodes.dst, st)));
}

/* May this directory of the source be entered? If not, the outcome is known. */
static bool directory_check(struct worker *w, const struct entry *e, const struct stat *st,
			    bool mounted)
{
	struct tree *t = w->tree;
	if (directory_is_own(t, st)) {
		w->work.outcome.action = FCOPY_ACTION_EXCLUDED;
		return false;
	}
	if (!mounted &&
	    (directory_is_copy_above(t, e->dir, st) || inode_is(t->root.inodes.dst, st))) {
		tree_stop(t, EINVAL);
		report_refusal(w, e, entry_src, EINVAL,
			       "is the copy itself: a tree cannot be copied into itself");
		return false;
	}
	if (t->options->follow != FCOPY_FOLLOW_ALWAYS || !directory_is_cycle(e->dir, st))
		return true;
	report_refusal(w, e, entry_src, ELOOP, "contains itself through a symlink");
	return false;
}

/* Is a directory of DST, which existed, SRC or inside it? Without a mount only SRC itself can be
 * met: DST contains it then. */
static const char *directory_is_of_source(struct tree *t, const struct entry *e, int dst,
					  const struct stat *st)
{
	if (inode_is(t->root.inodes.src, st))
		return "is SRC itself: nothing in it is changed";
	if (rivals_are_source(t, st))
		return DECIDE_SOURCE;
	if (t->options->keep_directory_symlink && rivals_is_below_source(t, dst) != 0)
		return "leads into SRC: nothing in it is changed";
	if (st->st_dev == e->dir->dst_inode.dev && system_is_mount_root(dst) <= 0)
		return NULL;
	return inside_by_mount(t->known.mounts, entry_top(e)->src, dst, false)
		   ? "is a mount point of what is inside SRC: nothing in it is changed"
		   : NULL;
}

/* Its entries are copied next. */
static void directory_begin(struct worker *w, const struct entry *e, struct directory *d,
			    const struct stat *now, bool fresh, bool mounted)
{
	struct tree *t = w->tree;
	if (d->dst >= 0 && !t->root.ground.exclusive)
		directory_note_inode(d, now);
	d->state = fresh                                 ? DIRECTORY_NEW
		   : t->root.ground.journal || e->listed ? DIRECTORY_RESUMED
							 : DIRECTORY_OLD;
	if (d->state == DIRECTORY_OLD && d->dst >= 0) {
		d->was = *now;
		if (d->admit == ADMIT_NONE && admit_is_closed(t, d, now))
			d->admit = ADMIT_DUE;
	}
	w->work.outcome.stage = OUTCOME_LATER;
	w->work.outcome.replaced = !fresh;
	d->names = mounted ? NAMES_AWAY : NAMES_LEFT;
	d->link = link_dest_enter(e->dir, e->name);
	d->list = e->listed;
	d->rest = e->listed ? e->listed->below : NULL;
	if (mounted && !e->listed)
		report_not_entered(w, e, system_is_mount_root(d->src) != 0);
	opened_add(t, d);
	struct item item = {.dir = d};
	if (mounted)
		directory_release(w, d); /* only the mount point itself */
	else
		pool_push_own(w, item);
}

void directory_enter(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct tree *t = w->tree;
	bool fresh = false;
	const bool mounted = t->options->one_file_system && st->st_dev != t->root.inodes.src.dev;
	if (!directory_check(w, e, st, mounted)) {
		close(fd);
		return;
	}
	int dst = t->root.ground.lists ? DIRECTORY_ABSENT : directory_make(w, e, st, &fresh);
	if (dst < 0 && dst != DIRECTORY_ABSENT) {
		close(fd);
		return;
	}
	dst = dst < 0 ? -1 : dst;
	struct stat now = {0};
	if (dst >= 0 && !t->root.ground.exclusive && fstat(dst, &now) < 0) {
		const int err = errno;
		close(fd);
		close(dst);
		report_call(w, e, "fstat", entry_dst, err);
		return;
	}
	const char *source = dst >= 0 && !fresh && t->root.ground.foreign
				 ? directory_is_of_source(t, e, dst, &now)
				 : NULL;
	if (source) {
		close(fd);
		close(dst);
		report_refusal(w, e, entry_dst, EINVAL, source);
		return;
	}
	const int admitted = dst >= 0 && !fresh ? admit_enter(t, &dst, &now) : 0;
	if (admitted < 0) {
		close(fd);
		close(dst);
		report_call(w, e, "open", entry_dst, -admitted);
		return;
	}
	struct directory *d = directory_new(e->dir, e->name, fd, dst, st);
	if (!d) {
		if (admitted)
			admit_close(dst, &now);
		close(fd);
		io_close(dst);
		tree_stop(t, ENOMEM);
		report_call(w, e, "malloc", entry_src, ENOMEM);
		return;
	}
	d->admit = admitted ? ADMIT_GIVEN : ADMIT_NONE;
	directory_begin(w, e, d, &now, fresh, mounted);
}

void directory_make_mount_point(struct worker *w, const struct entry *e)
{
	const struct stat st = {.st_mode = S_IFDIR | 0700};
	bool fresh = false;
	int fd = -1;
	w->work.outcome.type = S_IFDIR;
	if (!e->listed)
		report_not_entered(w, e, true);
	if (w->tree->root.ground.lists)
		(void)w->tree->share.by->list(w, e, &st);
	else
		fd = directory_make(w, e, &st, &fresh);
	w->work.outcome.replaced = !fresh;
	if (fd >= 0 && w->tree->root.ground.share)
		w->work.outcome.stage = OUTCOME_LATER;
	io_close(fd);
}
