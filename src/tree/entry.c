/* SPDX-License-Identifier: MIT
 * Copies one name: opens it without following a symlink, and copies what the open descriptor is.
 */
#define _GNU_SOURCE
#include "directory.h"
#include "displace.h"
#include "endpoints/error.h"
#include "io/system.h"
#include "links.h"
#include "namesakes.h"
#include "opened.h"
#include "pool.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"
#include "special.h"
#include "update.h"
#include "walk.h"

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
	return (ground_links(&w->tree->root.ground, w->tree->options) ? DESTINATION_REPLACES_LINKS
								      : 0) |
	       (decide_replaces(w->tree->options) || w->decision.clears ? DESTINATION_REPLACES_ALL
									: 0) |
	       (w->decision.exact ? DESTINATION_EXACT : 0) |
	       (tree_removes(w->tree) ? DESTINATION_REPLACES_READ_ONLY : 0) |
	       (admit_is_due(e->dir) ? DESTINATION_ADMITTED : 0) |
	       (__atomic_load_n(&e->dir->fits, __ATOMIC_RELAXED) ? DESTINATION_DIRECTORY_FITS : 0) |
	       (w->tree->options->dry_run || aside_is_needed(w->tree, e->dir)
		    ? 0 /* a dry run may not try what the storage can */
		    : DESTINATION_IS_PRIVATE);
}

static int entry_open_destination(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct copy *c = &w->copy;
	struct fcopy_error *error = &w->file.error;
	if (w->tree->root.ground.fresh) {
		int r = destination_create(&c->dst, e->dir->dst, e->as, st->st_mode & 0777,
					   entry_dst, error);
		if (r != -EEXIST || w->tree->root.ground.exclusive)
			return r;
		*error = (struct fcopy_error){0};
		if (entry_removes_old(e, st))
			return destination_create(&c->dst, e->dir->dst, e->as, st->st_mode & 0777,
						  entry_dst, error);
	}
	int r = facts_place(w, e, error);
	if (r == 0)
		r = destination_open_place(&c->dst, &w->place, entry_dst, &c->src, &w->options,
					   entry_flags(w, e), w->tree->storage, error);
	if (r == 0 && destination_directory_fits(&c->dst))
		__atomic_store_n(&e->dir->fits, true, __ATOMIC_RELAXED);
	if (w->decision.exact && r == 0 && !facts_allow(w, e, destination_found(&c->dst))) {
		c->dst.ops->abort(&c->dst);
		return RESULT_TAKEN;
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

/* O_EXCL or the type of what is there met the copy of another entry, which may be
 * special_place's and not yet claimed. */
static bool entry_met_rival(struct worker *w, const struct entry *e)
{
	const struct fcopy_error *error = &w->file.error;
	if (error->err == EISDIR) /* a rename met a directory */
		return rivals_share(w->tree, e);
	if (error->err != EEXIST)
		return false;
	if (w->tree->root.ground.exclusive)
		return w->copy.dst.met;
	rivals_lock(w->tree);
	bool have = rivals_have(w->tree, e->dir, e->as);
	rivals_unlock(w->tree);
	return have;
}

/* Of a new tree: O_EXCL met a file. In a private directory only this process makes files: the name
 * was listed twice, perhaps because it was replaced while the directory was read. */
static void entry_report_rival(struct worker *w, const struct entry *e)
{
	if (!w->tree->root.ground.exclusive)
		rivals_report(w, e);
	else if (rivals_report_new(w, e) == 0 && w->tree->root.ground.named)
		rivals_report_other(w, e);
	else if (w->outcome->stage == OUTCOME_FINAL)
		w->outcome->stage = OUTCOME_NONE;
}

/* Opens the destination, which must be what an option has seen. Returns as
 * entry_open_destination(); or -EEXIST if the outcome is known: *told is true. */
static int entry_open_seen(struct worker *w, const struct entry *e, const struct stat *st,
			   bool *told)
{
	struct copy *c = &w->copy;
	struct fcopy_error *error = &w->file.error;
	for (int tries = 0;; tries++) {
		int r = entry_open_destination(w, e, st);
		/* --inplace met a file that was not there. */
		const bool met = r == -EEXIST && w->decision.exact && !w->decision.seen &&
				 c->dst.met;
		if (r != RESULT_TAKEN && !met)
			return r;
		*error = (struct fcopy_error){0};
		*told = !facts_again(w, e, c->src.fd, st, tries);
		if (*told)
			return -EEXIST;
	}
}

/* The copy is complete, and DST has become something else. Returns as copy_run(), or as
 * entry_open_seen(). */
static int entry_commit_again(struct worker *w, const struct entry *e, const struct stat *st,
			      bool *told)
{
	struct copy *c = &w->copy;
	int r = RESULT_TAKEN;
	for (int tries = 0; r == RESULT_TAKEN; tries++) {
		*told = !facts_again(w, e, c->src.fd, st, tries);
		r = *told ? -EEXIST : destination_expect(&c->dst, w->decision.seen, &w->file.error);
		r = copy_end(c, r);
	}
	return r;
}

/* The device that the copy is on. A new tree has one; 0: unknown. */
static dev_t entry_device(const struct worker *w, const struct entry *e)
{
	const struct root *root = &w->tree->root;
	if (root->ground.single)
		return 0;
	if (!root->ground.foreign)
		return root->dst_dev;
	return e->dir->known && !destination_is_target(&w->copy.dst) ? e->dir->dst_dev : 0;
}

/* A regular file that is open, and its fstat; closes fd. */
static void entry_copy_file(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct outcome *o = w->outcome;
	if (w->tree->root.record) /* a little earlier does no harm */
		clock_gettime(CLOCK_REALTIME_COARSE, &w->opened);
	record_before(w, st->st_size);
	if (w->tree->root.ground.journal && resume_is_complete(w, e, fd, st)) {
		close(fd);
		o->action = FCOPY_ACTION_UNCHANGED;
		o->reused = true;
		o->resumed = (uint64_t)st->st_size;
		return;
	}
	if (w->tree->root.ground.journal && tree_stopped(w->tree)) {
		close(fd);
		o->stage = OUTCOME_NONE;
		return;
	}
	struct copy *c = pool_start_copy(w);
	c->no_clone = w->options.reflink <= FCOPY_WHEN_AUTO && w->refuses_clones &&
		      w->no_clone == st->st_dev;
	c->local = entry_is_exact(w, fd, st);
	source_adopt(&c->src, fd, entry_src, st);
	bool told = false;
	int r = entry_open_seen(w, e, st, &told);
	if (r != 0) {
		c->src.ops->abort(&c->src);
	} else {
		bool large = st->st_size >= LARGE_SIZE;
		c->device = entry_device(w, e);
		c->dst.backup = &w->displaced->backup;
		c->bare = w->options.preserve & FCOPY_ATTR_MODE && w->tree->root.ground.exclusive &&
			  directory_gives_no_acl(e->dir);
		if (w->tracks)
			w->made = identity_of(c->dst.fd);
		if (large && !w->tree->root.ground.single)
			c->helpers = &w->helpers;
		if (large)
			report_large(w, e);
		r = copy_run(c);
		if (r == RESULT_TAKEN)
			r = entry_commit_again(w, e, st, &told);
		if (large)
			report_large(w, NULL);
	}
	report_file(w, st, r == 0);
	if (w->file.part_kept)
		entry_note_part(w, e);
	if (r == RESULT_SKIPPED)
		o->action = FCOPY_ACTION_SKIPPED;
	else if (r == 0 && w->tree->root.record)
		record_add(w, e, st);
	else if (r == RESULT_RIVAL || (r < 0 && !told && entry_met_rival(w, e)))
		entry_report_rival(w, e);
	else if (r < 0 && !told)
		report_failure(w, e, &w->file.error);
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

/* Is the entry what was listed? When one that has failed is tried again, its ctime and mode may
 * differ: chmod(2) may have made it readable. It is copied as it is now. The number of its names
 * must be the same: the list says which of them are links. */
static bool entry_is_listed(struct listed *l, const struct stat *st)
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
	if (st->st_ctim.tv_sec == then->st_ctim.tv_sec &&
	    st->st_ctim.tv_nsec == then->st_ctim.tv_nsec)
		return true;
	/* Of a part, something must show that the bytes are not what has changed. */
	if (!l->again || st->st_nlink != then->st_nlink || (l->part && same_owner))
		return false;
	l->restated = true;
	l->mode = st->st_mode;
	l->ctime = st->st_ctim;
	return true;
}

/* st: NULL: it is gone. What is not as it was listed has no outcome: the shards list the tree
 * again.
 */
static bool entry_differs(struct worker *w, const struct entry *e, const struct stat *st)
{
	if (!e->listed || (st && entry_is_listed(e->listed, st)))
		return false;
	__atomic_store_n(&w->tree->differs, true, __ATOMIC_RELAXED);
	w->outcome->stage = OUTCOME_NONE;
	return true;
}

static void entry_vanished(struct worker *w, const struct entry *e, const char *call)
{
	struct fcopy_error error;
	struct stat st;
	if (entry_differs(w, e, NULL))
		return;
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
	w->outcome->action = FCOPY_ACTION_VANISHED;
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

/* Of a dry run: what would refuse the copy of a file only when it is opened? */
static void entry_rehearse(struct worker *w, const struct entry *e, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const struct operand *dst = &w->tree->destination;
	const bool only = w->tree->root.ground.single && w->tree->operands == 1 && !o->update;
	const bool file = S_ISREG(st->st_mode);
	struct fcopy_error error = {0};
	int r = 0;
	/* What it would replace or write to: the copy of no other entry. */
	const struct stat *old = w->facts.exists
				     ? decide_changed(&w->tree->root.ground, &w->facts, o)
				     : NULL;
	if (rivals_possible(w->tree) && old && !S_ISDIR(old->st_mode) &&
	    !rivals_claim_new(w->tree, e, old)) {
		rivals_report(w, e);
		return;
	}
	if (o->link) {
		outcome_link(w->outcome, st);
	} else if (o->symbolic_link) {
		w->outcome->type = S_IFLNK;
	} else if (file && !o->attributes_only) {
		w->outcome->bytes = (uint64_t)st->st_size;
		w->outcome->replaced = w->facts.exists && !decide_replaces(o) &&
				       !w->decision.clears;
	}
	if (e->dir->dst < 0 || !file || w->decision.clears || o->link || o->symbolic_link ||
	    o->attributes_only)
		return;
	const bool device = facts_write_device(w->tree);
	if (device || (r = facts_place(w, e, &error)) == 0)
		r = destination_rehearse(device ? &dst->place : &w->place, entry_dst, st,
					 &w->options,
					 entry_flags(w, e) | (only ? DESTINATION_ONLY : 0), &error);
	if (r != 0)
		report_failure(w, e, &error);
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
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd < 0)
		special_copy(w, e, st);
	else
		entry_copy_file(w, e, fd, &from);
}

/* Makes room for the entry. Returns false if the outcome is known. */
static bool entry_displaces(struct worker *w, const struct entry *e)
{
	const struct decision *d = &w->decision;
	return !(d->clears || d->asks || d->backup) || displace_begin(w, e, w->displaced);
}

/* Links or copies a regular file that is open as fd, and closes fd. fd -1: a special file, which is
 * never opened: opening it could block, or have an effect on a device. */
static void entry_copy_inode(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	struct displaced displaced;
	struct copied copied;
	char name[NAME_MAX + 1];
	struct outcome *is = w->outcome;
	displace_none(&displaced);
	is->type = st->st_mode & S_IFMT;
	w->made = (struct identity){.known = false}; /* update_leave may set it */
	/* cppcheck-suppress autoVariables */
	w->displaced = &displaced;
	facts_find(w, e, st);
	const bool left = facts_decide(w, e, fd);
	if (!left)
		admit_changes(w->tree, e->dir);
	/* An unchanged name may have to become a link to another one. */
	const bool linked = links_may_exist(w, st) && !o->link && (!left || outcome_is_there(is));
	w->tracks = linked && !left && !o->dry_run && aside_may_move(w->tree, e->dir);
	const enum name_state other = linked ? links_claim(w, e, st, &copied, name) : NAME_FIRST;
	const bool known = other == NAME_WAITS || other == NAME_TWICE;
	/* Not before that: a thread that takes an entry that waits finds DST as it was. */
	const bool stays = left || known || !entry_displaces(w, e);
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
		if (fd >= 0)
			close(fd);
		if (!made)
			entry_rehearse(w, e, st);
	}
	place_close(&w->place);
	if (displace_ends(&displaced))
		displace_end(w, e, &displaced, outcome_is_made(is));
	if (first)
		entry_copy_waiting(w, e, links_done(w, e, st, outcome_is_there(is)));
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
	if (entry_differs(w, e, &st)) {
		close(fd);
		return;
	}
	w->outcome->type = st.st_mode & S_IFMT;
	const bool directory = S_ISDIR(st.st_mode);
	if (directory && w->tree->root.ground.single) {
		close(fd);
		report_refusal(w, e, entry_src, EISDIR,
			       "was replaced by a directory during the copy");
	} else if (directory && w->tree->root.ground.lists &&
		   w->tree->shared->list(w, e, &st) < 0) {
		close(fd);
	} else if (directory) {
		directory_enter(w, e, fd, &st);
	} else if (!S_ISREG(st.st_mode)) {
		close(fd);
		entry_copy_inode(w, e, -1, &st);
	} else if (!e->listed || !w->tree->batches->take(w, e, fd, &st)) {
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

/* A call on the source failed. */
static void entry_fail(struct worker *w, const struct entry *e, const char *call, int err)
{
	if (entry_is_lost_found(w, e, err)) {
		w->outcome->stage = OUTCOME_NONE;
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
	if (entry_differs(w, e, &st))
		return false;
	if (S_ISDIR(st.st_mode))
		return true;
	if (w->tree->root.ground.lists)
		(void)w->tree->shared->list(w, e, &st);
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
	w->place.dir = w->place.target = -1;
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

/* What the outcome means for the directory that holds the entry. */
static void entry_mark_directory(struct worker *w, const struct entry *e, const struct outcome *o)
{
	const struct tree *t = w->tree;
	const bool entered = o->type == S_IFDIR && o->stage == OUTCOME_LATER;
	if (o->stage == OUTCOME_LATER && !entered)
		return;
	if (!o->replaced && !outcome_is_left(o))
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
	const struct entry *outer = w->entry; /* other names waited for it */
	struct outcome *outside = w->outcome;
	struct outcome o = {.action = FCOPY_ACTION_COPIED};
	w->entry = e;
	w->outcome = &o;
	entry_copy_any(w, e);
	namesakes_note(w->tree, e);
	w->entry = outer;
	w->outcome = outside;
	entry_mark_directory(w, e, &o);
	if (w->tree->root.ground.lists && o.stage == OUTCOME_FINAL)
		o.stage = OUTCOME_NONE; /* those that copy it report it */
	if (o.stage == OUTCOME_FINAL)
		report_outcome(w, e, &o);
	return o;
}
