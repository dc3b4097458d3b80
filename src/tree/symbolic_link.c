/* SPDX-License-Identifier: MIT
 * options.symbolic_link: an entry of DST becomes a symlink to its source.
 */
#define _GNU_SOURCE
#include "aside.h"
#include "displace.h"
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

/* It gets the times and the owner of the source; its other attributes are those of its target.
 * Returns 0, or -errno with the call; NULL: reported. */
static int symbolic_link_set(struct worker *w, const struct entry *e, const struct making *m,
			     const struct stat *st, const char **call)
{
	const unsigned which = FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_OWNERSHIP;
	struct stat as_link = *st;
	if (!(w->options.preserve & which))
		return 0;
	const struct xattr_file dst = {
	    .fd = openat(m->dir, m->name, O_PATH | O_NOFOLLOW | O_CLOEXEC), .by_path = true};
	*call = "open";
	if (dst.fd < 0)
		return -errno;
	as_link.st_mode = S_IFLNK | 0777;
	*call = NULL;
	int r = preserve_entry(w, e, &(struct xattr_file){.fd = -1}, &dst, &as_link, which);
	close(dst.fd);
	return r;
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
	r = symbolic_link_set(w, e, &m, st, call);
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
