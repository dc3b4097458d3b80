/* SPDX-License-Identifier: MIT
 * Implements displace.h.
 */
#include "displace.h"
#include "endpoints/error.h"
#include "endpoints/slot.h"
#include "io/io.h"
#include "io/system.h"
#include "namesakes.h"
#include "report.h"
#include "rivals.h"
#include "source/filter.h"
#include "source/reader.h"
#include "spelling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of a backup whose name is `other`; 0: it is none of `name`. */
static long displace_number(const char *other, const char *name, size_t length)
{
	char *end;
	if (strncmp(other, name, length) != 0 || strncmp(other + length, ".~", 2) != 0)
		return 0;
	const char *digits = other + length + 2;
	if (*digits < '1' || *digits > '9')
		return 0;
	const long n = strtol(digits, &end, 10);
	return strcmp(end, "~") == 0 && n < 1000000000 ? n : 0;
}

/* The highest N of all NAME.~N~ in the directory; 0: none; or -errno with the call. */
static long displace_search(int dir, const char *name, struct failure *fail)
{
	_Alignas(8) char buffer[READER_SIZE];
	const size_t length = strlen(name);
	struct reader r = reader_open(dir, buffer, sizeof(buffer));
	long highest = 0;
	for (const char *other; (other = reader_next(&r));) {
		const long n = displace_number(other, name, length);
		highest = n > highest ? n : highest;
	}
	fail_at(fail, r.fd < 0 ? "open of its directory" : r.call);
	const int err = reader_close(&r);
	return err < 0 ? err : highest; /* an unread name may be an older backup */
}

/* The highest number of a backup, or -errno with the call. The list that the directory had before
 * is searched first: many files of one directory then take time in proportion to their number.
 * again: another process has made a backup since. */
static long displace_highest(const struct entry *e, bool again, struct failure *fail)
{
	const struct name_list *list = again ? NULL : namesakes_list(e->dir);
	char from[NAME_MAX + 3];
	const size_t length = strlen(e->as);
	long highest = 0;
	if (!list || !list->name)
		return displace_search(e->dir->dst, e->as, fail);
	snprintf(from, sizeof(from), "%s.~", e->as);
	for (size_t i = names_from(list, from);
	     i < list->count && strncmp(list->name[i], from, length + 2) == 0; i++) {
		const long n = displace_number(list->name[i], e->as, length);
		highest = n > highest ? n : highest;
	}
	return highest;
}

/* Does the name belong to this run: has SRC an entry of that name, whether its turn comes before or
 * after this one, or is it the copy of an earlier SRC, the backup of another entry, or a log? *met:
 * which file has it in DST; 0: none. *source: it is SRC itself, which would be lost. */
static bool displace_is_taken(const struct displaced *d, const char *name, ino_t *met, bool *source)
{
	const struct worker *w = d->worker;
	const struct entry *e = d->entry;
	struct tree *t = w->tree;
	const struct stat *src = &w->work.facts.src;
	const struct entry named = ENTRY(e->dir, name);
	struct stat st;
	char path[PATH_MAX];
	const bool there = fstatat(e->dir->dst, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	*met = there ? st.st_ino : 0;
	*source = there && same_inode(src, &st);
	if (there &&
	    (inodes_has(&t->claims.set[SET_BACKUPS], &st) || rivals_made_as(t, e->dir, name, &st) ||
	     spelling_is_begun(t, e->dir, name) || same_output(&t->options->copy, &st)))
		return true;
	if (t->root.ground.single || fstatat(e->dir->src, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	entry_path_below(&named, path, sizeof(path));
	return !t->filter || !filter_excludes(t->filter, path, S_ISDIR(st.st_mode));
}

/* Chooses a name that no copy of this run has: with simple backups, one more suffix is added for
 * each that a copy has. Returns 0 or -errno with the call; NULL: the name is that of SRC. */
static int displace_choose(struct backup *b, bool again, struct failure *fail)
{
	const struct displaced *d = b->arg;
	const struct entry *e = d->entry;
	const struct fcopy_tree_options *o = d->worker->tree->options;
	const char *suffix = o->backup_suffix ? o->backup_suffix : "~";
	char before[NAME_MAX + 1];
	bool source;
	long n = 0;
	if (o->backup != FCOPY_BACKUP_SIMPLE)
		n = displace_highest(e, again, fail);
	if (n < 0)
		return (int)n;
	b->numbered = o->backup == FCOPY_BACKUP_NUMBERED || n > 0;
	snprintf(b->name, sizeof(b->name), "%s", e->as);
	do {
		strcpy(before, b->numbered ? e->as : b->name);
		const int length = b->numbered
				       ? snprintf(b->name, sizeof(b->name), "%s.~%ld~", before, ++n)
				       : snprintf(b->name, sizeof(b->name), "%s%s", before, suffix);
		if (length > NAME_MAX)
			return fail_if(fail, -ENAMETOOLONG, "backup");
	} while (displace_is_taken(d, b->name, &b->met, &source));
	return source ? fail_if(fail, -EEXIST, NULL) : 0;
}

/* During the commit, under the lock. Another process has made the name that of SRC: that stays. */
static int displace_choose_again(struct backup *b, struct failure *fail)
{
	const int r = displace_choose(b, true, fail);
	return r == -EEXIST ? fail_if(fail, -EBUSY, "backup") : r;
}

/* No other entry may have its name, or replace it. */
static int displace_note(struct backup *b, const struct stat *st)
{
	struct tree *t = ((const struct displaced *)b->arg)->worker->tree;
	const int r = inodes_add(&t->claims.set[SET_BACKUPS], st);
	if (r < 0)
		tree_stop(t, -r);
	return r < 0 ? r : 0;
}

/* In a sticky directory, this user could not remove a link to another user's entry. */
static bool displace_would_stay(const struct worker *w, int dir)
{
	struct stat st;
	const uid_t user = geteuid();
	return user != 0 && w->work.facts.exists && w->work.facts.old.st_uid != user &&
	       fstatat(dir, ".", &st, 0) == 0 && st.st_mode & S_ISVTX && st.st_uid != user;
}

/* Chooses the name before the first byte. Two entries may want one name: the commit gives it to the
 * first, and chooses again for the other. */
static int displace_prepare(struct worker *w, const struct entry *e, struct displaced *d,
			    struct failure *fail)
{
	struct tree *t = w->tree;
	d->worker = w;
	d->entry = e;
	d->backup = (struct backup){.keeps_another = !t->options->confirm && !t->options->update,
				    .choose = displace_choose_again,
				    .note = displace_note,
				    .arg = d};
	if (t->options->backup != FCOPY_BACKUP_SIMPLE)
		(void)namesakes_list(e->dir); /* read now, and not while others wait */
	rivals_lock(t);
	int r = displace_choose(&d->backup, false, fail);
	rivals_unlock(t);
	return r == 0 && displace_would_stay(w, e->dir->dst) ? fail_if(fail, -EPERM, "renameat")
							     : r;
}

static void displace_refuse(struct worker *w, const struct entry *e, const char *call, int r)
{
	struct fcopy_error error;
	if (call)
		error_call(&error, call, entry_dst, -r);
	else
		error_refuse_operand(&error, entry_dst, -r, "its backup would replace SRC",
				     FCOPY_ADVICE_NONE);
	report_failure(w, e, &error);
}

/* The copy has its name, and the older backup, which has a drawn name, is not needed. */
static void displace_report_left(struct worker *w, const struct entry *e, const struct backup *b)
{
	char reason[sizeof("its older backup is left as ") + TEMPORARY_SIZE];
	struct fcopy_error error;
	snprintf(reason, sizeof(reason), "its older backup is left as %s", b->older);
	error_refuse(&error, entry_dst, b->left, reason, FCOPY_ADVICE_NONE);
	report_warning(w, e, &error);
}

/* An entry of DST has another type than its source. */

static int displace_return(const struct entry *e, struct cleared *c)
{
	return c->aside ? old_return(&c->old, e->as)
			: private_rename(e->dir->dst, c->name, e->dir->dst, e->as);
}

/* Takes the name of the entry away. Where a directory cannot be renamed into another one, it gets a
 * drawn name: if the process is killed then, nothing shows to whom it belongs, and it stays.
 * Returns 0, RESULT_UNFIT, or -errno, reported. */
static int displace_rename(struct worker *w, const struct entry *e, struct cleared *c)
{
	const int dir = e->dir->dst;
	struct stat before, now;
	struct failure fail;
	if (fstatat(dir, e->as, &before, AT_SYMLINK_NOFOLLOW) < 0)
		return RESULT_UNFIT;
	c->aside = old_take(&c->old, dir, e->as) == 0;
	if (c->aside)
		strcpy(c->name, c->old.at.name);
	else if (slot_displace(dir, e->as, false, c->name, &fail) < 0) {
		c->name[0] = '\0';
		return RESULT_UNFIT;
	}
	const int at = c->aside ? c->old.fd : dir;
	if (fstatat(at, c->aside ? e->as : c->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !((now.st_mode ^ before.st_mode) & S_IFMT) &&
	    (now.st_ino == before.st_ino || !system_has(dir, SYSTEM_LOCAL)))
		return 0;
	(void)!displace_return(e, c);
	if (c->aside)
		old_end(&c->old);
	c->name[0] = '\0';
	return report_refusal(w, e, entry_dst, ESTALE, "was replaced during the run: not removed");
}

int displace_clear(struct worker *w, const struct entry *e, struct cleared *c)
{
	struct tree *t = w->tree;
	*c = (struct cleared){.aside = false};
	if (rivals_share(t, e))
		return rivals_report(w, e);
	const int may = mirror_may_remove(w, e);
	if (may < 0)
		return may;
	/* Another entry may have found it right, or entered it, since decide() was asked. */
	if (spelling_claim(w, e) ||
	    (w->work.facts.exists && !rivals_claim(t, e, &w->work.facts.old)))
		return rivals_report(w, e);
	c->claimed = w->work.facts.exists;
	const int r = t->options->dry_run ? RESULT_UNFIT : displace_rename(w, e, c);
	return r == RESULT_UNFIT ? mirror_remove_cleared(w, e, e->dir->dst, e->as) : r;
}

/* Is it gone, or has it its name again? */
static bool displace_is_away(struct worker *w, const struct entry *e, struct cleared *c, bool made)
{
	struct stat st;
	if (!made) {
		const bool free = fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
				  errno == ENOENT;
		if (free && w->work.facts.exists)
			rivals_give_back(w->tree, &w->work.facts.old);
		return free && displace_return(e, c) == 0;
	}
	return mirror_remove_cleared(w, e, c->aside ? c->old.fd : e->dir->dst,
				     c->aside ? e->as : c->name) == 0;
}

void displace_clear_end(struct worker *w, const struct entry *e, struct cleared *c, bool made)
{
	char reason[sizeof("was replaced, but its earlier directory or file is left as ") +
		    TEMPORARY_SIZE];
	if (!c->name[0])
		return;
	const bool away = displace_is_away(w, e, c, made);
	if (c->aside)
		old_end(&c->old);
	if (away)
		return;
	snprintf(reason, sizeof(reason),
		 "was replaced, but its earlier directory or file is left as %s", c->name);
	report_refusal(w, e, entry_dst, EBUSY, reason);
}

void displace_end(struct worker *w, const struct entry *e, struct displaced *d, bool made)
{
	displace_clear_end(w, e, &d->cleared, made);
	if (d->backup.left)
		displace_report_left(w, e, &d->backup);
}

bool displace_may(struct worker *w, const struct entry *e)
{
	const struct fcopy_tree_options *o = w->tree->options;
	char path[PATH_MAX];
	if (!o->confirm)
		return true;
	entry_path(e, false, path, sizeof(path));
	pthread_mutex_lock(&w->tree->lock);
	const bool yes = o->confirm(o->copy.user, path);
	pthread_mutex_unlock(&w->tree->lock);
	if (!yes)
		w->work.outcome.action = FCOPY_ACTION_SKIPPED;
	return yes;
}

/* A mirror replaces an entry of another type. A new entry is renamed over what is no directory;
 * what no rename replaces goes first, and returns if the entry cannot be made. */
static bool displace_type(struct worker *w, const struct entry *e, struct displaced *d)
{
	struct tree *t = w->tree;
	const bool written = t->options->attributes_only || in_place_possible(&w->options);
	struct stat old;
	if (!t->options->dry_run && !displace_may(w, e))
		return false;
	if (fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISDIR(old.st_mode) && !written &&
	     (t->options->dry_run ||
	      storage_can(t->known.storage, e->dir->dst, STORAGE_REPLACES_FILES)))) {
		const bool shared = rivals_share(t, e);
		if (shared)
			rivals_report(w, e);
		return !shared && (!t->options->max_delete || mirror_may_remove(w, e) == 0);
	}
	return displace_clear(w, e, &d->cleared) == 0;
}

bool displace_begin(struct worker *w, const struct entry *e, struct displaced *d)
{
	const struct decision *is = &w->work.decision;
	struct failure fail = {.call = "backup"};
	displace_none(d);
	if ((is->clears || is->asks) && !w->tree->options->dry_run)
		place_close(&w->work.place); /* it is looked up again after that */
	if (is->clears)
		return displace_type(w, e, d);
	if (w->tree->options->dry_run)
		return true;
	if (is->asks && !displace_may(w, e))
		return false;
	const int r = is->backup ? displace_prepare(w, e, d, &fail) : 0;
	if (r < 0)
		displace_refuse(w, e, fail.call, r);
	return r >= 0;
}
