/* SPDX-License-Identifier: MIT
 * The walk of one SRC, by a copy, by a dry run, and by the comparison of --resume.
 */
#include "rehearse.h"
#include "admit.h"
#include "directory.h"
#include "link_dest.h"
#include "mirror.h"
#include "opened.h"
#include "report.h"
#include "walk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies what is in the directory. */
void root_walk(struct building *r, struct directory *d)
{
	struct tree *t = r->tree;
	const bool merges = r->dst >= 0 && !root_is_new(r);
	if (merges && t->options->update == FCOPY_UPDATE_CHANGED) /* the marker */
		admit_changes(t, d);
	if (merges)
		mirror_begin(t, r->to, r->dst);
	if (link_dest_open(t, r->dst >= 0 ? r->dst : r->to->place.dir, r->to->place.name,
			   &d->link) == 0)
		walk_tree(t, d);
	else
		t->root.failures++;
	if (d->link >= 0)
		close(d->link);
	walk_report_missing(t, d);
	if (merges)
		mirror_end(t, d);
	/* What was copied need not be what SRC has: its directory may have been emptied first. Then
	 * a new tree gets no name, not even one that goes without what failed. */
	if ((t->root.failures == 0 || t->options->keep_going) && !tree_stopped(t) &&
	    !opened_has_name(t, d)) {
		const int err = errno;
		t->root.failures++;
		t->root.doubtful = true;
		/* The next mirror begins anew: it cannot be combined with --resume. */
		r->unsound |= t->options->delete_extra;
		if (opened_is_gone(err))
			tree_refuse(t, r->from->path, err,
				    "was moved, replaced or removed during the copy",
				    FCOPY_ADVICE_NONE);
		else
			tree_fail(t, "stat", r->from->path, err);
	}
}

struct directory *root_start(struct building *r, const struct ground *ground)
{
	struct tree *t = r->tree;
	struct stat st = {0};
	struct directory *d = directory_new(NULL, "", r->from->fd, r->dst, &r->from->place.st);
	if (!d || (r->dst >= 0 && fstat(r->dst, &st) < 0)) {
		root_fail(r, d ? "fstat" : "malloc", d ? errno : ENOMEM);
		free(d);
		return NULL;
	}
	t->root.ground = *ground;
	t->root.doubtful = false;
	t->root.failures = 0;
	t->root.src_dev = r->from->place.st.st_dev;
	t->root.src_ino = r->from->place.st.st_ino;
	t->root.dst_dev = st.st_dev;
	t->root.dst_ino = st.st_ino;
	if (r->dst >= 0)
		directory_note_inode(d, &st);
	d->src_path = r->from->path;
	d->dst_path = r->to->path;
	d->state = ground->journal   ? DIRECTORY_RESUMED
		   : ground->foreign ? DIRECTORY_OLD
				     : DIRECTORY_NEW;
	d->was = st;
	if (ground->foreign)
		d->closed = admit_is_closed(t, d, &st);
	return d;
}

/* A directory that DST lacks has the descriptor -1. */
int root_rehearse(struct building *r, enum flushing flush)
{
	struct tree *t = r->tree;
	const bool fresh = r->dst < 0;
	const struct ground ground = {
	    .fresh = fresh, .exclusive = fresh, .foreign = !fresh, .flush = flush};
	struct directory *d = root_start(r, &ground);
	if (!d) {
		if (r->dst >= 0)
			close(r->dst);
		return -ENOMEM;
	}
	root_walk(r, d);
	const struct outcome o = directory_outcome(t, d);
	directory_unref(d);
	t->root.committed = t->root.failures == 0 && !tree_stopped(t);
	/* As the copy: a merge, and a tree that goes without what failed. */
	const bool made = !tree_stopped(t) && (t->root.committed || r->dst >= 0 ||
					       (t->options->keep_going && !t->root.doubtful));
	if (made && o.action != FCOPY_ACTION_UNCHANGED && t->root.compares != COMPARES_BELOW)
		report_operand_outcome(t, &o, r->to->path, NULL);
	return t->root.committed ? 0 : -EIO;
}
