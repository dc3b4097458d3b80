/* SPDX-License-Identifier: MIT
 * Copies one directory: reads it piece by piece, and finishes it when everything below it is
 * finished.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_SIZE ((size_t)32 << 10) /* bytes of one getdents64(2) */
#define BATCH      16                 /* files in one item */

struct directory *directory_new(struct directory *parent, const char *name, int src, int dst,
				const struct stat *st)
{
	size_t length = strlen(name);
	struct directory *d = calloc(1, sizeof(*d) + length + 1);
	if (!d)
		return NULL;
	*d = (struct directory){
	    .parent = parent, .src = src, .dst = dst, .st = *st, .pending = 1, .references = 1};
	memcpy(d->name, name, length + 1);
	if (parent) {
		d->hash = shard_hash(shard_hash(parent->hash, name, length), "/", 1);
		__atomic_add_fetch(&parent->pending, 1, __ATOMIC_RELAXED);
		directory_ref(parent);
	}
	return d;
}

void directory_ref(struct directory *d)
{
	__atomic_add_fetch(&d->references, 1, __ATOMIC_RELAXED);
}

/* The destination of an operand stays open as long as hard links may be made from below it. */
void directory_unref(struct directory *d)
{
	while (d && __atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) == 0) {
		struct directory *parent = d->parent;
		if (d->dst >= 0)
			close(d->dst);
		free(d);
		d = parent;
	}
}

int directory_reopen(const struct directory *d)
{
	if (!d->parent)
		return fcntl(d->dst, F_DUPFD_CLOEXEC, 0);
	int parent = directory_reopen(d->parent);
	if (parent < 0)
		return parent;
	int fd = openat(parent, d->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err = errno;
	close(parent);
	if (fd < 0)
		return -err;
	return fd;
}

int directory_preserve(struct worker *w, const struct entry *e, int src, int dst,
		       const struct stat *st)
{
	static const enum fcopy_attribute order[] = {FCOPY_ATTR_TIMESTAMPS, FCOPY_ATTR_OWNERSHIP,
						     FCOPY_ATTR_XATTR, FCOPY_ATTR_MODE};
	const struct fcopy_options *o = &w->tree->options->copy;
	const struct metadata_pair pair = {src, dst, st, entry_src, entry_dst};
	int lost = 0;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		struct fcopy_error error;
		if (!(o->preserve & order[i]) ||
		    metadata_copy_attribute(order[i], &pair, &error) == 0)
			continue;
		if (!(o->preserve_required & order[i])) {
			report_warning(w, e, &error);
			continue;
		}
		report_failure(w, e, &error);
		lost = -error.err;
	}
	return lost;
}

/* Attributes come last: files below would change the times, and a mode may forbid to create them.
 */
void directory_set_attributes(struct worker *w, struct directory *d)
{
	const struct fcopy_options *o = &w->tree->options->copy;
	const struct entry e = {.dir = d, .name = "", .as = ""};
	directory_preserve(w, &e, d->src, d->dst, &d->st);
	/* It was created with all of S_IRWXU, so that entries could be created in it. */
	mode_t extra = 0700 & ~d->st.st_mode;
	struct stat now;
	if (d->fresh && extra && !(o->preserve & FCOPY_ATTR_MODE) &&
	    (fstat(d->dst, &now) < 0 || fchmod(d->dst, now.st_mode & 07777 & ~extra) < 0)) {
		struct fcopy_error error;
		error_call(&error, "fchmod", entry_dst, errno);
		report_failure(w, &e, &error);
	}
}

static void directory_finish(struct worker *w, struct directory *d)
{
	if (d->resumed && !tree_stopped(w->tree) && !(w->tree->finishing && shard_is_exact(d)))
		resume_prune(w, d);
	if (!d->parent) /* root.c still needs it */
		return;
	if (!tree_stopped(w->tree) && (!w->tree->shard || w->tree->finishing))
		directory_set_attributes(w, d);
	close(d->src);
	close(d->dst);
	d->src = d->dst = -1;
}

void directory_release(struct worker *w, struct directory *d)
{
	while (d && __atomic_sub_fetch(&d->pending, 1, __ATOMIC_ACQ_REL) == 0) {
		struct directory *parent = d->parent;
		directory_finish(w, d);
		if (parent) /* the operand's belongs to root.c */
			directory_unref(d);
		d = parent;
	}
}

static void names_unref(struct names *n)
{
	if (__atomic_sub_fetch(&n->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(n);
}

static const struct dirent64 *names_at(const struct names *n, unsigned offset)
{
	return (const struct dirent64 *)(const void *)(n->data + offset);
}

/* Hands an item to the pool, or runs it here if there is no memory to queue it. */
static void directory_push(struct worker *w, const struct item *item)
{
	__atomic_add_fetch(&item->dir->pending, 1, __ATOMIC_RELAXED);
	if (item->names)
		__atomic_add_fetch(&item->names->references, 1, __ATOMIC_RELAXED);
	if (pool_push(w->tree, *item))
		return;
	tree_stop(w->tree, ENOMEM);
	directory_run(w, item);
}

/* Subdirectories are pushed one by one, below the batches of files, so that few are open at once.
 * A name whose type is unknown counts as a file. */
static void directory_push_names(struct worker *w, struct directory *d, struct names *n)
{
	unsigned count = 0, first = 0;
	for (unsigned at = 0; at < n->size; at += names_at(n, at)->d_reclen)
		if (names_at(n, at)->d_type == DT_DIR && !name_is_dot(names_at(n, at)->d_name))
			directory_push(w, &(struct item){d, n, at, 1});
	for (unsigned at = 0; at < n->size; at += names_at(n, at)->d_reclen) {
		if (names_at(n, at)->d_type == DT_DIR)
			continue;
		if (count++ == 0)
			first = at;
		if (count == BATCH) {
			directory_push(w, &(struct item){d, n, first, count});
			count = 0;
		}
	}
	if (count > 0)
		directory_push(w, &(struct item){d, n, first, count});
	pool_wake(w->tree);
}

/* Reads the next names; pushes the rest of the directory, then the names on top of it. */
static void directory_read(struct worker *w, struct directory *d)
{
	struct names *n = malloc(sizeof(*n) + NAMES_SIZE);
	ssize_t got = n ? getdents64(d->src, n->data, NAMES_SIZE) : -1;
	if (got <= 0) {
		struct fcopy_error error;
		/* ENOENT: removed since it was opened (getdents(2)) */
		if (got < 0 && errno != ENOENT) {
			error_call(&error, n ? "getdents64" : "malloc", entry_src, errno);
			report_failure(w, &(struct entry){.dir = d, .name = "", .as = ""}, &error);
		}
		free(n);
		return;
	}
	struct names *fit = realloc(n, sizeof(*n) + (size_t)got);
	n = fit ? fit : n;
	n->references = 1;
	n->size = (unsigned)got;
	directory_push(w, &(struct item){.dir = d});
	directory_push_names(w, d, n);
	names_unref(n);
}

/* Another thread is idle: it gets the rest of a batch. `at` is the offset of the next name. */
static bool directory_share(struct worker *w, const struct item *item, unsigned at, unsigned left)
{
	if (left == 0 || pool_idle(w->tree) == 0)
		return false;
	while (names_at(item->names, at)->d_type == DT_DIR)
		at += names_at(item->names, at)->d_reclen;
	directory_push(w, &(struct item){item->dir, item->names, at, left});
	pool_wake(w->tree);
	return true;
}

static void directory_copy_names(struct worker *w, const struct item *item)
{
	const struct names *n = item->names;
	bool follow = w->tree->options->follow == FCOPY_FOLLOW_ALWAYS;
	unsigned at = item->first;
	for (unsigned left = item->count; left > 0;) {
		const struct dirent64 *d = names_at(n, at);
		at += d->d_reclen;
		if (d->d_type == DT_DIR && item->count > 1)
			continue; /* has a separate item */
		left--;
		if (name_is_dot(d->d_name) || tree_stopped(w->tree))
			continue;
		entry_copy(w, &(struct entry){.dir = item->dir,
					      .name = d->d_name,
					      .as = d->d_name,
					      .type = d->d_type,
					      .follow = follow});
		if (directory_share(w, item, at, left))
			break;
	}
}

void directory_run(struct worker *w, const struct item *item)
{
	if (!item->names && !tree_stopped(w->tree))
		directory_read(w, item->dir);
	if (item->names) {
		directory_copy_names(w, item);
		names_unref(item->names);
	}
	directory_release(w, item->dir);
}
