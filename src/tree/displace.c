/* SPDX-License-Identifier: MIT
 * Implements displace.h.
 */
#define _GNU_SOURCE
#include "displace.h"
#include "endpoints/error.h"
#include "endpoints/exchange.h"
#include "endpoints/same.h"
#include "endpoints/slot.h"
#include "inodes.h"
#include "io/libc.h"
#include "part/private.h"
#include "report.h"
#include "rivals.h"
#include "source/filter.h"
#include "source/names.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES 100 /* each fails if another process makes the backup of this number first */

/* The number of a backup whose name is `other`; 0: it is none of `name`. */
static long displace_number(const char *other, const char *name, size_t length)
{
	char *end;
	const char *digits = other + length + 2;
	if (strncmp(other, name, length) != 0 || strncmp(other + length, ".~", 2) != 0 ||
	    *digits < '1' || *digits > '9')
		return 0;
	const long n = strtol(digits, &end, 10);
	return strcmp(end, "~") == 0 && n < 1000000000 ? n : 0;
}

/* The highest N of all NAME.~N~ in the directory; 0: none; or -errno with the call. */
static long displace_search(int dir, const char *name, const char **call)
{
	_Alignas(8) char buffer[READER_SIZE];
	const size_t length = strlen(name);
	struct reader r = reader_open(dir, buffer, sizeof(buffer));
	long highest = 0;
	for (const char *other; (other = reader_next(&r));) {
		const long n = displace_number(other, name, length);
		highest = n > highest ? n : highest;
	}
	*call = r.fd < 0 ? "open of its directory" : r.call;
	const int err = reader_close(&r);
	return err < 0 ? err : highest; /* an unread name may be an older backup */
}

/* The same. The list that the directory had before is searched first: many files of one directory
 * then take time in proportion to their number. again: another process has made a backup since. */
static long displace_highest(const struct entry *e, bool again, const char **call)
{
	const struct name_list *list = again ? NULL : rivals_list(e->dir);
	char from[NAME_MAX + 3];
	const size_t length = strlen(e->as);
	long highest = 0;
	if (!list || !list->name)
		return displace_search(e->dir->dst, e->as, call);
	snprintf(from, sizeof(from), "%s.~", e->as);
	for (size_t i = names_from(list, from);
	     i < list->count && strncmp(list->name[i], from, length + 2) == 0; i++) {
		const long n = displace_number(list->name[i], e->as, length);
		highest = n > highest ? n : highest;
	}
	return highest;
}

/* Does the name belong to this run: has SRC an entry of that name, whether its turn comes before or
 * after this one, or is it the copy of an earlier SRC, the backup of another entry, or a log?
 * *source: it is SRC itself, which would be lost. */
static bool displace_is_taken(const struct worker *w, const struct entry *e, const char *name,
			      bool *source)
{
	struct tree *t = w->tree;
	const struct stat *src = &w->facts.src;
	const struct entry named = {.dir = e->dir, .name = name, .as = name};
	struct stat st;
	char path[PATH_MAX];
	const bool there = fstatat(e->dir->dst, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	*source = there && src->st_dev == st.st_dev && src->st_ino == st.st_ino;
	if (there && (inodes_has(t->backups, &st) || rivals_made(t, &named, &st) ||
		      same_output(&t->options->copy, &st)))
		return true;
	if (t->root.ground.single || fstatat(e->dir->src, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	entry_path_below(&named, path, sizeof(path));
	return !t->filter || !filter_excludes(t->filter, path, S_ISDIR(st.st_mode));
}

/* A name that no copy of this run has: with simple backups, one more suffix is added for each that
 * a copy has. again: another one was taken. Returns 0 or -errno with the call; NULL: the name is
 * that of SRC. */
static int displace_name(const struct worker *w, const struct entry *e, bool again,
			 char name[NAME_MAX + 1], bool *numbered, const char **call)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const char *suffix = o->backup_suffix ? o->backup_suffix : "~";
	char before[NAME_MAX + 1];
	bool source;
	long n = 0;
	if (o->backup != FCOPY_BACKUP_SIMPLE)
		n = displace_highest(e, again, call);
	if (n < 0)
		return (int)n;
	*call = "backup";
	*numbered = o->backup == FCOPY_BACKUP_NUMBERED || n > 0;
	snprintf(name, NAME_MAX + 1, "%s", e->as);
	do {
		strcpy(before, *numbered ? e->as : name);
		int length = *numbered ? snprintf(name, NAME_MAX + 1, "%s.~%ld~", before, ++n)
				       : snprintf(name, NAME_MAX + 1, "%s%s", before, suffix);
		if (length > NAME_MAX)
			return -ENAMETOOLONG;
	} while (displace_is_taken(w, e, name, &source));
	if (source)
		*call = NULL;
	return source ? -EEXIST : 0;
}

/* Exchanges d->older, which has a link to the entry, and the older backup of the name. Where the
 * file system cannot exchange two names, the older backup has none of them in between. */
static int displace_exchange(int dir, struct displaced *d)
{
	char drawn[TEMPORARY_SIZE];
	const char *call;
	if (renameat2(dir, d->older, dir, d->name, RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) /* the file system lacks the flag, or the kernel */
		return -errno;
	int r = slot_displace(dir, d->name, false, drawn, &call);
	if (r < 0)
		return r;
	if (renameat(dir, d->older, dir, d->name) == 0) {
		strcpy(d->older, drawn);
		return 0;
	}
	r = -errno;
	(void)!renameat2(dir, drawn, dir, d->name, RENAME_NOREPLACE);
	return r;
}

/* There is an older simple backup. It is kept under a drawn name until the copy has succeeded. */
static int displace_older(const struct entry *e, struct displaced *d, const char **call)
{
	struct stat st;
	const int dir = e->dir->dst;
	int r = slot_displace(dir, e->as, true, d->older, call);
	if (r < 0)
		return r;
	*call = "renameat2";
	r = displace_exchange(dir, d);
	d->linked = r == 0;
	if (r == 0 && fstatat(dir, d->older, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode)) {
		r = displace_exchange(dir, d);
		d->linked = false;
		r = r < 0 ? r : -EISDIR;
	}
	if (r < 0) {
		unlinkat(dir, d->older, 0);
		d->older[0] = '\0';
	}
	return r;
}

/* Links are impossible: renames the entry, and before that an older simple backup. Where a rename
 * replaces what has the name, a backup that another process has made is looked for just before. */
static int displace_move(const struct entry *e, struct displaced *d, bool numbered,
			 const char **call)
{
	struct stat st;
	const int dir = e->dir->dst;
	int r = 0;
	if (fstatat(dir, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (numbered)
			return -EEXIST;
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		r = slot_displace(dir, d->name, false, d->older, call);
	}
	if (r == 0) {
		*call = "renameat";
		r = private_rename(dir, e->as, dir, d->name);
	}
	d->moved = r == 0;
	if (r < 0 && d->older[0])
		(void)!private_rename(dir, d->older, dir, d->name);
	if (r < 0)
		d->older[0] = '\0';
	return r;
}

/* In a sticky directory, this user could not remove a link to another user's entry. */
static bool displace_would_stay(const struct worker *w, int dir)
{
	struct stat st;
	const uid_t user = geteuid();
	return user != 0 && w->facts.exists && w->facts.old.st_uid != user &&
	       fstatat(dir, ".", &st, 0) == 0 && st.st_mode & S_ISVTX && st.st_uid != user;
}

/* Gives the entry its other name by a link, so that it keeps its own until the copy replaces it;
 * where links are impossible, by a rename. An older simple backup is replaced when the copy has
 * succeeded. */
static int displace_link(const struct entry *e, struct displaced *d, bool numbered,
			 const char **call)
{
	const int dir = e->dir->dst;
	int r;
	*call = "linkat";
	if (linkat(dir, e->as, dir, d->name, 0) == 0) {
		d->linked = true;
		return 0;
	}
	if (errno == EEXIST && numbered)
		return -EEXIST;
	if (errno == EEXIST && (r = displace_older(e, d, call)) != -EPERM && r != -EOPNOTSUPP &&
	    r != -ENOSYS && r != -EMLINK)
		return r;
	*call = "renameat";
	return displace_move(e, d, numbered, call);
}

/* Two entries may want one name: the first one gets it. If another process has just used the
 * number, returns -EEXIST with a call: another one is drawn. */
static int displace_once(const struct worker *w, const struct entry *e, bool again,
			 struct displaced *d, const char **call)
{
	struct tree *t = w->tree;
	struct stat st;
	bool numbered = false;
	if (t->options->backup != FCOPY_BACKUP_SIMPLE)
		(void)rivals_list(e->dir); /* read now, and not while others wait */
	rivals_lock(t);
	int r = displace_name(w, e, again, d->name, &numbered, call);
	if (r == 0 && displace_would_stay(w, e->dir->dst)) {
		*call = "renameat";
		r = -EPERM;
	}
	if (r == 0)
		r = displace_link(e, d, numbered, call);
	if (r == 0 && fstatat(e->dir->dst, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = inodes_add(t->backups, &st);
	rivals_unlock(t);
	if (r == -ENOMEM)
		tree_stop(t, ENOMEM);
	return r < 0 ? r : 0;
}

static int displace_back_up(const struct worker *w, const struct entry *e, struct displaced *d,
			    const char **call)
{
	int r = -EEXIST;
	for (int tries = 0; tries < TRIES && r == -EEXIST; tries++)
		if ((r = displace_once(w, e, tries > 0, d, call)) < 0 && !*call)
			break;
	return r;
}

/* What the copy has replaced cannot become a backup: it gets its name back, and the copy, which
 * comes out, goes. */
static int displace_undo(const struct entry *e, int dir, const char *name, int r)
{
	if (renameat2(dir, name, e->dir->dst, e->as, RENAME_EXCHANGE) < 0)
		return -ENOTRECOVERABLE;
	unlinkat(dir, name, 0);
	return r;
}

int displace_another(struct worker *w, const struct entry *e, int dir, const char *name,
		     const char **call)
{
	char as[NAME_MAX + 1];
	struct stat old, kept;
	bool numbered = false;
	int r = -EEXIST;
	/* The same file, but its content has changed: the backup is another name of it. */
	if (w->displaced->linked && fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(e->dir->dst, w->displaced->name, &kept, AT_SYMLINK_NOFOLLOW) == 0 &&
	    old.st_dev == kept.st_dev && old.st_ino == kept.st_ino)
		return unlinkat(dir, name, 0) < 0 ? -errno : 0;
	for (int tries = 0; tries < TRIES && r == -EEXIST; tries++) {
		r = displace_name(w, e, tries > 0, as, &numbered, call);
		if (r < 0)
			break;
		*call = "renameat";
		if (numbered)
			r = private_rename(dir, name, e->dir->dst, as);
		else
			r = renameat(dir, name, e->dir->dst, as) < 0 ? -errno : 0;
	}
	if (!*call)
		*call = "backup";
	return r < 0 ? displace_undo(e, dir, name, r) : 0;
}

static void displace_refuse(struct worker *w, const struct entry *e, const char *call, int r)
{
	if (call)
		report_call(w, e, call, entry_dst, -r);
	else
		report_unsuitable(w, e, entry_dst, -r, "its backup would replace SRC");
}

/* Has the name another file than its backup? The copy has failed, but after it got the name; or
 * another process has replaced the entry. Then the backup has the only name of what was there. With
 * FUSE, two names of one file may show different times: that of the entry is compared, too. */
static bool displace_is_needed(const struct worker *w, const struct entry *e,
			       const struct displaced *d)
{
	struct stat backup, now;
	const struct stat *seen = w->decision.seen;
	const int dir = e->dir->dst;
	return fstatat(dir, d->name, &backup, AT_SYMLINK_NOFOLLOW) < 0 ||
	       fstatat(dir, e->as, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
	       !(exchange_is_same(dir, &now, &backup) ||
		 (seen && exchange_is_same(dir, &now, seen)));
}

/* Has the entry its old name, or gets it back? */
static bool displace_return(const struct worker *w, const struct entry *e,
			    const struct displaced *d, bool lasts)
{
	struct stat st;
	const int dir = e->dir->dst;
	if (d->moved)
		return fstatat(dir, e->as, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
		       private_rename(dir, d->name, dir, e->as) == 0;
	/* --inplace=auto has removed the entry where no rename can replace it. */
	return d->linked && (linkat(dir, d->name, dir, e->as, 0) == 0 ||
			     (errno == EEXIST && !(lasts && displace_is_needed(w, e, d))));
}

/* The older backup, which has a drawn name by now, is not needed. */
static void displace_forget(struct worker *w, const struct entry *e, const char *older)
{
	char reason[sizeof("its older backup is left as ") + TEMPORARY_SIZE];
	struct fcopy_error error;
	if (unlinkat(e->dir->dst, older, 0) == 0 || errno == ENOENT)
		return;
	const int err = errno;
	snprintf(reason, sizeof(reason), "its older backup is left as %s", older);
	error_refuse(&error, entry_dst, err, reason, FCOPY_ADVICE_NONE);
	report_warning(w, e, &error);
}

/* back: the entry has its old name. */
static void displace_drop(struct worker *w, const struct entry *e, const struct displaced *d,
			  bool back)
{
	const int dir = e->dir->dst;
	if (back && d->older[0]) {
		/* Both names of one file stay after a rename. */
		if (renameat(dir, d->older, dir, d->name) == 0)
			unlinkat(dir, d->older, 0);
	} else if (back && d->linked) {
		unlinkat(dir, d->name, 0);
	} else if (d->older[0]) {
		displace_forget(w, e, d->older);
	}
}

void displace_end(struct worker *w, const struct entry *e, struct displaced *d, bool made)
{
	mirror_clear_end(w, e, &d->cleared, made);
	displace_drop(w, e, d, !made && displace_return(w, e, d, true));
}

void displace_withdraw(struct worker *w, const struct entry *e, struct displaced *d)
{
	mirror_clear_end(w, e, &d->cleared, false);
	displace_drop(w, e, d, displace_return(w, e, d, false));
}

bool displace_may(struct worker *w, const struct entry *e)
{
	const struct fcopy_tree_options *o = w->tree->options;
	char path[PATH_MAX];
	if (!o->confirm || e->confirmed)
		return true;
	entry_path(e, false, path, sizeof(path));
	pthread_mutex_lock(&w->tree->lock);
	const bool yes = o->confirm(o->copy.user, path);
	pthread_mutex_unlock(&w->tree->lock);
	if (!yes)
		w->outcome->action = FCOPY_ACTION_SKIPPED;
	return yes;
}

/* A mirror replaces an entry of another type. A new entry is renamed over what is no directory;
 * what no rename replaces goes first, and returns if the entry cannot be made. */
static bool displace_clear(struct worker *w, const struct entry *e, struct displaced *d)
{
	struct tree *t = w->tree;
	const bool written = t->options->attributes_only || in_place_possible(&w->options);
	struct stat old;
	if (!t->options->dry_run && !displace_may(w, e))
		return false;
	d->asked = true;
	if (fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISDIR(old.st_mode) && !written &&
	     (t->options->dry_run ||
	      storage_can(t->storage, e->dir->dst, STORAGE_REPLACES_FILES)))) {
		const bool shared = rivals_share(t, e);
		if (shared)
			rivals_report(w, e);
		return !shared;
	}
	return mirror_clear(w, e, &d->cleared) == 0;
}

bool displace_begin(struct worker *w, const struct entry *e, struct displaced *d)
{
	struct decision *is = &w->decision;
	const char *call;
	*d = (struct displaced){.linked = false};
	if ((is->clears || is->asks) && !w->tree->options->dry_run)
		place_close(&w->place); /* it is looked up again after that */
	if (is->clears)
		return displace_clear(w, e, d);
	if (w->tree->options->dry_run)
		return true;
	if (is->asks && !displace_may(w, e))
		return false;
	d->asked = is->asks;
	int r = is->backup ? displace_back_up(w, e, d, &call) : 0;
	if (r < 0)
		displace_refuse(w, e, call, r);
	if (r == 0 && d->moved) { /* the copy is a new file */
		place_close(&w->place);
		is->seen = NULL;
		is->replaces = false;
	}
	return r >= 0;
}
