/* SPDX-License-Identifier: MIT
 * Copies one name: opens it without following a symlink, and copies what the open descriptor is.
 */
#define _GNU_SOURCE
#include "entry.h"
#include "aside.h"
#include "directory.h"
#include "displace.h"
#include "endpoints/created.h"
#include "endpoints/error.h"
#include "endpoints/in_place.h"
#include "enter.h"
#include "hard_link.h"
#include "io/system.h"
#include "link_dest.h"
#include "links.h"
#include "opened.h"
#include "pool.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"
#include "seen.h"
#include "special.h"
#include "update.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define LARGE_SIZE ((off_t)16 << 20) /* such a file is shown as progress */

/* What an interrupted attempt of a share left is replaced if it can be. Otherwise it is removed:
 * another type of file, above all a symlink, which must not be followed; and a file with another
 * mode, which a replacement would keep. */
static bool entry_removes_old(const struct entry *e, const struct stat *st)
{
	struct stat old;
	return fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (!S_ISREG(old.st_mode) || (old.st_mode ^ st->st_mode) & 0777) &&
	       remove_entry(e->dir->dst, e->as) == 0;
}

static unsigned entry_flags(const struct worker *w, const struct entry *e)
{
	return (w->tree->options->hard_links ? DESTINATION_REPLACES_LINKS : 0) |
	       (displace_replaces(w->tree) || w->clears ? DESTINATION_REPLACES_ALL : 0) |
	       (displace_replaces_source(w->tree, e) ? DESTINATION_REPLACES_SOURCE : 0) |
	       (w->seen.asked ? DESTINATION_EXACT : 0) |
	       (displace_only(w->tree) ? DESTINATION_HANDS_OUT : 0) |
	       (w->tree->options->dry_run || aside_is_needed(w->tree, e->dir)
		    ? 0 /* a dry run may not try what the storage can */
		    : DESTINATION_IS_PRIVATE);
}

static int entry_open_destination(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct copy *c = &w->copy;
	struct fcopy_error *error = &w->file.error;
	if (w->tree->root.state == TREE_NEW || w->tree->root.state == TREE_SHARED) {
		int r = created_open(&c->dst, e->dir->dst, e->as, st->st_mode & 0777, entry_dst,
				     error);
		if (r != -EEXIST || w->tree->root.state == TREE_NEW)
			return r;
		*error = (struct fcopy_error){0};
		if (entry_removes_old(e, st))
			return created_open(&c->dst, e->dir->dst, e->as, st->st_mode & 0777,
					    entry_dst, error);
	}
	int r = destination_open_in(&c->dst, e->dir->dst, e->as, entry_dst, &c->src, &w->options,
				    entry_flags(w, e), &w->tree->storage, error);
	if (w->seen.asked && r == 0 && !seen_is(w, e, destination_found(&c->dst))) {
		c->dst.ops->abort(&c->dst);
		return ENDPOINT_TAKEN;
	}
	return rivals_possible(w->tree) ? rivals_claim_file(w, e, r) : r;
}

/* The unfinished copy of the file was kept: the report names the first one. It is next to what a
 * symlink leads to. */
static void entry_note_part(const struct worker *w, const struct entry *e)
{
	char *part = w->tree->report->part, link[2], path[PATH_MAX], real[PATH_MAX];
	pthread_mutex_lock(&w->tree->lock);
	if (part[0] == '\0') {
		entry_path(e, false, path, sizeof(path));
		bool follow = readlink(path, link, sizeof(link)) > 0 && realpath(path, real);
		if (!part_make_path(part, follow ? real : path))
			part[0] = '\0';
	}
	pthread_mutex_unlock(&w->tree->lock);
}

/* Asks once for each file system. */
static bool entry_is_exact(struct worker *w, int fd, const struct stat *st)
{
	if (!w->is_asked || w->asked_exact != st->st_dev) {
		w->is_asked = true;
		w->asked_exact = st->st_dev;
		w->is_exact = system_has(fd, SYSTEM_LOCAL);
	}
	return w->is_exact;
}

/* O_EXCL, the commit or the type of what is there met the copy of another entry, which may be
 * special_place's and not yet claimed. */
static bool entry_met_rival(struct worker *w, const struct entry *e)
{
	const struct fcopy_error *error = &w->file.error;
	if (error->err != EEXIST)
		return error->err == ENOTUNIQ;
	if (w->tree->root.state == TREE_NEW)
		return error->call && strcmp(error->call, "open") == 0;
	rivals_lock(w->tree);
	bool have = rivals_have(w->tree, e->dir->dst, e->as);
	rivals_unlock(w->tree);
	return have;
}

/* Opens the destination, which must be what an option has seen. Returns as
 * entry_open_destination(); or ENDPOINT_SKIPPED, counted; or -errno, reported: *told is true. */
static int entry_open_seen(struct worker *w, const struct entry *e, const struct stat *st,
			   bool *told)
{
	struct copy *c = &w->copy;
	struct fcopy_error *error = &w->file.error;
	for (int tries = 0;; tries++) {
		int r = entry_open_destination(w, e, st);
		/* --inplace met a file that was not there. */
		const bool met = r == -EEXIST && w->seen.asked && !w->seen.exists && error->call &&
				 strcmp(error->call, "open") == 0;
		if (r != ENDPOINT_TAKEN && !met)
			return r;
		*error = (struct fcopy_error){0};
		r = seen_again(w, e, c->src.fd, st, tries);
		*told = r != 0;
		if (r != 0)
			return r < 0 ? r : ENDPOINT_SKIPPED;
	}
}

/* The copy is complete, and DST has become something else. Returns as copy_run(), or as
 * entry_open_seen(). */
static int entry_commit_again(struct worker *w, const struct entry *e, const struct stat *st,
			      bool *told)
{
	struct copy *c = &w->copy;
	int r = ENDPOINT_TAKEN;
	for (int tries = 0; r == ENDPOINT_TAKEN; tries++) {
		r = seen_again(w, e, c->src.fd, st, tries);
		*told = r != 0;
		if (r == 0)
			r = destination_expect(&c->dst, seen_replaces(w), &w->file.error);
		else if (r > 0)
			r = ENDPOINT_SKIPPED;
		r = copy_end(c, r);
	}
	return r;
}

/* What the copy has replaced at the last moment becomes a backup. */
static int entry_keep_handed(struct worker *w, const struct entry *e)
{
	const char *call, *name = destination_handed(&w->copy.dst);
	int r = name ? displace_another(w, e, e->dir->dst, name, &call) : 0;
	return r < 0 ? error_call(&w->file.error, call, entry_dst, -r) : 0;
}

/* The device that the copy is on. A new tree has one; 0: unknown. */
static dev_t entry_device(const struct worker *w, const struct entry *e)
{
	const struct root *root = &w->tree->root;
	if (root->state == TREE_SINGLE)
		return 0;
	if (root->state != TREE_MERGED)
		return root->dst_dev;
	return e->dir->known && !destination_is_target(&w->copy.dst) ? e->dir->dst_dev : 0;
}

/* A regular file that is open, and its fstat; closes fd. Returns 0 or -errno, reported. */
static int entry_copy_file(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	clock_gettime(CLOCK_REALTIME_COARSE, &w->opened); /* a little earlier does no harm */
	record_before(w, st->st_size);
	if (w->tree->root.state == TREE_RESUMED && resume_is_complete(w, e, fd, st)) {
		close(fd);
		w->sum.count[FCOPY_COUNT_REUSED]++;
		w->sum.count[FCOPY_COUNT_RESUMED] += (uint64_t)st->st_size;
		w->done.action = FCOPY_ACTION_UNCHANGED;
		return 0;
	}
	if (w->tree->root.state == TREE_RESUMED && tree_stopped(w->tree)) {
		close(fd);
		return -EINTR;
	}
	struct copy *c = pool_start_copy(w);
	c->no_clone = w->options.reflink <= FCOPY_WHEN_AUTO && w->refuses_clones &&
		      w->no_clone == st->st_dev;
	w->options.resume = w->tree->root.state == TREE_SINGLE && w->tree->options->copy.resume;
	c->local = entry_is_exact(w, fd, st);
	source_adopt(&c->src, fd, entry_src, st);
	bool told = false;
	int r = entry_open_seen(w, e, st, &told);
	if (r != 0) {
		c->src.ops->abort(&c->src);
	} else {
		bool large = st->st_size >= LARGE_SIZE;
		c->device = entry_device(w, e);
		if (w->tracks)
			w->made = identity_of(c->dst.fd);
		if (large && w->tree->root.state != TREE_SINGLE)
			c->helpers = &w->helpers;
		if (large)
			report_large(w, e);
		r = copy_run(c);
		if (r == ENDPOINT_TAKEN)
			r = entry_commit_again(w, e, st, &told);
		if (r == 0 && w->seen.asked)
			r = entry_keep_handed(w, e);
		if (large)
			report_large(w, NULL);
	}
	report_file(w, st, r == 0);
	if (w->file.part_kept)
		entry_note_part(w, e);
	if (r == ENDPOINT_SKIPPED) {
		w->sum.count[FCOPY_COUNT_SKIPPED] += !told;
		w->done.action = FCOPY_ACTION_SKIPPED;
		return -EEXIST;
	}
	w->replaced = r == 0 && w->file.existed;
	if (r == 0 && w->tree->record)
		record_add(w, e, st);
	if (r < 0 && !told && entry_met_rival(w, e))
		return rivals_report(w, e);
	if (r < 0 && !told)
		report_failure(w, e, &w->file.error);
	return r;
}

#define GRACE 2 /* seconds: the coarsest clock of a file system */

/* A removal or a rename changes the directory's times. If they are unchanged, the file system lists
 * a name that it cannot open. Network file systems cache the times. A removal within the same tick
 * of the clock as an earlier change does not change them: then the list shows it. */
static bool entry_was_removed(const struct entry *e)
{
	struct statx now;
	const struct stat *then = &e->dir->st;
	if (statx(e->dir->src, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME,
		  &now) < 0)
		return true;
	bool same = now.stx_mtime.tv_sec == then->st_mtim.tv_sec &&
		    (long)now.stx_mtime.tv_nsec == then->st_mtim.tv_nsec &&
		    now.stx_ctime.tv_sec == then->st_ctim.tv_sec &&
		    (long)now.stx_ctime.tv_nsec == then->st_ctim.tv_nsec;
	bool recent = labs(time(NULL) - then->st_mtim.tv_sec) <= GRACE;
	return !same || (recent && !rivals_is_listed(e->dir->src, e->name));
}

/* Is it not what was listed? */
static bool entry_differs(struct worker *w, const struct entry *e, const struct stat *st)
{
	const struct stat *then = e->listed;
	if (!then || (st && st->st_ino == then->st_ino && st->st_size == then->st_size &&
		      !((st->st_mode ^ then->st_mode) & S_IFMT) && same_mtime(st, then) &&
		      st->st_ctim.tv_sec == then->st_ctim.tv_sec &&
		      st->st_ctim.tv_nsec == then->st_ctim.tv_nsec))
		return false;
	__atomic_store_n(&w->tree->differs, true, __ATOMIC_RELAXED);
	return true;
}

static int entry_vanished(struct worker *w, const struct entry *e, const char *call)
{
	struct fcopy_error error;
	struct stat st;
	if (entry_differs(w, e, NULL))
		return -EALREADY;
	if (e->follow && fstatat(e->dir->src, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		return report_refusal(w, e, entry_src, ENOENT, "is a dangling symlink");
	if (e->dir->src >= 0 && !entry_was_removed(e))
		return report_call(w, e, call, entry_src, ENOENT);
	error_call(&error, call, entry_src, ENOENT);
	error.reason = "vanished before it could be copied";
	if (w->options.strict) {
		report_failure(w, e, &error);
		return -ENOENT;
	}
	w->sum.count[FCOPY_COUNT_VANISHED]++;
	w->done.action = FCOPY_ACTION_VANISHED;
	report_warning(w, e, &error);
	return -ENOENT;
}

/* Handles the names that waited for the copy of another name of their inode. */
static void entry_copy_waiting(struct worker *w, const struct entry *first, struct waiter *waits)
{
	for (struct waiter *next; waits; waits = next) {
		struct directory *dir = waits->dir;
		next = waits->next;
		int r = opened_use(w->tree, dir);
		if (r < 0)
			directory_report_lost(w, dir, -r);
		else if (!tree_stopped(w->tree))
			entry_copy(w, &(struct entry){.dir = dir,
						      .name = waits->name,
						      .as = waits->name,
						      .follow = first->follow});
		aside_end(w);
		if (r == 0)
			opened_unuse(w->tree, dir);
		free(waits);
		directory_release(w, dir);
		directory_unref(dir);
	}
}

/* Of a dry run: what would certainly refuse the copy of a file? Returns 0 or -errno, reported. */
static int entry_check(struct worker *w, const struct entry *e, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const struct endpoint src = {.fd = -1, .path = entry_src, .st = *st};
	const struct operand *dst = &w->tree->destination;
	struct fcopy_error error = {0};
	int r = 0;
	if (e->dir->dst < 0 || !S_ISREG(st->st_mode) || tree_removes(w->tree) || o->link ||
	    o->symbolic_link || o->attributes_only)
		return 0;
	if (dst->kind != OPERAND_DEVICE)
		r = destination_rehearse(e->dir->dst, e->as, entry_dst, &src, &w->options,
					 entry_flags(w, e), &error);
	else if (!displace_replaces(w->tree)) /* it is written */
		r = in_place_rehearse(&dst->place, entry_dst, st, &error);
	if (r < 0)
		report_failure(w, e, &error);
	return r;
}

/* Of a dry run: counts what would be copied. */
static int entry_rehearse(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct stat old;
	const bool exists = e->dir->dst >= 0 &&
			    fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (exists && w->options.no_clobber) {
		w->sum.count[FCOPY_COUNT_SKIPPED]++;
		w->done.action = FCOPY_ACTION_SKIPPED;
		return -EEXIST;
	}
	const int r = entry_check(w, e, st);
	if (r < 0)
		return r;
	const struct fcopy_tree_options *o = w->tree->options;
	if (exists && (o->link || o->symbolic_link) && !w->clears &&
	    !displace_replaces_by_link(w->tree, e, st, &old) &&
	    (old.st_dev != st->st_dev || old.st_ino != st->st_ino))
		return report_call(w, e, o->link ? "linkat" : "symlinkat", entry_dst, EEXIST);
	if (exists && S_ISDIR(old.st_mode) && !tree_removes(w->tree))
		return report_call(w, e, "open", entry_dst, EISDIR);
	w->sum.count[FCOPY_COUNT_FILES] += S_ISREG(st->st_mode);
	w->sum.count[FCOPY_COUNT_SYMLINKS] += S_ISLNK(st->st_mode);
	w->sum.count[FCOPY_COUNT_SPECIALS] += !S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode);
	w->done.bytes = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	w->sum.count[FCOPY_COUNT_BYTES] += w->done.bytes;
	return 0;
}

/* The entry is not copied, or not now: a link was made, or its copy is left alone. */
static int entry_settle(struct worker *w, const struct stat *st, enum link_state state, int left)
{
	const enum fcopy_action by_update = w->done.action; /* by update_leave() */
	const enum fcopy_action unchanged = by_update == FCOPY_ACTION_REPAIRED
						? FCOPY_ACTION_REPAIRED
						: FCOPY_ACTION_UNCHANGED;
	w->done = (struct done){.type = st->st_mode & S_IFMT};
	if (state != LINK_COPY && left > 0)
		w->sum.count[FCOPY_COUNT_UNCHANGED]--; /* by update_leave(); it is counted here, or
							  later */
	switch (state) {
	case LINK_WAITS: return -EINPROGRESS;
	case LINK_FAILED: return -EIO;
	case LINK_SKIPPED: w->done.action = FCOPY_ACTION_SKIPPED; return -EEXIST;
	case LINK_TWICE: return -EALREADY;
	case LINK_MADE:
		w->done.action = FCOPY_ACTION_LINKED;
		w->done.bytes = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
		return 0;
	case LINK_SAME:
		w->sum.count[FCOPY_COUNT_UNCHANGED]++;
		w->done.action = unchanged;
		return 1;
	case LINK_COPY: break;
	}
	if (left > 0)
		w->done.action = by_update == FCOPY_ACTION_SKIPPED ? by_update : unchanged;
	return left;
}

/* Makes what the options ask for: a symlink, only the attributes, a link to an earlier copy, or a
 * copy. Closes fd. */
static int entry_make(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	struct stat from = *st;
	if (o->symbolic_link || (o->attributes_only && fd >= 0)) {
		int r = o->symbolic_link ? symbolic_link_make(w, e, st)
					 : attributes_only(w, e, fd, st);
		if (fd >= 0)
			close(fd);
		return r;
	}
	const int made = o->link_dest ? link_dest_make(w, e, &fd, &from) : 0;
	if (made != 0) {
		close(fd);
		return made < 0 ? made : 0;
	}
	return fd < 0 ? special_copy(w, e, st) : entry_copy_file(w, e, fd, &from);
}

/* Links or copies a regular file that is open as fd, and closes fd. fd -1: a special file, which is
 * never opened: opening it could block, or have an effect on a device. */
static int entry_copy_inode(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	w->done.type = st->st_mode & S_IFMT;
	struct displaced displaced = {.linked = false};
	w->made = (struct identity){.known = false}; /* update_leave may set it */
	w->seen = (struct seen){.asked = false};     /* this, too */
	w->displaced = &displaced;
	int left = update_leave(w, e, fd, st);
	if (left == 0 && link_dest_is_made(w, e, fd, st))
		left = 1;
	const int skipped = left == 0 ? displace_begin(w, e, &displaced) : 0;
	if (skipped != 0) {
		if (fd >= 0)
			close(fd);
		return skipped < 0 ? skipped : -EEXIST;
	}
	if (left == 0 && w->tree->options->link && !w->tree->options->dry_run) {
		const int made = hard_link_source(w, e, fd, st);
		displace_end(w, e, &displaced, made);
		if (fd >= 0)
			close(fd);
		return made;
	}
	/* An unchanged name may have to become a link to another one. */
	const bool dry = w->tree->options->dry_run;
	bool linked = left >= 0 && links_may_exist(w, st) &&
		      (left == 0 ? !w->tree->options->link
				 : w->tree->options->update == FCOPY_UPDATE_CHANGED);
	w->tracks = linked && left == 0 && !dry && aside_may_move(w->tree, e->dir);
	enum link_state state = linked ? links_claim(w, e, st) : LINK_COPY;
	if (state != LINK_COPY || left != 0) {
		if (fd >= 0)
			close(fd);
		if (state == LINK_COPY && linked)
			entry_copy_waiting(w, e, links_done(w, e, st, 0));
		const int settled = entry_settle(w, st, state, left);
		if (left == 0)
			displace_end(w, e, &displaced, settled);
		return settled;
	}
	if (dry && fd >= 0)
		close(fd);
	int r = dry ? entry_rehearse(w, e, st) : entry_make(w, e, fd, st);
	displace_end(w, e, &displaced, r);
	if (linked) {
		const struct done done = w->done;
		entry_copy_waiting(w, e, links_done(w, e, st, r));
		w->done = done;
	}
	return r;
}

/* Takes fd. */
static int entry_copy_open(struct worker *w, const struct entry *e, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		int err = errno;
		close(fd);
		return report_call(w, e, "fstat", entry_src, err);
	}
	if (entry_differs(w, e, &st)) {
		close(fd);
		return -EALREADY;
	}
	source_hide_mode(&st, &w->options);
	if (S_ISDIR(st.st_mode) && w->tree->lists) {
		int r = w->tree->shared->list(w, e, &st);
		if (r == 0)
			return directory_enter(w, e, fd, &st);
		close(fd);
		return r;
	}
	if (S_ISDIR(st.st_mode) && w->tree->root.state == TREE_SINGLE) {
		close(fd);
		return report_refusal(w, e, entry_src, EISDIR,
				      "was replaced by a directory during the copy");
	}
	w->done.type = st.st_mode & S_IFMT;
	if (S_ISDIR(st.st_mode))
		return directory_enter(w, e, fd, &st);
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return entry_copy_inode(w, e, -1, &st);
	}
	return entry_copy_inode(w, e, fd, &st);
}

/* Another process has a lease on the file, as Samba and NFS servers have. The kernel asks it to
 * end the lease; opened without O_NONBLOCK, the file waits for that: fcntl(2). */
static int entry_open_leased(const struct entry *e, int flags)
{
	struct stat st;
	int path = openat(e->dir->src, e->name, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
	if (path < 0)
		return -1;
	int fd = -1;
	if (fstat(path, &st) == 0 && S_ISREG(st.st_mode))
		fd = open(io_proc_path(path).text, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	close(path);
	errno = EAGAIN; /* what the first call reported */
	return fd;
}

/* Another user's FUSE mount without allow_other denies everything to this user; statx(2) without a
 * mask still reports where it is. With -x, is this such a mount point? */
static bool entry_is_private_mount(const struct worker *w, const struct entry *e, int err)
{
	struct statx sx;
	const int flags = AT_NO_AUTOMOUNT | (e->follow ? 0 : AT_SYMLINK_NOFOLLOW);
	return err == EACCES && w->tree->options->one_file_system &&
	       statx(e->dir->src, e->name, flags, 0, &sx) == 0 &&
	       makedev(sx.stx_dev_major, sx.stx_dev_minor) != w->tree->root.src_dev &&
	       sx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* May only root read it? A mirror of a whole ext file system leaves it out. */
static bool entry_is_lost_found(struct worker *w, const struct entry *e, int err)
{
	struct fcopy_error error;
	if (err != EACCES || !w->tree->options->delete_extra ||
	    !system_is_lost_found(e->dir->src, e->name))
		return false;
	error_call(&error, "open", entry_src, err);
	error.reason = "is not copied: only root can read it";
	report_warning(w, e, &error);
	return true;
}

/* A call on the source failed. Returns 0 or -errno, reported. */
static int entry_fail(struct worker *w, const struct entry *e, const char *call, int err)
{
	if (entry_is_lost_found(w, e, err))
		return -err;
	if (err == ENOENT)
		return entry_vanished(w, e, call);
	return entry_is_private_mount(w, e, err) ? directory_make_mount_point(w, e)
						 : report_call(w, e, call, entry_src, err);
}

/* Returns 0, -errno, or -EINPROGRESS if another thread will copy it later. */
static int entry_copy_any(struct worker *w, const struct entry *e)
{
	struct stat st;
	const struct fcopy_tree_options *o = w->tree->options;
	/* A link needs no permission to read the file. */
	const bool lists = w->tree->lists;
	const bool links = (o->link || o->symbolic_link) && o->update != FCOPY_UPDATE_CHANGED;
	bool opened = (e->type == DT_REG && !links && !lists) || e->type == DT_DIR;
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (e->follow ? 0 : O_NOFOLLOW);
	if (strlen(e->name) > NAME_MAX) /* FUSE knows longer ones */
		return report_call(w, e, "open", entry_src, ENAMETOOLONG);
	if (e->type == DT_REG && w->tree->options->update && update_is_untouched(w, e)) {
		w->done = (struct done){.action = FCOPY_ACTION_UNCHANGED, .type = S_IFREG};
		return 1;
	}
	for (int tries = 0;; tries++, opened = false) {
		if (!opened) {
			if (fstatat(e->dir->src, e->name, &st,
				    e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
				return entry_fail(w, e, "stat", errno);
			if (entry_differs(w, e, &st))
				return -EALREADY;
			source_hide_mode(&st, &w->options);
			if (lists && !S_ISDIR(st.st_mode))
				return w->tree->shared->list(w, e, &st);
			if (!S_ISDIR(st.st_mode) && (links || !S_ISREG(st.st_mode)))
				return entry_copy_inode(w, e, -1, &st);
		}
		int fd = openat(e->dir->src, e->name, flags);
		if (fd < 0 && errno == EAGAIN)
			fd = entry_open_leased(e, flags);
		if (fd >= 0)
			return entry_copy_open(w, e, fd);
		/* ELOOP, ENXIO: it has become a symlink or a socket since it was listed. */
		if (tries > 0 || !opened || (errno != ELOOP && errno != ENXIO))
			return entry_fail(w, e, "open", errno);
	}
}

int entry_copy(struct worker *w, const struct entry *e)
{
	struct fcopy_progress *progress = w->tree->options->copy.progress;
	w->entry = e;
	w->done = (struct done){.action = FCOPY_ACTION_COPIED};
	int r = entry_copy_any(w, e);
	w->entry = NULL;
	if (!(r == 0 && w->replaced))
		__atomic_store_n(&e->dir->grown, true, __ATOMIC_RELAXED);
	w->replaced = false; /* also for an entry that other names waited for */
	if (r >= 0 && (w->tree->root.state == TREE_RESUMED || w->tree->options->delete_extra))
		__atomic_add_fetch(&e->dir->present, 1, __ATOMIC_RELAXED);
	else if (r < 0 && r != -EINPROGRESS && w->tree->root.state == TREE_RESUMED &&
		 w->tree->options->keep_going && !tree_stopped(w->tree))
		remove_entry(e->dir->dst, e->as); /* no older copy may remain in its place */
	const enum fcopy_action action = w->done.action;
	if (w->tree->lists)
		return r;
	bool finished = r == 0
			    ? w->done.type != S_IFDIR
			    : action == FCOPY_ACTION_UNCHANGED || action == FCOPY_ACTION_SKIPPED ||
				  action == FCOPY_ACTION_VANISHED ||
				  action == FCOPY_ACTION_REPAIRED;
	if (finished)
		report_entry(w, e);
	if (r != -EINPROGRESS && progress)
		__atomic_add_fetch(&progress->entries, 1, __ATOMIC_RELAXED);
	return r;
}
