/* SPDX-License-Identifier: MIT
 * One more name for a file that was copied.
 */
#define _GNU_SOURCE
#include "resume.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool hard_link_is_symlink(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* May the link replace what has this name in an existing tree? A file only where a copy might:
 * every check of destination_open_in applies. */
static bool hard_link_may_replace(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct endpoint src = {.fd = -1, .path = entry_src, .st = *st}, dst;
	struct fcopy_error error;
	struct fcopy_options options = w->options;
	options.resume = false; /* only a check: no part is opened, and no file overwritten */
	options.in_place = FCOPY_WHEN_NEVER;
	if (w->options.no_clobber || !w->tree->atomic)
		return false;
	if (!S_ISREG(st->st_mode)) /* as special_copy */
		return !special_is_source(e, st);
	if (destination_open_in(&dst, e->dir->dst, e->as, entry_dst, &src, &options, true,
				&w->tree->storage, &error))
		return false;
	dst.ops->abort(&dst);
	return true;
}

static int hard_link_create(int from, const char *name, int to, const char *as, const char **call)
{
	*call = "linkat";
	return linkat(from, name, to, as, 0) < 0 ? -errno : 0;
}

static int hard_link_replace(int from, const char *name, int to, const char *as, const char **call)
{
	char drawn[TEMPORARY_SIZE];
	*call = "getrandom";
	int r = temporary_draw(drawn);
	if (r < 0 || (r = hard_link_create(from, name, to, drawn, call)) < 0)
		return r;
	*call = "rename";
	r = renameat(to, drawn, to, as) < 0 ? -errno : 0;
	unlinkat(to, drawn, 0); /* rename(2) of two names of one file does nothing */
	return r;
}

static bool hard_link_is_made(int from, const char *name, int to, const char *as)
{
	struct stat a, b;
	return fstatat(from, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(to, as, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int hard_link_make(struct worker *w, const struct entry *e, const struct stat *st,
		   const struct directory *dir, const char *name, const char **call)
{
	int from = dir == e->dir ? e->dir->dst : directory_reopen(dir), to = e->dir->dst;
	*call = "open";
	if (from < 0)
		return from;
	if (w->tree->options->update && hard_link_is_made(from, name, to, e->as)) {
		if (dir != e->dir)
			close(from);
		return HARD_LINK_SAME;
	}
	bool merges = rivals_possible(w->tree);
	/* The copy may be of an earlier operand, which was merged. */
	bool followed = S_ISREG(st->st_mode) &&
			(hard_link_is_symlink(from, name) ||
			 (merges && !w->options.no_clobber && hard_link_is_symlink(to, e->as)));
	int r = followed ? -ELOOP : hard_link_create(from, name, to, e->as, call);
	if (r == -EEXIST && w->tree->resume && remove_entry(to, e->as) == 0)
		r = hard_link_create(from, name, to, e->as, call);
	rivals_lock(w->tree);
	if (r == -EEXIST && rivals_have(w->tree, to, e->as))
		r = -ENOTUNIQ;
	if (r == -EEXIST && (w->tree->shard || hard_link_may_replace(w, e, st)))
		r = rivals_claim(w->tree, to, e->as) < 0
			? -ENOTUNIQ
			: hard_link_replace(from, name, to, e->as, call);
	rivals_unlock(w->tree);
	/* A directory of an interrupted attempt. */
	if (r == -EISDIR && w->tree->shard && remove_entry(to, e->as) == 0)
		r = hard_link_create(from, name, to, e->as, call);
	if (dir != e->dir)
		close(from);
	return r;
}

bool hard_link_is_failure(int err)
{
	return err == EIO || err == ENOSPC || err == EDQUOT || err == ENOMEM || err == EROFS ||
	       err == EMFILE || err == ENFILE;
}
