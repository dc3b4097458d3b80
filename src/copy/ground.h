/* SPDX-License-Identifier: MIT
 *
 * What is true of one SRC and of the place that its copy gets. It is known before the first entry
 * is copied, and does not change while SRC is walked. What is done with an entry follows from these
 * members, not from the way in which the copy was begun.
 */
#ifndef COPY_GROUND_H
#define COPY_GROUND_H

#include "fcopy.h"

#include <stdbool.h>
#include <sys/types.h>

/* What is flushed with --fsync, in ascending order. */
enum flushing {
	FLUSH_NONE,
	FLUSH_WHOLE, /* a new tree, by one syncfs(2) before its rename */
	FLUSH_FILES, /* each file, before it gets its name, and the rest by one syncfs(2) */
	FLUSH_EACH   /* every entry: syncfs(2) does not suffice here */
};

struct ground {
	bool fresh;     /* most names are absent: each is created first, with O_EXCL */
	bool exclusive; /* ... and no earlier attempt has made one: a name that exists is that of
			 * another entry, or was listed twice */
	bool named;     /* ... but another process can, because DST has its final name */
	bool journal;   /* an earlier run has made names; its journal shows what is complete */
	bool foreign;   /* DST is in use: files are replaced, and other users can exchange names */
	bool single;    /* SRC is no directory: its copy may have threads, and be resumed */
	bool lists;     /* nothing is copied: other processes get a list of what SRC has */
	bool share;     /* other processes copy the rest: a directory is not complete when this walk
			 * has finished it */
	bool separate;  /* each name becomes a separate file: the list says which are links */
	bool fixed_modes; /* chmod has no effect in DST: directories get their mode at once */
	enum flushing flush;
	mode_t withheld; /* of S_IRWXU, from new directories */
};

/* May several names of one file of SRC become names of one copy? */
static inline bool ground_links(const struct ground *g, const struct fcopy_tree_options *o)
{
	return o->hard_links && !g->separate;
}

/* Are files replaced in a directory that exists? */
static inline bool ground_merges(const struct ground *g)
{
	return g->foreign && !g->single;
}

#endif
