/* SPDX-License-Identifier: MIT
 * Copies one name: opens it without following a symlink, and copies what the open descriptor is.
 */
#include "entry.h"
#include "directory.h"
#include "displace.h"
#include "endpoints/error.h"
#include "io/io.h"
#include "io/system.h"
#include "report.h"
#include "rivals.h"
#include "source/reader.h"
#include "spelling.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

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
	const bool same = same_time(statx_time(now.stx_mtime), then->st_mtim) &&
			  same_time(statx_time(now.stx_ctime), then->st_ctim);
	const int64_t age = time_between(then->st_mtim.tv_sec, time(NULL));
	const bool recent = age <= GRACE && age >= -GRACE;
	return !same || (recent && !reader_lists(e->dir->src, e->name));
}

/* Is the entry what was listed? When one that has failed is tried again, its ctime and mode may
 * differ: chmod(2) may have made it readable. It is copied as it is now. The number of its names
 * must be the same: the list says which of them are links. */
static bool entry_is_listed(const struct listed *l, const struct stat *st)
{
	const struct stat *then = &l->st;
	if ((st->st_mode ^ then->st_mode) & S_IFMT)
		return false;
	const bool same_owner = st->st_mode == then->st_mode && st->st_uid == then->st_uid &&
				st->st_gid == then->st_gid;
	if (S_ISDIR(st->st_mode))
		return then->st_ino == 0 || (st->st_ino == then->st_ino && same_owner);
	if (st->st_ino != then->st_ino || st->st_size != then->st_size || !same_mtime(st, then))
		return false;
	if (same_ctime(st, then))
		return true;
	/* Of a part, something must show that the bytes are not what has changed. */
	return l->again && st->st_nlink == then->st_nlink && !(l->part && same_owner);
}

/* The entry is not what was listed, or gone: it has no outcome, and the shards list the tree again.
 */
static void entry_differs(struct worker *w)
{
	__atomic_store_n(&w->tree->share.differs, true, __ATOMIC_RELAXED);
	w->work.outcome.stage = OUTCOME_NONE;
}

static void entry_vanished(struct worker *w, const struct entry *e, const char *call)
{
	struct fcopy_error error;
	struct stat st;
	if (e->listed) {
		entry_differs(w);
		return;
	}
	if (e->follow && fstatat(e->dir->src, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode)) {
		report_refusal(w, e, entry_src, ENOENT, "is a dangling symlink");
		return;
	}
	if (e->dir->src >= 0 && !entry_was_removed(e)) {
		report_call(w, e, call, entry_src, ENOENT);
		return;
	}
	error_call(&error, call, entry_src, ENOENT);
	error.reason = "vanished before it could be copied";
	if (w->options.strict) {
		report_failure(w, e, &error);
		return;
	}
	w->work.outcome.action = FCOPY_ACTION_VANISHED;
	report_warning(w, e, &error);
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

/* Makes what the options ask for: a symlink, only the attributes, a link to SRC or to an earlier
 * copy, or a copy. Closes fd. */
static void entry_make(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	struct stat from = *st;
	const bool attributes = o->attributes_only && fd >= 0;
	if (o->link)
		hard_link_source(w, e, fd, st);
	else if (o->symbolic_link)
		symbolic_link_make(w, e, st);
	else if (attributes)
		attributes_only(w, e, fd, st);
	if (o->link || o->symbolic_link || attributes ||
	    (o->link_dest && hard_link_dest(w, e, &fd, &from) == RESULT_KNOWN)) {
		io_close(fd);
		return;
	}
	if (fd < 0)
		special_copy(w, e, st);
	else
		regular_copy(w, e, fd, &from);
}

/* Links or copies a regular file that is open as fd, and closes fd. fd -1: a special file, which is
 * never opened: opening it could block, or have an effect on a device. */
static void entry_copy_inode(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	struct displaced displaced;
	struct copied copied;
	char name[NAME_MAX + 1];
	struct outcome *is = &w->work.outcome;
	displace_none(&displaced);
	is->type = st->st_mode & S_IFMT;
	w->work.made = (struct identity){.known = false}; /* update_leave may set it */
	/* cppcheck-suppress autoVariables */
	w->work.displaced = &displaced;
	facts_find(w, e, st);
	bool left = facts_decide(w, e, fd);
	const struct decision *d = &w->work.decision;
	const bool skipped = left && is->action == FCOPY_ACTION_SKIPPED;
	if (((!left || skipped || outcome_is_there(is)) && spelling_meets(w, e, st, skipped)) ||
	    (!left && spelling_begin(w, e))) {
		rivals_report(w, e);
		left = true;
	}
	if (!left && w->tree->root.ground.foreign)
		admit_changes(w->tree, e->dir);
	/* An unchanged name may have to become a link to another one. */
	const bool linked = links_may_exist(w, st) && !o->link && (!left || outcome_is_there(is));
	w->work.tracks = linked && !left && !o->dry_run && aside_may_move(w->tree, e->dir);
	const enum name_state other = linked ? links_claim(w, e, st, &copied, name) : NAME_FIRST;
	const bool known = other == NAME_WAITS || other == NAME_TWICE;
	/* Not before that: a thread that takes an entry that waits finds DST as it was. */
	const bool displaces = d->clears || d->asks || d->backup;
	const bool stays = left || known || (displaces && !displace_begin(w, e, &displaced));
	bool first = linked && other == NAME_FIRST;
	if (other == NAME_COPIED && (left || !stays))
		first = links_use(w, e, st, &copied);
	if (other == NAME_COPIED)
		directory_unref(copied.dir);
	bool made = stays || (linked && !first);
	if (!made && !o->dry_run) {
		entry_make(w, e, fd, st);
	} else {
		struct stat from = *st;
		made |= !made && o->link_dest && hard_link_dest(w, e, &fd, &from) == RESULT_KNOWN;
		io_close(fd);
		if (!made)
			regular_rehearse(w, e, st);
	}
	const bool there = outcome_is_there(is);
	if (!there)
		spelling_fail(w);
	/* -u may have decided again, and skipped it: DST had become newer. */
	const bool late = !there && !left && is->action == FCOPY_ACTION_SKIPPED;
	if (there ? spelling_note(w, e) : late && spelling_meets(w, e, st, true))
		rivals_report(w, e);
	place_close(&w->work.place);
	if (displace_ends(&displaced))
		displace_end(w, e, &displaced, outcome_is_made(is));
	if (first)
		w->work.waits = links_done(w, e, st, outcome_is_there(is));
}

/* Takes fd. */
static void entry_copy_open(struct worker *w, const struct entry *e, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		int err = errno;
		close(fd);
		report_call(w, e, "fstat", entry_src, err);
		return;
	}
	source_hide_mode(&st, &w->options);
	if (e->listed && !entry_is_listed(e->listed, &st)) {
		close(fd);
		entry_differs(w);
		return;
	}
	w->work.outcome.type = st.st_mode & S_IFMT;
	const bool directory = S_ISDIR(st.st_mode);
	if (directory && w->tree->root.ground.single) {
		close(fd);
		report_refusal(w, e, entry_src, EISDIR,
			       "was replaced by a directory during the copy");
	} else if (directory && w->tree->root.ground.lists &&
		   w->tree->share.by->list(w, e, &st) < 0) {
		close(fd);
	} else if (directory) {
		directory_enter(w, e, fd, &st);
	} else if (!S_ISREG(st.st_mode)) {
		close(fd);
		entry_copy_inode(w, e, -1, &st);
	} else if (!e->listed || !w->tree->share.batches->take(w, e, fd, &st)) {
		entry_copy_inode(w, e, fd, &st);
	}
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
	       makedev(sx.stx_dev_major, sx.stx_dev_minor) != w->tree->root.inodes.src.dev &&
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

/* A call on the source failed. */
static void entry_fail(struct worker *w, const struct entry *e, const char *call, int err)
{
	if (entry_is_lost_found(w, e, err)) {
		w->work.outcome.stage = OUTCOME_NONE;
		return;
	}
	if (err == ENOENT)
		entry_vanished(w, e, call);
	else if (entry_is_private_mount(w, e, err))
		directory_make_mount_point(w, e);
	else
		report_call(w, e, call, entry_src, err);
}

/* Finds out what it is. Returns whether a descriptor of it is needed. */
static bool entry_look(struct worker *w, const struct entry *e, bool links)
{
	struct stat st;
	if (fstatat(e->dir->src, e->name, &st, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
		entry_fail(w, e, "stat", errno);
		return false;
	}
	source_hide_mode(&st, &w->options);
	if (e->listed && !entry_is_listed(e->listed, &st)) {
		entry_differs(w);
		return false;
	}
	if (S_ISDIR(st.st_mode))
		return true;
	if (w->tree->root.ground.lists)
		(void)w->tree->share.by->list(w, e, &st);
	else if (S_ISREG(st.st_mode) && !links)
		return true;
	else
		entry_copy_inode(w, e, -1, &st);
	return false;
}

static void entry_copy_any(struct worker *w, const struct entry *e)
{
	const struct fcopy_tree_options *o = w->tree->options;
	/* A link needs no permission to read the file. */
	const bool links = (o->link || o->symbolic_link) && o->update != FCOPY_UPDATE_CHANGED;
	w->work.place.dir = w->work.place.target = -1;
	bool opened = (e->type == DT_REG && !links && !w->tree->root.ground.lists) ||
		      e->type == DT_DIR;
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (e->follow ? 0 : O_NOFOLLOW);
	if (strlen(e->name) > NAME_MAX) { /* FUSE knows longer ones */
		report_call(w, e, "open", entry_src, ENAMETOOLONG);
		return;
	}
	if (e->type == DT_REG && o->update && update_is_untouched(w, e))
		return;
	for (int tries = 0;; tries++, opened = false) {
		if (!opened && !entry_look(w, e, links))
			return;
		int fd = openat(e->dir->src, e->name, flags);
		if (fd < 0 && errno == EAGAIN)
			fd = entry_open_leased(e, flags);
		if (fd >= 0) {
			entry_copy_open(w, e, fd);
			return;
		}
		/* ELOOP, ENXIO: it has become a symlink or a socket since it was listed. */
		if (tries > 0 || !opened || (errno != ELOOP && errno != ENXIO)) {
			entry_fail(w, e, "open", errno);
			return;
		}
	}
}

/* Was the entry left as it is? Its directory has the same names as before. */
static bool entry_is_left(const struct outcome *o)
{
	switch (o->action) {
	case FCOPY_ACTION_UNCHANGED:
	case FCOPY_ACTION_REPAIRED:
	case FCOPY_ACTION_SKIPPED:
	case FCOPY_ACTION_EXCLUDED:
	case FCOPY_ACTION_VANISHED: return true;
	default: return o->stage == OUTCOME_NONE;
	}
}

/* What the outcome means for the directory that holds the entry. */
static void entry_mark_directory(struct worker *w, const struct entry *e, const struct outcome *o)
{
	const struct tree *t = w->tree;
	const bool entered = o->type == S_IFDIR && o->stage == OUTCOME_LATER;
	if (o->stage == OUTCOME_LATER && !entered)
		return;
	if (e->dir->state == DIRECTORY_OLD && !o->replaced && !entry_is_left(o))
		__atomic_store_n(&e->dir->grown, true, __ATOMIC_RELAXED);
	if (!t->options->delete_extra && !t->root.ground.journal)
		return;
	if (entered || outcome_is_there(o))
		__atomic_add_fetch(&e->dir->present, 1, __ATOMIC_RELAXED);
	else if (o->stage != OUTCOME_NONE && o->action != FCOPY_ACTION_SKIPPED &&
		 t->root.ground.journal && t->options->keep_going && !tree_stopped(t))
		remove_entry(e->dir->dst, e->as); /* no older copy may remain in its place */
}

struct outcome entry_copy(struct worker *w, const struct entry *e)
{
	w->work.entry = e;
	w->work.outcome = (struct outcome){.action = FCOPY_ACTION_COPIED};
	w->work.waits = NULL;
	w->work.spelling = (struct spelling){.path = 0};
	entry_copy_any(w, e);
	w->work.entry = NULL;
	struct outcome o = w->work.outcome;
	struct waiter *waits = w->work.waits;
	entry_mark_directory(w, e, &o);
	if (w->tree->root.ground.lists && o.stage == OUTCOME_FINAL)
		o.stage = OUTCOME_NONE; /* those that copy it report it */
	if (o.stage == OUTCOME_FINAL)
		report_outcome(w, e, &o);
	if (waits)
		entry_copy_waiting(w, e, waits);
	return o;
}
