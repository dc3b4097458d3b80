/* SPDX-License-Identifier: MIT
 * options.symbolic_link: an entry of DST becomes a symlink to its source.
 */
#define _GNU_SOURCE
#include "aside.h"
#include "displace.h"
#include "hard_link.h"
#include "report.h"
#include "rivals.h"
#include "seen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A relative path leads to the source from the current directory only. */
static bool symbolic_link_leads(const struct entry *e, const char *target)
{
	struct stat here, there;
	return target[0] == '/' || (stat(".", &here) == 0 && fstat(e->dir->dst, &there) == 0 &&
				    here.st_dev == there.st_dev && here.st_ino == there.st_ino);
}

/* The symlink would lead to itself. */
static bool symbolic_link_is_source(const struct entry *e)
{
	struct stat src, dst;
	return strcmp(e->name, e->as) == 0 && fstat(e->dir->src, &src) == 0 &&
	       fstat(e->dir->dst, &dst) == 0 && src.st_dev == dst.st_dev &&
	       src.st_ino == dst.st_ino;
}

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

/* Why no symlink can be made, reported. */
static bool symbolic_link_is_refused(struct worker *w, const struct entry *e, const char *target,
				     size_t size, const struct stat *st, const struct stat *old)
{
	if (strlen(target) >= size - 1)
		report_call(w, e, "symlink", entry_dst, ENAMETOOLONG);
	else if (!symbolic_link_leads(e, target))
		report_unsuitable(
		    w, e, entry_dst, EINVAL,
		    "would not lead to SRC: with -s, use an absolute SRC, or copy into "
		    "the current directory");
	else if (symbolic_link_is_source(e) ||
		 (old && old->st_dev == st->st_dev && old->st_ino == st->st_ino))
		report_unsuitable(w, e, entry_dst, EINVAL, "is SRC itself");
	else
		return false;
	return true;
}

/* Returns false if something else than was seen has the name. */
static bool symbolic_link_make_once(struct worker *w, const struct entry *e, const struct stat *st)
{
	const char *call = "symlink";
	char target[PATH_MAX];
	struct stat old;
	entry_path(e, true, target, sizeof(target));
	const bool exists = fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (symbolic_link_is_refused(w, e, target, sizeof(target), st, exists ? &old : NULL))
		return true;
	if (exists && w->options.no_clobber) {
		w->outcome->action = FCOPY_ACTION_SKIPPED;
		return true;
	}
	if (!seen_is(w, e, exists ? &old : NULL))
		return false;
	const bool replace = exists &&
			     (w->clears || displace_replaces_by_link(w->tree, e, st, &old));
	if (w->tree->options->dry_run) {
		if (exists && !replace)
			report_call(w, e, "symlink", entry_dst, EEXIST);
		else if (exists && S_ISDIR(old.st_mode) && !w->clears)
			report_call(w, e, "rename", entry_dst, EISDIR);
		w->outcome->type = S_IFLNK;
		return true;
	}
	rivals_lock(w->tree);
	const bool rival = replace && !w->options.force && !displace_replaces(w->tree) &&
			   rivals_have(w->tree, e->dir->dst, e->as);
	int r = rival ? ENDPOINT_RIVAL : symbolic_link_place(w, e, target, st, replace, &call);
	if (r == 0)
		(void)rivals_claim(w->tree, e->dir->dst, e->as); /* it is new */
	rivals_unlock(w->tree);
	if (rival)
		rivals_report(w, e);
	else if (r == SEEN_ANOTHER || (r == -EEXIST && !exists && w->seen.asked))
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
	while (!symbolic_link_make_once(w, e, st) && seen_again(w, e, -1, st, tries++))
		;
}
