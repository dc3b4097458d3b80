/* SPDX-License-Identifier: MIT
 * --link-dest: a file that is unchanged in an earlier copy becomes a hard link to that copy's file.
 */
#define _GNU_SOURCE
#include "link_dest.h"
#include "endpoints/equal.h"
#include "endpoints/error.h"
#include "endpoints/same.h"
#include "io/io.h"
#include "links.h"
#include "report.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Replaces *fd by its directory `name`; -1 after a warning if there is none. */
static void link_dest_enter_name(struct tree *t, const char *name, int *fd)
{
	char path[PATH_MAX];
	struct fcopy_error error = {
	    .err = ENOENT, .path = path, .reason = "does not exist: no file of this SRC is linked"};
	int below = openat(*fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0) {
		int n = snprintf(path, sizeof(path), "%s/%s", t->options->link_dest, name);
		if (errno != ENOENT || n >= PATH_MAX)
			error_call(&error, "open", n < PATH_MAX ? path : name, errno);
		report_operand_warning(t, &error);
	}
	close(*fd);
	*fd = below;
}

int link_dest_open(struct tree *t, int dst, const char *name, int *fd)
{
	const char *path = t->options->link_dest;
	struct stat st, other;
	*fd = -1;
	if (!path)
		return 0;
	*fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return tree_fail(t, "open", path, errno);
	if (fstat(*fd, &st) < 0 || fstat(dst, &other) < 0)
		return tree_fail(t, "fstat", path, errno);
	if (st.st_dev == other.st_dev) {
		if (name && t->destination.kind == OPERAND_INTO)
			link_dest_enter_name(t, name, fd);
		return 0;
	}
	return tree_refuse(t, path, EXDEV,
			   "is on another file system than DST: no file can be linked",
			   FCOPY_ADVICE_USAGE);
}

int link_dest_enter(const struct directory *parent, const char *name)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	return parent->link < 0 ? -1 : openat(parent->link, name, flags);
}

int link_dest_find(const struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct stat old;
	struct equal *equal = &w->tree->equal;
	int found = openat(e->dir->link, e->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (found < 0)
		return -1;
	if (fstat(found, &old) == 0 && S_ISREG(old.st_mode) && old.st_size == st->st_size &&
	    !same_output(&w->tree->options->copy, &old) && equal_times(equal, found, st, &old) &&
	    equal_attributes(
		equal, fd, st, found, &old,
		equal_preserves(equal, e->dir->dst, st, &old, w->tree->options->copy.preserve)))
		return found;
	close(found);
	return -1;
}

bool link_dest_is_made(struct worker *w, const struct entry *e, int fd)
{
	const struct facts *f = &w->facts;
	struct stat earlier;
	const int found = e->dir->link < 0 || fd < 0 ? -1 : link_dest_find(w, e, fd, &f->src);
	const bool made = found >= 0 && fstat(found, &earlier) == 0 &&
			  earlier.st_dev == f->old.st_dev && earlier.st_ino == f->old.st_ino;
	if (made && links_may_exist(w, &f->src)) /* another name may become a link to it */
		w->made = identity_of(found);
	if (found >= 0)
		close(found);
	if (made)
		rivals_note_linked(w, e, &f->old, false);
	return made;
}
