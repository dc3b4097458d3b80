/* SPDX-License-Identifier: MIT
 * Implements displace.h.
 */
#define _GNU_SOURCE
#include "displace.h"
#include "endpoints/error.h"
#include "part/private.h"
#include "report.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES 100 /* each fails if another process makes the backup of this number first */

/* The highest N of all NAME.~N~ in the directory; 0: none; or -errno with the call. */
static long displace_highest(int dir, const char *name, const char **call)
{
	_Alignas(8) char buffer[READER_SIZE];
	const size_t length = strlen(name);
	struct reader r = reader_open(dir, buffer, sizeof(buffer));
	long highest = 0;
	for (const char *other; (other = reader_next(&r));) {
		char *end;
		const char *digits = other + length + 2;
		if (strncmp(other, name, length) != 0 || strncmp(other + length, ".~", 2) != 0 ||
		    *digits < '1' || *digits > '9')
			continue;
		long n = strtol(digits, &end, 10);
		if (strcmp(end, "~") == 0 && n > highest && n < 1000000000)
			highest = n;
	}
	*call = r.fd < 0 ? "open of its directory" : r.call;
	const int err = reader_close(&r);
	return err < 0 ? err : highest; /* an unread name may be an older backup */
}

/* Returns 0 or -errno with the call. */
static int displace_name(const struct tree *t, const struct entry *e, char name[NAME_MAX + 1],
			 bool *numbered, const char **call)
{
	const char *suffix = t->options->backup_suffix ? t->options->backup_suffix : "~";
	long n = 0;
	if (t->options->backup != FCOPY_BACKUP_SIMPLE)
		n = displace_highest(e->dir->dst, e->as, call);
	if (n < 0)
		return (int)n;
	*call = "backup";
	*numbered = t->options->backup == FCOPY_BACKUP_NUMBERED || n > 0;
	int length = *numbered ? snprintf(name, NAME_MAX + 1, "%s.~%ld~", e->as, n + 1)
			       : snprintf(name, NAME_MAX + 1, "%s%s", e->as, suffix);
	return length > NAME_MAX ? -ENAMETOOLONG : 0;
}

/* Is the backup the source? It would be lost. */
static bool displace_is_source(const struct entry *e, const char *name)
{
	struct stat src, old;
	return fstatat(e->dir->src, e->name, &src, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(e->dir->dst, name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
	       src.st_dev == old.st_dev && src.st_ino == old.st_ino;
}

/* By a link, so that the entry keeps its own name until the copy replaces it; where links are
 * impossible, by a rename. An older simple backup is replaced; if another process has just made the
 * numbered one, returns -EEXIST with a call. */
static int displace_once(const struct worker *w, const struct entry *e, struct displaced *d,
			 const char **call)
{
	char drawn[TEMPORARY_SIZE];
	bool numbered = false;
	const int dir = e->dir->dst;
	int r = displace_name(w->tree, e, d->name, &numbered, call);
	if (r < 0)
		return r;
	if (displace_is_source(e, d->name)) {
		*call = NULL;
		return -EEXIST;
	}
	*call = "linkat";
	if (linkat(dir, e->as, dir, d->name, 0) == 0) {
		d->linked = true;
		return 0;
	}
	if (errno == EEXIST && numbered)
		return -EEXIST;
	if (errno == EEXIST && temporary_draw(drawn) == 0 &&
	    linkat(dir, e->as, dir, drawn, 0) == 0) {
		*call = "renameat";
		if (renameat(dir, drawn, dir, d->name) == 0) {
			unlinkat(dir, drawn,
				 0); /* if both were links of one file, it is still there */
			d->linked = true;
			return 0;
		}
		r = -errno;
		unlinkat(dir, drawn, 0);
		return r;
	}
	*call = "renameat";
	if (numbered)
		r = private_rename(dir, e->as, dir, d->name);
	else
		r = renameat(dir, e->as, dir, d->name) < 0 ? -errno : 0;
	d->moved = r == 0;
	return r;
}

static int displace_back_up(const struct worker *w, const struct entry *e, struct displaced *d,
			    const char **call)
{
	int r = -EEXIST;
	for (int tries = 0; tries < TRIES && r == -EEXIST; tries++)
		if ((r = displace_once(w, e, d, call)) < 0 && !*call)
			break;
	return r;
}

static int displace_refuse(struct worker *w, const struct entry *e, const char *call, int r)
{
	if (call)
		return report_call(w, e, call, entry_dst, -r);
	return report_refusal(w, e, entry_dst, -r, "its backup would replace SRC");
}

bool displace_replaces_by_link(const struct tree *t, const struct entry *e, const struct stat *src,
			       const struct stat *old)
{
	const struct fcopy_tree_options *o = t->options;
	if (o->copy.force || displace_replaces(t))
		return true;
	return !S_ISDIR(old->st_mode) &&
	       ((!e->follow && !S_ISREG(src->st_mode)) || (o->hard_links && old->st_nlink > 1));
}

bool displace_replaces_source(const struct tree *t, const struct entry *e)
{
	struct stat src, dst;
	/* A symlink in the source would lead to the copy. */
	if (!displace_replaces(t) || t->options->link || t->options->symbolic_link ||
	    fstatat(e->dir->src, e->name, &src, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(src.st_mode))
		return false;
	if (t->options->backup && t->options->copy.force)
		return true;
	return strcmp(e->name, e->as) != 0 ||
	       (fstat(e->dir->src, &src) == 0 && fstat(e->dir->dst, &dst) == 0 &&
		(src.st_dev != dst.st_dev || src.st_ino != dst.st_ino));
}

/* Would the entry replace itself? The copy reports that. */
static bool displace_is_same(const struct tree *t, const struct entry *e, const struct stat *old)
{
	struct stat src;
	return !(S_ISREG(old->st_mode) && displace_replaces_source(t, e)) &&
	       fstatat(e->dir->src, e->name, &src, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0 &&
	       src.st_dev == old->st_dev && src.st_ino == old->st_ino;
}

int displace_begin(struct worker *w, const struct entry *e, struct displaced *d)
{
	const struct fcopy_tree_options *o = w->tree->options;
	struct stat old;
	const char *call;
	char path[PATH_MAX];
	*d = (struct displaced){.linked = false};
	if (o->dry_run || (!o->confirm && !o->backup) || e->dir->state != DIRECTORY_OLD ||
	    w->options.no_clobber || fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0 ||
	    S_ISDIR(old.st_mode) || displace_is_same(w->tree, e, &old))
		return 0;
	entry_path(e, false, path, sizeof(path));
	if (o->confirm) {
		pthread_mutex_lock(&w->tree->lock);
		bool yes = o->confirm(w->tree->options->copy.user, path);
		pthread_mutex_unlock(&w->tree->lock);
		if (!yes) {
			w->sum.count[FCOPY_COUNT_SKIPPED]++;
			w->done.action = FCOPY_ACTION_SKIPPED;
			return 1;
		}
	}
	int r = o->backup ? displace_back_up(w, e, d, &call) : 0;
	return r < 0 ? displace_refuse(w, e, call, r) : 0;
}

void displace_end(const struct entry *e, const struct displaced *d, int result)
{
	const int dir = e->dir->dst;
	if (result >= 0)
		return;
	if (d->moved)
		(void)!renameat2(dir, d->name, dir, e->as, RENAME_NOREPLACE);
	/* --inplace=auto has removed the entry where no rename can replace it. */
	else if (d->linked && (linkat(dir, d->name, dir, e->as, 0) == 0 || errno == EEXIST))
		unlinkat(dir, d->name, 0);
}
