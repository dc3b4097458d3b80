/* SPDX-License-Identifier: MIT
 * Where another user can exchange the names in a directory, mkdir(2), mknod(2) and symlink(2) are
 * unsafe: they return no descriptor, and the name that they made may lead to another inode when it
 * is opened. There an entry is made in a private directory, which no other user can enter, and
 * renamed when its owner and mode are set.
 *
 * Each thread has one private directory at a time. It lasts until the thread has finished its item
 * of the pool, so that the names of one item share it.
 */
#define _GNU_SOURCE
#include "aside.h"
#include "displace.h"
#include "endpoints/exchange.h"
#include "facts.h"
#include "io/libc.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where directories cannot be renamed, nothing can be made aside. */
static bool aside_is_shared(struct tree *t, struct directory *d)
{
	struct stat st;
	if (d->sharing == SHARING_UNKNOWN)
		d->sharing = fstat(d->dst, &st) < 0 || private_is_shared(&st) ? SHARING_LIKELY
									      : SHARING_NONE;
	if (d->sharing == SHARING_LIKELY)
		d->sharing = storage_can(t->storage, d->dst, STORAGE_RENAMES_DIRECTORIES)
				 ? SHARING_OTHERS
				 : SHARING_NONE;
	return d->sharing == SHARING_OTHERS;
}

bool aside_is_needed(struct tree *t, struct directory *d)
{
	return t->root.ground.foreign &&
	       aside_is_shared(t, d); /* others are below a private directory */
}

bool aside_may_move(struct tree *t, struct directory *d)
{
	const struct stat *st = &d->st;
	/* The new tree of an earlier operand is no longer private. */
	if (!t->root.ground.foreign && !t->several)
		return false;
	/* A symlink may have led to it: then other directories are on the way to it. */
	if (t->options->keep_directory_symlink)
		return true;
	/* When it is complete, a directory gets the owner and mode of its source. */
	if (d->parent &&
	    (st->st_mode & 022 || ((t->options->copy.preserve & FCOPY_ATTR_OWNERSHIP) &&
				   st->st_uid != 0 && st->st_uid != geteuid())))
		return true;
	for (; d; d = d->parent)
		if (aside_is_shared(t, d))
			return true;
	return false;
}

int aside_begin(struct worker *w, const struct entry *e, struct making *m, const char **call)
{
	char path[PATH_MAX];
	*m = (struct making){.dir = e->dir->dst, .name = e->as};
	if (!aside_is_needed(w->tree, e->dir))
		return 0;
	if (w->aside_of != e->dir) {
		aside_end(w);
		int r = private_make(&w->aside, e->dir->dst, call);
		if (r < 0)
			return r;
		w->aside_of = e->dir;
		if (w->aside.exposed) {
			entry_path(e, false, path, sizeof(path));
			report_not_private(w->tree, path);
		}
	}
	*m = (struct making){.dir = w->aside.fd, .name = PRIVATE_ENTRY, .aside = true};
	return 0;
}

/* NFS and others lack RENAME_NOREPLACE. rename(2) would replace a file then, and of directories
 * only an empty one. */
static int aside_rename_new(const struct making *m, const struct entry *e, const char **call)
{
	struct stat st;
	*call = "rename";
	if (renameat2(m->dir, m->name, e->dir->dst, e->as, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (fstatat(m->dir, m->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		if (renameat(m->dir, m->name, e->dir->dst, e->as) == 0)
			return 0;
		return errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
	}
	*call = "linkat";
	if (linkat(m->dir, m->name, e->dir->dst, e->as, 0) < 0)
		return -errno;
	unlinkat(m->dir, m->name, 0);
	return 0;
}

int aside_finish(struct worker *w, const struct making *m, const struct entry *e, bool replace,
		 const char **call)
{
	const struct stat *old = w->decision.seen;
	if (!m->aside)
		return 0;
	if (!replace)
		return aside_rename_new(m, e, call);
	*call = "rename";
	int r = !old ? renameat(m->dir, m->name, e->dir->dst, e->as) < 0 ? -errno : 0
		     : exchange_over(m->dir, m->name, e->dir->dst, e->as, old,
				     displace_only(w->tree));
	if (r == EXCHANGE_ANOTHER)
		return displace_another(w, e, m->dir, m->name, call);
	if (old)
		return r == -EEXIST ? SEEN_ANOTHER : r;
	/* rename(2) of two names of one file does nothing. */
	if (r == 0)
		unlinkat(m->dir, m->name, 0);
	return r;
}

void aside_abort(const struct making *m, int r)
{
	/* ENOTRECOVERABLE: it is what had the name, and not what was made. */
	if (m->aside && r != -ENOTRECOVERABLE && unlinkat(m->dir, m->name, 0) < 0 &&
	    errno == EISDIR)
		unlinkat(m->dir, m->name, AT_REMOVEDIR);
}

bool aside_is_refused(const struct making *m, const struct entry *e, int r)
{
	if (!m->aside || r != -EXDEV || geteuid() == 0)
		return false;
	aside_abort(m, r);
	e->dir->sharing = SHARING_NONE;
	return true;
}

void aside_end(struct worker *w)
{
	if (!w->aside_of)
		return;
	private_end(&w->aside);
	w->aside_of = NULL;
}
