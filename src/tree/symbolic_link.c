/* SPDX-License-Identifier: MIT
 * options.symbolic_link: an entry of DST becomes a symlink to its source.
 */
#define _GNU_SOURCE
#include "aside.h"
#include "displace.h"
#include "facts.h"
#include "hard_link.h"
#include "report.h"
#include "rivals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A symlink has a time and an owner; it has no mode, and its attributes are those of its target. */
static int symbolic_link_set(struct worker *w, const struct making *m, const struct stat *st,
			     const char **call)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	const unsigned preserve = w->options.preserve;
	*call = "fchownat";
	if (preserve & FCOPY_ATTR_OWNERSHIP &&
	    fchownat(m->dir, m->name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    (errno != EPERM || geteuid() == 0) && w->options.preserve_required)
		return -errno;
	*call = "utimensat";
	if (preserve & FCOPY_ATTR_TIMESTAMPS &&
	    utimensat(m->dir, m->name, times, AT_SYMLINK_NOFOLLOW) < 0 &&
	    w->options.preserve_required & FCOPY_ATTR_TIMESTAMPS)
		return -errno;
	return 0;
}

/* Makes the symlink, under a drawn name if it is to replace an entry. Returns 0 or -errno with the
 * call. */
static int symbolic_link_place(struct worker *w, const struct entry *e, const char *target,
			       const struct stat *st, bool replace, const char **call)
{
	char drawn[TEMPORARY_SIZE];
	struct making m;
	int r = aside_begin(w, e, &m, call);
	if (r == 0 && replace && !m.aside) {
		m = (struct making){.dir = e->dir->dst, .name = drawn, .aside = true};
		*call = "getrandom";
		r = temporary_draw(drawn);
	}
	if (r < 0)
		return r;
	*call = "symlink";
	if (symlinkat(target, m.dir, m.name) < 0)
		return -errno;
	r = symbolic_link_set(w, &m, st, call);
	if (r == 0)
		r = aside_finish(w, &m, e, replace, call);
	if (r != 0)
		aside_abort(&m, r);
	return aside_is_refused(&m, e, r) ? symbolic_link_place(w, e, target, st, replace, call)
					  : r;
}

/* Returns false if something else than was looked at has the name. */
static bool symbolic_link_make_once(struct worker *w, const struct entry *e, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const bool replace = w->decision.replaces;
	const char *call = "symlink";
	char target[PATH_MAX];
	entry_path(e, true, target, sizeof(target));
	rivals_lock(w->tree);
	const bool rival = replace && !o->copy.force && !decide_replaces(o) &&
			   rivals_have(w->tree, e->dir, e->as);
	int r = rival ? ENDPOINT_RIVAL : symbolic_link_place(w, e, target, st, replace, &call);
	if (r == 0)
		(void)rivals_claim(w->tree, e); /* it is new */
	rivals_unlock(w->tree);
	if (rival)
		rivals_report(w, e);
	else if (r == SEEN_ANOTHER || (r == -EEXIST && facts_are_old(w)))
		return false;
	else if (r < 0)
		report_call(w, e, call, entry_dst, -r);
	else
		w->outcome->type = S_IFLNK;
	return true;
}

void symbolic_link_make(struct worker *w, const struct entry *e, const struct stat *st)
{
	int tries = 0;
	while (!symbolic_link_make_once(w, e, st) && facts_again(w, e, -1, st, tries++))
		;
}
