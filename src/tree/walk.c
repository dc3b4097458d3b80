/* SPDX-License-Identifier: MIT
 * Reads directories piece by piece, and copies the names in them.
 */
#include "directory.h"
#include "displace.h"
#include "endpoints/error.h"
#include "entry.h"
#include "io/io.h"
#include "pool.h"
#include "report.h"
#include "rivals.h"
#include "root.h"
#include "source/filter.h"
#include "source/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH 16 /* files in one item */

static void names_unref(struct names *n)
{
	if (__atomic_sub_fetch(&n->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(n);
}

static const struct dirent64 *names_at(const struct names *n, unsigned offset)
{
	return (const struct dirent64 *)(const void *)(n->data + offset);
}

static void walk_push(struct worker *w, const struct item *item)
{
	__atomic_add_fetch(&item->dir->pending, 1, __ATOMIC_RELAXED);
	if (item->names)
		__atomic_add_fetch(&item->names->references, 1, __ATOMIC_RELAXED);
	pool_push(w, *item);
}

/* Subdirectories are pushed one by one, below the files, so that few are open at once. */
static bool walk_push_directories(struct worker *w, struct directory *d, struct names *n)
{
	const struct dirent64 *name;
	bool any = false;
	for (unsigned at = 0; at < n->size; at += name->d_reclen) {
		name = names_at(n, at);
		if (name->d_type != DT_DIR || name_is_dot(name->d_name))
			continue;
		walk_push(w, &(struct item){d, n, at, 1});
		any = true;
	}
	return any;
}

/* A name whose type is unknown counts as a file. */
static void walk_push_files(struct worker *w, struct directory *d, struct names *n)
{
	const struct dirent64 *name;
	unsigned count = 0, first = 0;
	for (unsigned at = 0; at < n->size; at += name->d_reclen) {
		name = names_at(n, at);
		if (name->d_type == DT_DIR)
			continue;
		if (count++ == 0)
			first = at;
		if (count == BATCH) {
			walk_push(w, &(struct item){d, n, first, count});
			count = 0;
		}
	}
	if (count > 0)
		walk_push(w, &(struct item){d, n, first, count});
}

/* All of its files, for this thread. */
static struct item walk_keep_files(struct directory *d, struct names *n)
{
	const struct dirent64 *name;
	struct item own = {.dir = d, .names = n};
	for (unsigned at = 0; at < n->size; at += name->d_reclen) {
		name = names_at(n, at);
		if (name->d_type == DT_DIR)
			continue;
		if (own.count++ == 0)
			own.first = at;
	}
	return own;
}

static void walk_fail(struct worker *w, struct directory *d, const char *call, int err)
{
	struct fcopy_error error;
	error_call(&error, call, entry_src, err);
	report_failure(w, &ENTRY(d, ""), &error);
	d->names = NAMES_LOST;
}

/* getdents64(2) returned ENOENT. Was the directory removed since it was opened? Network file
 * systems return it for other reasons, too. Then SRC as a whole may be gone, or what an earlier
 * attempt copied may be outdated: both are failures. */
static void walk_report_removed(struct worker *w, struct directory *d)
{
	const struct entry e = ENTRY(d, "");
	struct fcopy_error error;
	struct stat st;
	bool removed = fstat(d->src, &st) == 0 && st.st_nlink == 0;
	if (removed)
		error_refuse(&error, entry_src, ENOENT,
			     "was removed or replaced before it could be read", FCOPY_ADVICE_NONE);
	else
		error_call(&error, "getdents64", entry_src, ENOENT);
	if (!removed || !d->parent || d->state == DIRECTORY_RESUMED || w->options.strict)
		report_failure(w, &e, &error);
	else
		report_warning(w, &e, &error);
	d->names = NAMES_LOST;
}

/* Returns NULL at the end, or after a failure. */
static struct names *walk_read_names(struct worker *w, struct directory *d)
{
	struct names *n = malloc(sizeof(*n) + READER_SIZE);
	ssize_t got = n ? reader_fill(d->src, n->data, READER_SIZE) : -ENOMEM;
	if (got <= 0) {
		if (got == -ENOENT)
			walk_report_removed(w, d);
		else if (got < 0)
			walk_fail(w, d, n ? "getdents64" : "malloc", (int)-got);
		free(n);
		return NULL;
	}
	struct names *fit = realloc(n, sizeof(*n) + (size_t)got);
	if (fit)
		n = fit;
	n->references = 1;
	n->size = (unsigned)got;
	return n;
}

/* Of the walk of a list: the next names of the directory in the form of getdents64(2), in which
 * d_ino is the address of the name's struct listed. Returns NULL as above. */
static struct names *walk_list_names(struct worker *w, struct directory *d)
{
	struct listed *l = d->rest || d->parent ? d->rest : w->tree->share.batches->next(w);
	struct names *n = l ? malloc(sizeof(*n) + READER_SIZE) : NULL;
	if (l && !n)
		walk_fail(w, d, "malloc", ENOMEM);
	if (!n)
		return NULL;
	n->references = 1;
	n->size = 0;
	for (; l; l = l->next) {
		const size_t length = strlen(l->name) + 1;
		const size_t size = (offsetof(struct dirent64, d_name) + length + 7) & ~(size_t)7;
		if (n->size + size > READER_SIZE)
			break;
		struct dirent64 *at = (struct dirent64 *)(void *)(n->data + n->size);
		_Static_assert(sizeof(l) <= sizeof(at->d_ino), "an address fits");
		memcpy(&at->d_ino, &l, sizeof(l));
		at->d_reclen = (unsigned short)size;
		at->d_type = IFTODT(l->st.st_mode);
		memcpy(at->d_name, l->name, length);
		n->size += (unsigned)size;
	}
	d->rest = l;
	return n;
}

/* The operand's directory gets the next batch when the present one is done. */
static bool walk_has_rest(struct worker *w, const struct directory *d, const struct names *n)
{
	return w->tree->share.batches
		   ? d->rest || !d->parent
		   : n->size + sizeof(struct dirent64) > READER_SIZE && !opened_are_many(w->tree);
}

/* Reads the next names; pushes the rest of the directory, then the names on top of it. If there was
 * room for more names, there is probably no rest: then its end is read at once, and unless another
 * thread is idle, the files are *own, which this thread copies next: two threads that create files
 * in one directory would wait for its lock. own->names NULL: there are none. */
static void walk_read(struct worker *w, struct directory *d, struct item *own)
{
	struct names *n;
	while (!tree_stopped(w->tree) &&
	       (n = w->tree->share.batches ? walk_list_names(w, d) : walk_read_names(w, d))) {
		const bool rest = walk_has_rest(w, d, n);
		if (own->names) {
			walk_push_files(w, d, own->names);
			names_unref(own->names);
			own->names = NULL;
		}
		if (rest)
			walk_push(w, &(struct item){.dir = d});
		bool pushed = walk_push_directories(w, d, n);
		if (rest || pool_idle(&w->tree->pool) > 0) {
			walk_push_files(w, d, n);
			names_unref(n);
			pushed = true;
		} else {
			*own = walk_keep_files(d, n);
			w->left = own->count;
		}
		if (pushed)
			pool_wake(&w->tree->pool, true);
		if (!w->tree->share.batches)
			tuning_begin_walk(w, d->src);
		if (rest)
			return;
	}
	if (d->names == NAMES_LEFT)
		d->names = NAMES_READ;
}

/* The offset of the name that follows `skip` files from `at` on. */
static unsigned walk_skip(const struct names *n, unsigned at, unsigned skip)
{
	for (;; at += names_at(n, at)->d_reclen)
		if (names_at(n, at)->d_type != DT_DIR && skip-- == 0)
			return at;
}

/* If other threads are idle, each of them gets an equal part of the names that are left from `at`
 * on. This is done before an entry is copied: on slow storage they would wait that long. Returns
 * how many are left to this thread. */
static unsigned walk_share(struct worker *w, const struct item *item, unsigned at, unsigned left)
{
	const unsigned idle = left < 2 ? 0 : pool_unserved(&w->tree->pool);
	if (idle == 0)
		return left;
	const unsigned parts = idle + 1 < left ? idle + 1 : left,
		       own = left - left / parts * (parts - 1);
	unsigned next = own;
	for (unsigned part = 1; part < parts; part++, next = left / parts) {
		at = walk_skip(item->names, at, next);
		walk_push(w, &(struct item){item->dir, item->names, at, left / parts});
	}
	pool_wake(&w->tree->pool, parts > 2);
	return own;
}

/* The type of the name is looked up only if a pattern depends on it, and getdents64(2) or a symlink
 * that is followed leaves it open. */
static bool walk_excludes(struct worker *w, const struct entry *e)
{
	struct filter *f = w->tree->filter;
	struct stat st;
	char path[PATH_MAX];
	if (mirror_is_marker(e))
		return true;
	if (!f)
		return false;
	bool is_directory = e->type == DT_DIR;
	if (filter_needs_types(f) && (e->type == DT_UNKNOWN || (e->type == DT_LNK && e->follow)) &&
	    fstatat(e->dir->src, e->name, &st, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0)
		is_directory = S_ISDIR(st.st_mode);
	if (!entry_path_below(e, path, sizeof(path))) { /* a pattern could match what is cut off */
		report_call(w, e, "open", entry_src, ENAMETOOLONG);
		return true;
	}
	if (!filter_excludes(f, path, is_directory))
		return false;
	report_outcome(w, e,
		       &(struct outcome){.action = FCOPY_ACTION_EXCLUDED,
					 .type = e->type == DT_UNKNOWN ? 0 : DTTOIF(e->type)});
	return true;
}

/* Of the walk of a list. */
static struct listed *walk_listed(const struct dirent64 *d)
{
	struct listed *l;
	memcpy(&l, &d->d_ino, sizeof(l));
	return l;
}

static void walk_copy_names(struct worker *w, const struct item *item)
{
	const struct names *n = item->names;
	const bool follow = w->tree->options->follow == FCOPY_FOLLOW_ALWAYS,
		   lists = w->tree->share.batches, tunes = w->tree->pool.tuning.tunes;
	unsigned at = item->first;
	for (unsigned left = item->count; left > 0;) {
		if (tunes && pool_dismissed(w) && !tree_stopped(w->tree)) {
			/* walk_skip() would pass over a directory, the only name of its item. */
			at = left < item->count ? walk_skip(n, at, 0) : item->first;
			walk_push(w, &(struct item){item->dir, item->names, at, left});
			pool_wake(&w->tree->pool, false);
			break;
		}
		left = walk_share(w, item, at, left);
		const struct dirent64 *d = names_at(n, at);
		at += d->d_reclen;
		if (d->d_type == DT_DIR && item->count > 1)
			continue; /* has a separate item */
		left--;
		if (name_is_dot(d->d_name) || tree_stopped(w->tree))
			continue;
		const struct entry e = {.dir = item->dir,
					.name = d->d_name,
					.as = d->d_name,
					.type = d->d_type,
					.follow = follow,
					.listed = lists ? walk_listed(d) : NULL};
		if (walk_excludes(w, &e))
			continue;
		w->left = left;
		if (tunes)
			tuning_begin_entry(w);
		if (e.listed)
			w->tree->share.batches->copy(w, &e);
		else
			entry_copy(w, &e);
		if (tunes)
			tuning_end_entry(w, item->dir->src);
	}
	tuning_end_item(w);
}

/* Reads names, and copies the files that this thread keeps. */
static void walk_run_directory(struct worker *w, struct directory *d)
{
	struct item own = {.names = NULL};
	const bool reads = !w->tree->share.batches; /* otherwise nothing is read from storage */
	w->left = 0;
	if (reads)
		tuning_begin_entry(w);
	walk_read(w, d, &own);
	if (reads)
		tuning_end_names(w, d->src);
	if (!own.names)
		return;
	walk_copy_names(w, &own);
	names_unref(own.names);
}

static void walk_run(struct worker *w, const struct item *item)
{
	int r = opened_use(w->tree, item->dir);
	if (r < 0)
		directory_report_lost(w, item->dir, -r);
	else if (item->names)
		walk_copy_names(w, item);
	else
		walk_run_directory(w, item->dir);
	if (item->names)
		names_unref(item->names);
	aside_end(w);
	if (r == 0)
		opened_unuse(w->tree, item->dir);
	directory_release(w, item->dir);
}

void walk_entry(struct tree *t, const struct entry *e)
{
	struct worker *w = pool_join(t);
	if (!w) {
		tree_stop(t, ENOMEM);
		return;
	}
	entry_copy(w, e);
	aside_end(w);
	pool_leave(w);
}

static void walk_report_missing(struct tree *t, struct directory *root)
{
	struct worker *w = t->filter ? pool_join(t) : NULL;
	size_t at = 0;
	for (const char *name; w && (name = filter_missing(t->filter, &at));)
		report_unmet(w, root, name);
	if (w)
		pool_leave(w);
}

/* The walk of one SRC: by a copy, by a dry run, and by the comparison of --resume. */

void walk_tree(struct tree *t, struct directory *root)
{
	opened_start(t, root);
	threads_run(t, root, walk_run);
}

/* Copies what is in the directory. */
void root_walk(struct building *r, struct directory *d)
{
	struct tree *t = r->tree;
	const bool merges = r->dst >= 0 && !root_is_new(r);
	struct stat st;
	if (merges && t->options->update == FCOPY_UPDATE_CHANGED) /* the marker */
		admit_changes(t, d);
	if (merges)
		mirror_begin(t, r->to, r->dst);
	/* It may be bound to a place below itself. Of several SRC, one may be below another one. */
	if (merges && !tree_has_several(t) && fstat(r->dst, &st) == 0)
		(void)rivals_claim(t, &ENTRY(d, ""), &st);
	walk_tree(t, d);
	walk_report_missing(t, d);
	if (merges)
		mirror_end(t, d);
	/* What was copied need not be what SRC has: its directory may have been emptied first. Then
	 * a new tree gets no name, not even one that goes without what failed. */
	const bool matters = (t->root.failures == 0 || t->options->keep_going) && !tree_stopped(t);
	const int err = matters ? -opened_check_name(t, d) : 0;
	if (err) {
		t->root.failures++;
		/* The next mirror copies all again: it cannot be combined with --resume. */
		t->root.doubt = t->options->delete_extra ? DOUBT_PART : DOUBT_COMMIT;
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
	/* Before anything is changed: the caller removes a new DST, which is empty. */
	if (link_dest_open(t, r->dst >= 0 ? r->dst : r->to->place.dir, r->to->place.name,
			   &d->link) < 0) {
		free(d);
		return NULL;
	}
	t->root.ground = *ground;
	t->root.ground.faithful = r->dst >= 0 && !ground->foreign &&
				  storage_keeps_attributes(t->known.storage, r->dst, &st);
	t->root.doubt = DOUBT_NONE;
	t->root.failures = 0;
	t->root.inodes.src = inode_of(&r->from->place.st);
	t->root.inodes.dst = inode_of(&st);
	if (r->dst >= 0)
		directory_note_inode(d, &st);
	d->src_path = r->from->path;
	d->dst_path = r->to->path;
	d->state = ground->journal   ? DIRECTORY_RESUMED
		   : ground->foreign ? DIRECTORY_OLD
				     : DIRECTORY_NEW;
	d->was = st;
	if (ground->foreign)
		d->admit = admit_is_closed(t, d, &st) ? ADMIT_DUE : ADMIT_NONE;
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
		io_close(r->dst);
		return -ENOMEM;
	}
	root_walk(r, d);
	const struct outcome o = directory_outcome(t, d);
	directory_unref(d);
	t->root.committed = t->root.failures == 0 && !tree_stopped(t);
	/* As the copy: a merge, and a tree that goes without what failed. */
	const bool made = !tree_stopped(t) &&
			  (t->root.committed || r->dst >= 0 ||
			   (t->options->keep_going && t->root.doubt == DOUBT_NONE));
	if (made && o.action != FCOPY_ACTION_UNCHANGED && t->root.compares != COMPARES_BELOW)
		report_operand_outcome(t, &o, r->to->path, NULL);
	return t->root.committed ? 0 : -EIO;
}
