/* SPDX-License-Identifier: MIT
 * options.symbolic_link: an entry of DST becomes a symlink to its source.
 */
#define _GNU_SOURCE
#include "aside.h"
#include "facts.h"
#include "hard_link.h"
#include "preserve.h"
#include "report.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One that is being made. */
struct linking {
	struct worker *w;
	const struct entry *e;
	const struct stat *st;
	char target[PATH_MAX];
};

static int symbolic_link_create(int dir, const char *name, void *arg)
{
	const struct linking *l = arg;
	return symlinkat(l->target, dir, name) < 0 ? -errno : 0;
}

/* It gets the times and the owner of the source; its other attributes are those of its target.
 * *call NULL: reported. */
static int symbolic_link_complete(int dir, const char *name, void *arg, const char **call)
{
	const unsigned which = FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_OWNERSHIP;
	const struct linking *l = arg;
	struct stat as_link = *l->st;
	if (!(l->w->options.preserve & which))
		return 0;
	const struct xattr_file dst = {.fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC),
				       .by_path = true};
	*call = "open";
	if (dst.fd < 0)
		return -errno;
	as_link.st_mode = S_IFLNK | 0777;
	*call = NULL;
	int r = preserve_entry(l->w, l->e, &(struct xattr_file){.fd = -1}, &dst, &as_link, which);
	close(dst.fd);
	return r;
}

/* Returns false if something else than was looked at has the name. */
static bool symbolic_link_make_once(struct worker *w, const struct entry *e, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const bool replace = w->decision.replaces;
	const char *call = "symlink";
	struct linking l = {.w = w, .e = e, .st = st};
	const struct making m = {.call = "symlink",
				 .make = symbolic_link_create,
				 .complete = symbolic_link_complete,
				 .arg = &l};
	entry_path(e, true, l.target, sizeof(l.target));
	rivals_lock(w->tree);
	const bool rival = replace && !o->copy.force && !decide_replaces(o) &&
			   rivals_have(w->tree, e->dir, e->as);
	int r = rival ? ENDPOINT_RIVAL : aside_make(w, e, &m, replace, &call);
	if (r == 0)
		(void)rivals_claim(w->tree, e); /* it is new */
	rivals_unlock(w->tree);
	if (rival)
		rivals_report(w, e);
	else if (r == SEEN_ANOTHER || (r == -EEXIST && facts_are_old(w)))
		return false;
	else if (r < 0 && call)
		report_call(w, e, call, entry_dst, -r);
	else if (r == 0)
		w->outcome->type = S_IFLNK;
	return true;
}

void symbolic_link_make(struct worker *w, const struct entry *e, const struct stat *st)
{
	int tries = 0;
	while (!symbolic_link_make_once(w, e, st) && facts_again(w, e, -1, st, tries++))
		;
}
