/* SPDX-License-Identifier: MIT
 * Removes from a part what its source does not have any more.
 */
#define _GNU_SOURCE
#include "endpoints/replace.h"
#include "io/hash.h"
#include "opened.h"
#include "report.h"
#include "resume.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stale {
	struct worker *w;
	struct directory *d;
	int src;               /* -1: as if it were empty */
	bool unread;           /* nobody has read names from dst */
	unsigned listed, kept; /* names in dst; how many the source has, too */
	uint64_t sum, whole;   /* of hash_name() of each name in dst; without unfinished files */
	unsigned found; /* names of the source that exist in dst, perhaps listed in another case */
};

static bool has_name(int dir, const char *name)
{
	struct stat st;
	return dir >= 0 && (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT);
}

static void count_listed(struct stale *s, const char *name)
{
	s->listed++;
	s->kept += has_name(s->src, name);
}

static void count_found(struct stale *s, const char *name)
{
	s->found += has_name(s->d->dst, name);
}

static void remove_reported(struct stale *s, const char *name)
{
	int r = remove_entry(s->d->dst, name);
	if (r < 0)
		report_call(s->w, &(struct entry){.dir = s->d, .name = name, .as = name}, "remove",
			    entry_dst, -r);
}

static void remove_listed(struct stale *s, const char *name)
{
	if (!has_name(s->src, name))
		remove_reported(s, name);
}

/* Calls `take` for each name in an open directory. Returns 0 or -errno. A source
 * that was removed since has no names: getdents64(2) returns ENOENT then. */
static int take_names(struct stale *s, int open, void (*take)(struct stale *, const char *name))
{
	_Alignas(8) char buffer[8192];
	struct reader r = s->unread ? reader_of(open, buffer, sizeof(buffer))
				    : reader_open(open, buffer, sizeof(buffer));
	for (const char *name; (name = reader_next(&r));)
		take(s, name);
	const int err = reader_close(&r);
	return err == -ENOENT && open == s->d->src ? 0 : err;
}

/* A directory without a name lists nothing, whatever the source has under its name now. If the
 * source lacks the name, its parent directory removes the copy. */
static bool prune_may_compare(struct worker *w, struct directory *d)
{
	const struct entry e = {.dir = d, .name = "", .as = ""};
	if (opened_has_name(w->tree, d))
		return true;
	const int err = errno;
	if (opened_is_lacking(w->tree, d))
		return false;
	if (opened_is_gone(err))
		report_refusal(w, &e, entry_src, err,
			       "was moved, replaced or removed during the copy: an earlier copy of "
			       "what it had may be in the part");
	else
		report_call(w, &e, "stat", entry_src, err);
	__atomic_store_n(&w->tree->root.doubtful, true, __ATOMIC_RELAXED);
	return false;
}

static void prune_doubt(const struct stale *s)
{
	report_refusal(
	    s->w, &(struct entry){.dir = s->d, .name = "", .as = ""}, entry_src, EBUSY,
	    "got an entry during the copy; the part has an earlier copy under that name");
	__atomic_store_n(&s->w->tree->root.doubtful, true, __ATOMIC_RELAXED);
}

/* Each name was looked for once: the source may have got it just before, and lost another one. Its
 * times show it. Then it is unknown which copies in the part are of this run. */
static bool prune_may_be_old(const struct stale *s)
{
	struct stat now;
	const struct stat *then = &s->d->st;
	return s->src >= 0 && s->d->state == DIRECTORY_RESUMED && s->listed > s->d->present &&
	       __atomic_load_n(&s->w->tree->root.failures, __ATOMIC_RELAXED) == 0 &&
	       (fstat(s->src, &now) < 0 || !same_mtime(&now, then) ||
		now.st_ctim.tv_sec != then->st_ctim.tv_sec ||
		now.st_ctim.tv_nsec != then->st_ctim.tv_nsec);
}

void prune_directory(struct worker *w, struct directory *d)
{
	/* With one_file_system, nothing below a mount point is copied. */
	bool mounted = w->tree->options->one_file_system && d->st.st_dev != w->tree->root.src_dev;
	struct stale s = {.w = w, .d = d, .src = mounted ? -1 : d->src};
	const struct entry e = {.dir = d, .name = "", .as = ""};
	/* Then it is unknown which copies of an earlier run are outdated: not even --keep-going
	 * may commit them. */
	if (d->names == NAMES_LOST && d->state == DIRECTORY_RESUMED && !mounted) {
		__atomic_store_n(&w->tree->root.doubtful, true, __ATOMIC_RELAXED);
		return;
	}
	if (!mounted && !prune_may_compare(w, d))
		return;
	int r = take_names(&s, d->dst, count_listed);
	/* No entry failed, so the source has got a name since it was read: that copy is old. */
	if (r == 0 && w->tree->root.ground.journal && s.kept > d->present &&
	    __atomic_load_n(&w->tree->root.failures, __ATOMIC_RELAXED) == 0)
		prune_doubt(&s);
	if (r == 0 && s.kept == s.listed && s.listed >= d->present)
		return;
	const char *path = entry_dst;
	if (r == 0 && !mounted && (r = take_names(&s, d->src, count_found)) < 0)
		path = entry_src;
	if (r == 0 && s.found > s.kept)
		report_refusal(w, &e, entry_dst, EEXIST,
			       "entry names in it differ from SRC, perhaps only by case");
	else if (r == 0)
		r = take_names(&s, d->dst, remove_listed);
	if (r == 0 && w->tree->root.ground.journal && prune_may_be_old(&s))
		prune_doubt(&s);
	if (r < 0)
		report_call(w, &e, "getdents64", path, -r);
}

static void count_hashes(struct stale *s, const char *name)
{
	const uint64_t hash = hash_name(name);
	s->sum += hash;
	s->whole += temporary_is_drawn(name) ? 0 : hash;
}

static void remove_drawn(struct stale *s, const char *name)
{
	if (temporary_is_drawn(name))
		remove_reported(s, name);
}

void prune_check_list(struct worker *w, struct directory *d)
{
	struct stale s = {.w = w, .d = d, .src = -1, .unread = true};
	const uint64_t names = d->list->names;
	int r = take_names(&s, d->dst, count_hashes);
	s.unread = false;
	if (r == 0 && s.sum != names && s.whole == names)
		r = take_names(&s, d->dst, remove_drawn);
	if (r < 0)
		report_call(w, &(struct entry){.dir = d, .name = "", .as = ""}, "getdents64",
			    entry_dst, -r);
	else if (s.sum != names && s.whole != names)
		__atomic_store_n(&w->tree->root.doubtful, true, __ATOMIC_RELAXED);
}
