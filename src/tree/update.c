/* SPDX-License-Identifier: MIT
 * --update: is an entry that exists in DST left alone, or given the attributes that differ?
 */
#define _GNU_SOURCE
#include "update.h"
#include "directory.h"
#include "displace.h"
#include "endpoints/equal.h"
#include "endpoints/error.h"
#include "endpoints/same.h"
#include "io/io.h"
#include "links.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"
#include "seen.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)256 << 10)

static bool update_same_target(const struct entry *e)
{
	char src[PATH_MAX], dst[PATH_MAX];
	ssize_t n = readlinkat(e->dir->src, e->name, src, sizeof(src));
	return n >= 0 && n == readlinkat(e->dir->dst, e->as, dst, sizeof(dst)) &&
	       memcmp(src, dst, (size_t)n) == 0;
}

/* Reads both files from their start to their end. -errno: neither is known to be equal. */
static int update_compare(const struct worker *w, int a, int b)
{
	struct io io = {.cancel = w->tree->io.cancel};
	char *memory = malloc(2 * BLOCK);
	ssize_t n = memory ? 1 : -ENOMEM, m = 0;
	bool equal = memory;
	for (off_t at = 0; equal && n > 0; at += n) {
		n = io_read(&io, a, memory, BLOCK, at);
		for (m = 0; n > 0 && m < n;) {
			ssize_t got = io_read(&io, b, memory + BLOCK + m, (size_t)(n - m), at + m);
			if (got <= 0)
				break;
			m += got;
		}
		if (n == 0)
			m = io_read(&io, b, memory + BLOCK, 1, at);
		equal = n >= 0 && m == n && memcmp(memory, memory + BLOCK, (size_t)n) == 0 &&
			!tree_stopped(w->tree);
	}
	free(memory);
	return n < 0 ? (int)n : equal;
}

/* Opens the entry again to read it and to set its attributes; it is the file that `path` holds. */
static int update_reopen(int path)
{
	return open(io_proc_path(path).text, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* A regular file of equal size: are the bytes equal? Times prove it, unless they were set shortly
 * before a power cut, or --checksum asks for more. */
static bool update_has_bytes(struct worker *w, const struct entry *e, int fd, const struct stat *st,
			     int dst, const struct stat *old)
{
	const struct mirror *m = &w->tree->mirror;
	const bool timed = equal_times(&w->tree->equal, dst, st, old);
	const bool doubtful = m->doubted && old->st_ctim.tv_sec >= m->doubted_since;
	if (!w->tree->options->checksum && !doubtful)
		return timed;
	if (!w->tree->options->checksum && !timed)
		return false;
	char byte;
	if (st->st_size > 0 && w->tree->root.compares)
		return resume_has_same_bytes(w, e, fd, st);
	int again = st->st_size > 0 ? update_reopen(dst) : -1;
	/* procfs and others report the size 0 of files that have content. */
	bool equal = st->st_size == 0 ? pread(fd, &byte, 1, 0) == 0
				      : again >= 0 && update_compare(w, fd, again) == 1;
	if (again >= 0)
		close(again);
	return equal;
}

/* fd is the open source, or -1 if it is a symlink or a special file; dst is O_PATH. */
static bool update_is_unchanged(struct worker *w, const struct entry *e, int fd,
				const struct stat *st, int dst, const struct stat *old)
{
	if ((st->st_mode ^ old->st_mode) & S_IFMT)
		return false;
	if (S_ISLNK(st->st_mode))
		return update_same_target(e);
	if (!S_ISREG(st->st_mode))
		return st->st_rdev == old->st_rdev;
	return st->st_size == old->st_size && update_has_bytes(w, e, fd, st, dst, old) &&
	       (!w->tree->root.compares || resume_flush(w, e));
}

static bool update_differs(const struct stat *now, const struct stat *was)
{
	return now->st_mode != was->st_mode || now->st_uid != was->st_uid ||
	       now->st_gid != was->st_gid || !same_mtime(now, was);
}

/* Sets the attributes that differ. Returns 1; 0 if the entry must be replaced instead: other names
 * of its inode may belong to snapshots, and attributes of symlinks and special files are set when
 * they are made; or -errno, reported. */
static int update_repair(struct worker *w, const struct entry *e, int fd, const struct stat *st,
			 int dst, struct stat *old)
{
	const unsigned preserve = equal_preserves(&w->tree->equal, e->dir->dst, st, old,
						  w->tree->options->copy.preserve);
	struct stat named;
	int src = fd >= 0 ? fd
			  : openat(e->dir->src, e->name,
				   O_PATH | O_CLOEXEC | (e->follow ? 0 : O_NOFOLLOW));
	if (src < 0)
		return 0;
	bool equal = metadata_is_equal(&w->tree->equal, src, st, dst, old, preserve);
	if (src != fd)
		close(src);
	w->outcome->action = FCOPY_ACTION_UNCHANGED;
	if (equal)
		return 1;
	/* Of what a symlink in DST leads to, no attribute is set: the copy decides whether to
	 * follow it. */
	if (!S_ISREG(st->st_mode) || old->st_nlink > 1 ||
	    fstatat(e->dir->dst, e->as, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    named.st_dev != old->st_dev || named.st_ino != old->st_ino)
		return 0;
	if (w->tree->options->dry_run) {
		w->outcome->action = FCOPY_ACTION_REPAIRED;
		return 1;
	}
	int again = update_reopen(dst);
	if (again < 0)
		return 0;
	const uint64_t sum = metadata_sum(again);
	int lost = directory_preserve(w, e, fd, again, st);
	/* Not what was tried: a time or an owner may be one that DST cannot store. */
	if (lost == 0 &&
	    (fstat(again, &named) < 0 || update_differs(&named, old) || metadata_sum(again) != sum))
		w->outcome->action = FCOPY_ACTION_REPAIRED;
	close(again);
	return lost < 0 ? lost : 1;
}

/* The comparison was cut short. */
static int update_stop(struct worker *w)
{
	w->outcome->stage = OUTCOME_NONE;
	return -EINTR;
}

/* Returns 1 if the entry is left alone, or 0 or -errno as update_repair. */
static int update_changed(struct worker *w, const struct entry *e, int fd, const struct stat *st,
			  int dst, struct stat *old)
{
	/* SRC itself, by a symlink or a hard link, is no copy of it: the copy refuses it. */
	const bool itself = w->tree->options->copy.resume && S_ISREG(st->st_mode) &&
			    st->st_dev == old->st_dev && st->st_ino == old->st_ino;
	if (itself || !update_is_unchanged(w, e, fd, st, dst, old))
		return tree_stopped(w->tree) ? update_stop(w) : 0;
	int r = update_repair(w, e, fd, st, dst, old);
	/* Where DST takes two names for one, no other entry may replace it. A name that becomes a
	 * link to another one is replaced. */
	if (r > 0 && old->st_nlink == 1 && rivals_possible(w->tree) && !links_may_exist(w, st) &&
	    !rivals_claim_new(w->tree, old))
		return rivals_report(w, e);
	if (r > 0 && links_may_exist(w, st)) /* another name may become a link to it */
		w->made = identity_of(dst);
	if (r == 0)
		w->outcome->action = FCOPY_ACTION_COPIED;
	return r;
}

/* Most files of a mirror are unchanged and have no extended attributes: two stats and two lists
 * show that, without an open. */
bool update_is_untouched(struct worker *w, const struct entry *e)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const struct mirror *m = &w->tree->mirror;
	const bool follow = !tree_removes(w->tree);
	struct stat src, dst;
	if (o->update != FCOPY_UPDATE_CHANGED || o->checksum || m->doubted ||
	    e->dir->state != DIRECTORY_OLD ||
	    fstatat(e->dir->src, e->name, &src, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(e->dir->dst, e->as, &dst, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0 ||
	    same_output(&o->copy, &dst))
		return false;
	if (!S_ISREG(src.st_mode) || !S_ISREG(dst.st_mode) || src.st_size != dst.st_size ||
	    links_may_exist(w, &src) || !equal_times(&w->tree->equal, e->dir->dst, &src, &dst))
		return false;
	const unsigned preserve = equal_preserves(&w->tree->equal, e->dir->dst, &src, &dst,
						  o->copy.preserve);
	if (!metadata_stat_is_equal(&w->tree->equal, &src, e->dir->dst, &dst, preserve))
		return false;
	if (preserve & (FCOPY_ATTR_XATTR | FCOPY_ATTR_MODE) &&
	    !(metadata_lacks_attributes(e->dir->src, e->name, e->follow) &&
	      metadata_lacks_attributes(e->dir->dst, e->as, follow)))
		return false;
	/* Where DST takes two names for one, the slow way finds the rival. */
	if (rivals_possible(w->tree) && dst.st_nlink == 1 && !rivals_claim_new(w->tree, &dst))
		return false;
	w->outcome->action = FCOPY_ACTION_UNCHANGED;
	w->outcome->type = S_IFREG;
	return true;
}

static int update_skip(struct worker *w, const struct entry *e)
{
	if (w->tree->options->update == FCOPY_UPDATE_NONE_FAIL)
		return report_refusal(w, e, entry_dst, EEXIST, "exists, and is not replaced");
	w->outcome->action = FCOPY_ACTION_SKIPPED;
	return 1;
}

/* By --update=none, none-fail or older. */
static bool update_is_skipped(const struct worker *w, const struct stat *st, int dst,
			      const struct stat *old)
{
	const enum fcopy_update update = w->tree->options->update;
	if (update == FCOPY_UPDATE_NONE || update == FCOPY_UPDATE_NONE_FAIL)
		return true;
	return update == FCOPY_UPDATE_OLDER && (st->st_mtim.tv_sec < old->st_mtim.tv_sec ||
						(st->st_mtim.tv_sec == old->st_mtim.tv_sec &&
						 st->st_mtim.tv_nsec <= old->st_mtim.tv_nsec) ||
						equal_times(&w->tree->equal, dst, st, old));
}

/* The entry of DST could not be looked at. It is absent, or leads nowhere, and the copy reports
 * what that means; any other errno is a failure: the options have not seen what the copy would
 * replace. */
static bool update_looked(struct worker *w, const struct entry *e, int err)
{
	if (e->dir->dst < 0 || err == ENOENT || err == ELOOP || err == ENOTDIR || err == EACCES)
		return false;
	report_call(w, e, "open", entry_dst, err);
	return true;
}

bool update_leave_other(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct stat old;
	if (fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return update_looked(w, e, errno);
	return update_is_skipped(w, st, e->dir->dst, &old) && update_skip(w, e) != 0;
}

/* A copy of a file follows a symlink in DST, unless a mirror, an option or a link replaces that. */
static bool update_follows(const struct tree *t, const struct stat *st)
{
	const struct fcopy_tree_options *o = t->options;
	const bool replaces = displace_replaces(t) || o->link || o->symbolic_link;
	return S_ISREG(st->st_mode) && !tree_removes(t) &&
	       (o->update == FCOPY_UPDATE_CHANGED || !replaces);
}

bool update_leave(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const bool removes = tree_removes(w->tree);
	/* A complete new tree has no symlink in place of a file. */
	const bool follow = update_follows(w->tree, st) && !w->tree->root.compares;
	struct stat old;
	w->clears = false;
	if (e->dir->state != DIRECTORY_OLD || (!o->update && !removes))
		return false;
	const bool asks = o->update && o->update != FCOPY_UPDATE_CHANGED && !o->dry_run;
	int dst = openat(e->dir->dst, e->as, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (dst < 0 && errno == ENOENT && asks)
		seen_note(w, NULL);
	if (dst < 0)
		return update_looked(w, e, errno);
	int r = 0;
	if (fstat(dst, &old) < 0)
		r = report_call(w, e, "fstat", entry_dst, errno);
	else if ((S_ISDIR(old.st_mode) && !removes && o->update == FCOPY_UPDATE_CHANGED) ||
		 same_output(&o->copy, &old)) {
		close(dst);
		return false; /* the copy refuses it */
	} else if (removes && (st->st_mode ^ old.st_mode) & S_IFMT) {
		r = update_is_skipped(w, st, dst, &old) ? update_skip(w, e) : 0;
		w->clears = r == 0;
	} else if (o->update == FCOPY_UPDATE_CHANGED)
		r = update_changed(w, e, fd, st, dst, &old);
	else if (update_is_skipped(w, st, dst, &old))
		r = update_skip(w, e);
	else if (asks)
		seen_note(w, &old);
	close(dst);
	return r != 0;
}
