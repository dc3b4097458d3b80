/* SPDX-License-Identifier: MIT
 * The hard links of a tree: share.links has a line for each, with the name that was copied.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "endpoints/slot.h"
#include "finish.h"
#include "tree/entry.h"
#include "tree/hard_link.h"
#include "tree/pool.h"
#include "tree/report.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Splits off the last name of a path: what stays is that of a directory. */
static const char *finish_split(const char **path)
{
	char *slash = strrchr(*path, '/');
	const char *name = slash ? slash + 1 : *path;
	if (slash)
		*slash = '\0';
	else
		*path = ".";
	return name;
}

struct finish_origin {
	int dir;
	const char *name;
};

static int finish_link_make(int dir, const char *name, void *origin)
{
	const struct finish_origin *o = origin;
	return linkat(o->dir, o->name, dir, name, 0) < 0 ? -errno : 0;
}

/* A link of an attempt that was killed may be there. */
static int finish_link_at(int from, const char *name, int to, const char *as)
{
	struct finish_origin o = {from, name};
	struct slot s = {.how = HOW_RENAME, .over = OVER_ANY};
	struct stat a, b;
	const char *call;
	int r = finish_link_make(to, as, &o);
	if (r != -EEXIST)
		return r;
	if (fstatat(from, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(to, as, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_ino == b.st_ino &&
	    a.st_dev == b.st_dev)
		return 0;
	r = slot_make(&s, to, as, -1, finish_link_make, &o, "linkat", &call);
	if (r == 0)
		r = slot_commit(&s, to, as, &call);
	slot_drop(&s, to, as);
	return r;
}

/* Where a file cannot have another name, it is copied once more. */
static int finish_link(struct shard_tree *s, struct worker *w, const struct listed *l)
{
	static const struct stat none;
	const char *from = l->dir, *to = l->name;
	const char *name = finish_split(&from), *as = finish_split(&to);
	const struct entry of = {.name = as,
				 .as = as,
				 .dir = path_directory(s, to, &none),
				 .follow = w->tree->options->follow == FCOPY_FOLLOW_ALWAYS};
	if (!of.dir)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	int dir = finish_expect(s, to, as) ? path_open_copy(s, from, false) : -ENOMEM;
	int r = dir < 0 ? report_call(w, &of, "open", entry_dst, -dir)
			: path_open(s, w, of.dir, to, false);
	if (r == 0 && (r = finish_link_at(dir, name, of.dir->dst, as)) == 0) {
		report_outcome(w, &of, &(struct outcome){.action = FCOPY_ACTION_LINKED});
	} else if (r < 0 && dir >= 0 && of.dir->dst >= 0 && !hard_link_is_failure(-r)) {
		struct fcopy_error error;
		error_call(&error, "linkat", entry_dst, -r);
		report_warning(w, &of, &error);
		const struct outcome o = entry_copy(w, &of);
		r = outcome_is_there(&o) ? 0 : -EIO;
	} else if (r < 0 && of.dir->dst >= 0) {
		r = report_call(w, &of, "linkat", entry_dst, -r);
	}
	if (dir >= 0)
		close(dir);
	path_free(of.dir);
	return r;
}

int finish_links(struct shard_tree *s)
{
	struct stat st;
	struct chunk c;
	struct tree *t = s->root.tree;
	if (fstatat(s->job.part.fd, PART_SHARE "links", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : job_fail(&s->job, "stat of its list", "stat", errno);
	int r = chunk_read(&s->job, LIST_LINKS, &c);
	struct worker *w = r < 0 ? NULL : pool_join(t);
	if (r == 0 && !w)
		r = job_fail(&s->job, NULL, "malloc", ENOMEM);
	for (size_t i = 0; w && r == 0 && i < c.count && !tree_stopped(t); i++)
		r = finish_link(s, w, &c.entry[i]);
	if (w)
		pool_leave(w);
	chunk_free(&c);
	return r == 0 && tree_stopped(t) ? (t->stop ? t->stop : -EINTR) : r;
}
