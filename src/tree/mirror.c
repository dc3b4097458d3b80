/* SPDX-License-Identifier: MIT
 * --delete: removes from DST what SRC lacks, when every entry of SRC was copied. Only then is it
 * known that nothing of SRC was overlooked; any failure before keeps everything.
 *
 * A marker in DST says that files were written and not yet flushed. If a mirror finds the marker of
 * another boot, power may have been cut since: then a file that was written after the marker is
 * compared by its bytes, because its size and time may be right while its blocks are lost.
 */
#include "copy/copy.h"
#include "directory.h"
#include "displace.h"
#include "endpoints/error.h"
#include "io/io.h"
#include "io/system.h"
#include "namesakes.h"
#include "part/left.h"
#include "pool.h"
#include "report.h"
#include "root.h"
#include "source/reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SLACK 2   /* seconds between the clock and the times of a file system */
#define TRIES 100 /* to find the marker, or to make it, while other runs make and remove it */

bool mirror_is_marker(const struct entry *e)
{
	return !e->dir->parent && strcmp(e->name, MARKER) == 0;
}

static void mirror_warn(struct tree *t, const char *call, const char *path, int err)
{
	struct fcopy_error error;
	error_call(&error, call, path, err);
	report_operand_warning(t, &error);
}

/* st: of the open marker. Some storage reports that each file has no name. */
static bool mirror_is_removed(int dst, const struct stat *st)
{
	struct stat now;
	return st->st_nlink == 0 &&
	       !(fstatat(dst, MARKER, &now, AT_SYMLINK_NOFOLLOW) == 0 && same_inode(&now, st));
}

/* Reads the marker of another run, which may be in progress, and locks it, except for a dry run,
 * which would not remove it. Best effort: without locks, the run that ends first removes it. A run
 * that removes it holds the lock for a moment; the owner of DST could hold it for ever: then the
 * marker stays. */
static enum mirror_marker mirror_read_marker(struct mirror *m, int dst, const char *boot,
					     const struct fcopy_tree_options *o)
{
	char found[40] = "";
	struct stat st;
	int fd = openat(dst, MARKER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) /* such as EACCES */
		return errno == ENOENT ? MARKER_NONE : MARKER_UNKNOWN;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return MARKER_UNKNOWN;
	}
	const ssize_t n = read(fd, found, 36);
	if (!o->dry_run)
		(void)!private_take_lock(fd, LOCK_SH, o->copy.cancel);
	if (!o->dry_run && fstat(fd, &st) == 0 && mirror_is_removed(dst, &st)) {
		close(fd); /* it was removed before it was locked */
		return MARKER_NONE;
	}
	m->fd = fd;
	m->since = st.st_mtim.tv_sec - SLACK;
	return n == 36 && strcmp(found, boot) == 0 ? MARKER_LEFT : MARKER_DOUBTED;
}

/* A file system without a journal can write a file before the marker: it is flushed first. Returns
 * false if another run has made or removed it at this moment. */
static bool mirror_make_marker(struct tree *t, const struct operand *o, int dst, const char *boot)
{
	struct mirror *m = &t->mirror;
	struct stat st;
	m->fd = openat(dst, MARKER, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (m->fd < 0 && errno == EEXIST)
		return false;
	if (m->fd < 0) {
		mirror_warn(t, "open of " MARKER, o->path, errno);
		return true;
	}
	(void)!private_take_lock(m->fd, LOCK_SH, t->options->copy.cancel);
	if (fstat(m->fd, &st) == 0 && mirror_is_removed(dst, &st)) {
		close(m->fd);
		m->fd = -1;
		return false;
	}
	m->marker = MARKER_MADE;
	if (write(m->fd, boot, strlen(boot)) < 0) /* the next run doubts, then */
		mirror_warn(t, "write of " MARKER, o->path, errno);
	else if (fsync(m->fd) < 0 || io_flush_directory(dst) < 0)
		mirror_warn(t, "fsync of " MARKER, o->path, errno);
	return true;
}

struct mirror mirror_look(int dir)
{
	const struct fcopy_tree_options looks = {.dry_run = true};
	struct mirror m = {.fd = -1};
	struct journal_fact here;
	private_here(dir, &here);
	m.marker = mirror_read_marker(&m, dir, here.boot, &looks);
	io_close(m.fd);
	m.fd = -1;
	return m;
}

bool mirror_marks(const struct tree *t)
{
	return t->options->update == FCOPY_UPDATE_CHANGED && !t->options->copy.resume &&
	       !t->options->dry_run;
}

/* The marker of an earlier run stays: what that wrote may not have been flushed either. */
void mirror_begin(struct tree *t, const struct operand *o, int dst)
{
	struct journal_fact here;
	struct mirror *m = &t->mirror;
	*m = (struct mirror){.fd = -1};
	if (t->options->update != FCOPY_UPDATE_CHANGED || t->options->copy.resume)
		return;
	private_here(dst, &here);
	for (int tries = 0; tries < TRIES; tries++) {
		m->marker = mirror_read_marker(m, dst, here.boot, t->options);
		if (m->marker != MARKER_NONE || !mirror_marks(t) ||
		    mirror_make_marker(t, o, dst, here.boot))
			return;
	}
	mirror_warn(t, "open of " MARKER, o->path, EEXIST);
}

/* The last of several runs removes the marker. */
static void mirror_remove_marker(struct tree *t, const struct directory *root)
{
	struct mirror *m = &t->mirror;
	if (m->marker == MARKER_NONE || m->marker == MARKER_UNKNOWN || /* it could not be locked */
	    (flock(m->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK))
		return;
	if (system_is_rclone(root->dst)) { /* it creates an open file again that was removed */
		close(m->fd);
		m->fd = -1;
	}
	if (unlinkat(root->dst, MARKER, 0) < 0 && errno != ENOENT)
		mirror_warn(t, "unlink of " MARKER, root->dst_path, errno);
}

/* Returns false if there is no memory. */
static bool mirror_note(struct worker *w, const struct directory *d, const char *name,
			const struct stat *st)
{
	struct tree *t = w->tree;
	char path[PATH_MAX];
	const struct entry e = ENTRY(d, name);
	__atomic_store_n(&e.dir->grown, true, __ATOMIC_RELAXED);
	if (!entry_path_below(&e, path, sizeof(path))) {
		report_call(w, &e, "remove", entry_dst, ENAMETOOLONG);
		return true;
	}
	struct extra *x = malloc(sizeof(*x) + strlen(path) + 1);
	if (!x)
		return false;
	*x = (struct extra){
	    .inode = inode_of(st), .mode = st->st_mode, .size = st->st_size, .mtime = st->st_mtim};
	strcpy(x->path, path);
	pthread_mutex_lock(&t->lock);
	x->next = t->mirror.extras;
	t->mirror.extras = x;
	pthread_mutex_unlock(&t->lock);
	return true;
}

/* Is the entry of SRC with this name excluded? One of another type in DST may not be. */
static bool mirror_is_excluded(const struct worker *w, const struct directory *d, const char *name)
{
	char path[PATH_MAX];
	const struct entry e = ENTRY(d, name);
	return entry_path_below(&e, path, sizeof(path)) &&
	       mirror_source_is_excluded(w->tree, d->src, name, path);
}

/* Returns 0 or -errno with the call. */
static int mirror_note_extra(struct worker *w, struct directory *d, const char *name,
			     const struct aliases *aliases, struct failure *fail)
{
	struct stat st;
	const struct entry e = ENTRY(d, name);
	if (fstatat(d->dst, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail_at(fail, "stat");
	if (aliases->unknown)
		return fail_reported(
		    fail, report_refusal(w, &e, entry_dst, ESTALE,
					 "may be the copy of an entry with another name, and inode "
					 "numbers are unreliable here: not removed"));
	return aliases_have(aliases, &st) || mirror_note(w, d, name, &st)
		   ? 0
		   : fail_if(fail, -ENOMEM, "malloc");
}

/* What a killed mirror has put aside: renames it back if nothing has its name, or notes it as what
 * SRC lacks. Any other directory of a dead process is noted, too. Returns 0 or -ENOMEM. */
static int mirror_note_left(struct worker *w, struct directory *d, const char *name)
{
	struct left l;
	bool noted = true;
	const bool dead = part_examine(&l, d->dst, name, true) && l.state == FCOPY_LEFT_DEAD;
	if (dead) {
		struct stat st;
		if (l.returns && !w->tree->options->dry_run) {
			admit_changes(w->tree, d);
			if (left_remove(&l) == 0)
				name = l.old;
		}
		noted = fstatat(d->dst, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			mirror_note(w, d, name, &st);
	}
	left_close(&l);
	if (!dead && !w->tree->options->dry_run) { /* it stays, and nobody else would notice it */
		pthread_mutex_lock(&w->tree->lock);
		stale_warn_name(d->dst, name, &w->tree->options->copy);
		pthread_mutex_unlock(&w->tree->lock);
	}
	return noted ? 0 : -ENOMEM;
}

static int mirror_compare(struct worker *w, struct directory *d, const struct name_list *src,
			  const struct name_list *dst, struct failure *fail)
{
	struct aliases aliases = {0};
	bool searched = false;
	int r = 0;
	for (size_t i = 0; i < dst->count && r == 0; i++) {
		const char *name = dst->name[i];
		if (temporary_is_drawn(name))
			r = fail_if(fail, mirror_note_left(w, d, name), "malloc");
		if (mirror_is_own(name) || system_is_lost_found(d->dst, name) ||
		    (names_have(src, name) && !mirror_is_excluded(w, d, name)))
			continue;
		r = searched ? 0 : aliases_find(&aliases, d, src, dst, fail);
		searched = true;
		if (r == 0)
			r = mirror_note_extra(w, d, name, &aliases, fail);
	}
	free(aliases.of);
	return r;
}

#define MOVED "was moved, replaced or removed during the copy"

/* A directory without a name lists nothing, whatever SRC has under its name now. If SRC lacks the
 * name, its parent directory removes the copy. */
static bool mirror_may_compare(struct worker *w, struct directory *d, bool removed)
{
	const int err = removed ? ESTALE : -opened_check_name(w->tree, d);
	if (err == 0)
		return true;
	if (opened_is_lacking(w->tree, d))
		return false;
	const struct entry e = ENTRY(d, "");
	if (opened_is_gone(err))
		report_refusal(w, &e, entry_src, err, MOVED ": nothing is removed from its copy");
	else
		report_call(w, &e, "stat", entry_src, err);
	return false;
}

/* What a check of the file system has put into its lost+found is in no backup. */
static bool mirror_is_lost_found(struct tree *t, struct directory *d)
{
	if (!d->parent || strcmp(d->name, "lost+found") != 0 || opened_use(t, d->parent) < 0)
		return false;
	const bool is = system_is_lost_found(d->parent->dst, d->name);
	opened_unuse(t, d->parent);
	return is;
}

void mirror_collect(struct worker *w, struct directory *d)
{
	const struct entry e = ENTRY(d, "");
	if (mirror_is_lost_found(w->tree, d))
		return;
	struct name_list src = {0}, dst = {0};
	struct failure fail;
	int r = names_read(d->src, &src, &fail);
	if (r < 0 && r != -ENOENT) { /* ENOENT: removed since it was opened */
		report_call(w, &e, fail.call, entry_src, -r);
		return;
	}
	/* When the names were read, it had one itself. */
	if (!mirror_may_compare(w, d, r == -ENOENT)) {
		names_free(&src);
		return;
	}
	r = names_read(d->dst, &dst, &fail);
	if (r == 0)
		r = mirror_compare(w, d, &src, &dst, &fail);
	if (r < 0 && fail.step != STEP_REPORTED)
		report_call(w, &e, fail.call, entry_dst, -r);
	names_free(&src);
	names_free(&dst);
}

/* Why nothing may be removed, or NULL. */
static const char *mirror_check(struct worker *w, struct directory *root, char *text, size_t size)
{
	const struct tree *t = w->tree;
	const uint64_t *max = t->options->max_delete;
	struct name_list src;
	if (__atomic_load_n(&t->root.failures, __ATOMIC_RELAXED) > 0 ||
	    w->sum.count[FCOPY_COUNT_FAILED] > 0)
		return "nothing is removed, because entries failed";
	if (opened_check_name(w->tree, root) < 0)
		return "nothing is removed, because SRC " MOVED;
	if (!max) {
		if (root->present > 0)
			return NULL;
		bool empty = names_read(root->src, &src, NULL) < 0 || src.count == 0;
		names_free(&src);
		return empty ? "nothing is removed, because SRC is empty; to remove all, use "
			       "--max-delete=N"
			     : "nothing is removed, because all of SRC is excluded; to remove all "
			       "else, use --max-delete=N";
	}
	uint64_t n = mirror_remove_all(w, root, true, false);
	if (n == UINT64_MAX)
		return "nothing is removed: not all can be counted, which --max-delete requires";
	n += t->mirror.removed;
	if (n <= *max)
		return NULL;
	snprintf(text, size, "nothing%s is removed: %llu would be, and --max-delete is %llu",
		 t->mirror.removed > 0 ? " else" : "", (unsigned long long)n,
		 (unsigned long long)*max);
	return text;
}

static void mirror_remove_extras(struct tree *t, struct directory *root)
{
	char text[FCOPY_DETAIL_MAX];
	struct worker *w = pool_join(t);
	if (!w) {
		tree_stop(t, ENOMEM);
		return;
	}
	const char *reason = mirror_check(w, root, text, sizeof(text));
	const struct entry e = ENTRY(root, "");
	struct fcopy_error error;
	if (reason &&
	    w->sum.count[FCOPY_COUNT_FAILED] + t->root.failures > 0) { /* the run has failed */
		error_refuse(&error, entry_dst, ENOTEMPTY, reason, FCOPY_ADVICE_NONE);
		report_warning(w, &e, &error);
	} else if (reason)
		report_refusal(w, &e, entry_dst, ENOTEMPTY, reason);
	else
		mirror_remove_all(w, root, t->options->dry_run, true);
	pool_leave(w);
}

/* Other file systems, which are mounted below, were flushed with their directories. */
static void mirror_flush(struct tree *t, const struct directory *root)
{
	const struct mirror *m = &t->mirror;
	const bool changed = outcome_sum(t->report->count, SUM_CHANGES) > 0;
	const int r = changed || m->marker != MARKER_MADE ? system_sync(root->dst) : 0;
	if (r < 0)
		tree_fail(t, "syncfs", root->dst_path, -r);
	else if (!__atomic_load_n(&m->marker_stays, __ATOMIC_RELAXED))
		mirror_remove_marker(t, root);
}

void mirror_end(struct tree *t, struct directory *root)
{
	struct mirror *m = &t->mirror;
	if (m->extras && !tree_stopped(t))
		mirror_remove_extras(t, root);
	for (struct extra *next; m->extras; m->extras = next) {
		next = m->extras->next;
		free(m->extras);
	}
	if (mirror_marks(t) && !tree_stopped(t))
		mirror_flush(t, root);
	io_close(m->fd);
	m->fd = -1;
}
