/* SPDX-License-Identifier: MIT
 * --update: is an entry that exists in DST left alone, or given the attributes that differ?
 */
#include "displace.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "entry.h"
#include "io/io.h"
#include "report.h"
#include "resume.h"
#include "rivals.h"
#include "spelling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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
	struct io io = {.cancel = w->tree->options->copy.cancel};
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
	const bool timed = equal_times(&w->tree->known.equal, dst, st, old);
	const bool doubted = mirror_doubts_file(&w->tree->mirror, old);
	if (!w->tree->options->checksum && !doubted)
		return timed;
	if (!w->tree->options->checksum && !timed)
		return false;
	char byte;
	if (st->st_size > 0 && w->tree->root.compares)
		return resume_has_same_bytes(w, e, fd, st);
	int again = st->st_size > 0 ? update_reopen(dst) : -1;
	/* procfs and others report the size 0 of files that have content. */
	bool equal = st->st_size == 0    ? pread(fd, &byte, 1, 0) == 0
		     : again < 0         ? false
		     : w->options.resume ? resume_are_same_bytes(w, fd, again, st->st_size)
					 : update_compare(w, fd, again) == 1;
	io_close(again);
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

/* Would a new inode get the owner of SRC? preserve: what DST can store. */
static bool update_gets_owner(const struct worker *w, const struct stat *st, const struct stat *old,
			      unsigned preserve)
{
	return (st->st_uid == old->st_uid && st->st_gid == old->st_gid) ||
	       (preserve & FCOPY_ATTR_OWNERSHIP &&
		(w->tree->known.equal.root || st->st_uid == geteuid()));
}

/* Does it lack setuid or setgid bits, or capabilities, that only a new inode gets? */
static bool update_needs_inode(const struct worker *w, const struct entry *e, int fd, int dst,
			       const struct stat *old, unsigned preserve)
{
	const struct stat *st = &w->work.facts.src;
	if (in_place_always(&w->options))
		return false;
	const struct attributes_held held = attributes_hold(fd, st, dst, old);
	const bool bits = preserve & FCOPY_ATTR_MODE && st->st_mode & 06000 & ~held.bits &&
			  storage_stores(w->tree->known.storage, e->dir->dst,
					 STORAGE_CHANGES_MODES);
	return (bits || (preserve & FCOPY_ATTR_XATTR && held.lacks)) &&
	       update_gets_owner(w, st, old, preserve);
}

/* Sets the attributes that differ. Returns 1; 0 if the entry must be replaced instead: other names
 * of its inode may belong to snapshots, and attributes of symlinks and special files are set when
 * they are made; or -errno, reported. */
static int update_repair(struct worker *w, const struct entry *e, int fd, const struct stat *st,
			 int dst, struct stat *old)
{
	const unsigned preserve = equal_preserves(&w->tree->known.equal, e->dir->dst, st, old,
						  w->tree->options->copy.preserve);
	struct stat named;
	int src = fd >= 0 ? fd
			  : openat(e->dir->src, e->name,
				   O_PATH | O_CLOEXEC | (e->follow ? 0 : O_NOFOLLOW));
	if (src < 0)
		return 0;
	bool equal = equal_attributes(&w->tree->known.equal, src, st, dst, old, preserve);
	if (src != fd)
		close(src);
	w->work.outcome.action = FCOPY_ACTION_UNCHANGED;
	if (equal)
		return 1;
	/* Of what a symlink in DST leads to, no attribute is set: the copy decides whether to
	 * follow it. */
	if (!S_ISREG(st->st_mode) || old->st_nlink > 1 ||
	    update_needs_inode(w, e, fd, dst, old, preserve) ||
	    fstatat(e->dir->dst, e->as, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !same_inode(&named, old))
		return 0;
	if (w->tree->options->dry_run) {
		w->work.outcome.action = FCOPY_ACTION_REPAIRED;
		return 1;
	}
	int again = update_reopen(dst);
	if (again < 0)
		return 0;
	const uint64_t sum = attributes_sum(again, old);
	int lost = preserve_open(w, e, fd, again, st, true);
	/* Not what was tried: a time or an owner may be one that DST cannot store. */
	if (lost == 0 && (fstat(again, &named) < 0 || attributes_sum(again, &named) != sum))
		w->work.outcome.action = FCOPY_ACTION_REPAIRED;
	close(again);
	return lost < 0 ? lost : 1;
}

/* Is the entry compared with what a symlink in DST leads to? */
static bool update_reaches(const struct worker *w)
{
	const struct facts *f = &w->work.facts;
	return decide_compared(&w->tree->root.ground, f, w->tree->options) == &f->target;
}

int update_is_equal(struct worker *w, const struct entry *e, int fd, int *dst)
{
	struct facts *f = &w->work.facts;
	const bool reaches = update_reaches(w), follow = reaches && !w->tree->root.compares;
	struct stat *old = reaches ? &f->target : &f->old;
	*dst = openat(e->dir->dst, e->as, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (*dst < 0 && errno == ENOENT)
		return 0;
	if (*dst < 0)
		return report_call(w, e, "open", entry_dst, errno);
	int r = fstat(*dst, old) < 0 ? report_call(w, e, "fstat", entry_dst, errno)
				     : update_is_unchanged(w, e, fd, &f->src, *dst, old);
	if (r <= 0)
		close(*dst);
	return r;
}

/* --resume of several SRC: this one was complete, but the earlier run may not have flushed it. */
static int update_end_part(struct worker *w, const struct entry *e, int fd, const struct stat *st,
			   int dst)
{
	const int again = w->options.fsync ? update_reopen(dst) : -1;
	const bool flushed = !w->options.fsync || (again >= 0 && fsync(again) == 0);
	const int err = errno;
	io_close(again);
	if (!flushed)
		return report_call(w, e, again < 0 ? "open" : "fsync", entry_dst, err);
	/* That run may have been killed before it removed its part. */
	partial_remove(w->work.place.dir, w->work.place.name, fd, st);
	return 1;
}

int update_leave(struct worker *w, const struct entry *e, int fd, int dst)
{
	const struct stat *st = &w->work.facts.src;
	struct stat old;
	int r = fstat(dst, &old) < 0 ? report_call(w, e, "fstat", entry_dst, errno)
				     : update_repair(w, e, fd, st, dst, &old);
	/* No other entry may replace it: DST may take two names for one, and a symlink may lead to
	 * it. A name that becomes a link to another one is replaced. */
	const bool links = links_may_exist(w, st), reaches = update_reaches(w);
	if (r > 0 && !(reaches ? rivals_leave_target(w->tree, e, &old)
		       : links ? rivals_keep_linked(w->tree, e, &old)
			       : rivals_keep(w->tree, e, &old)))
		r = rivals_report(w, e);
	if (r > 0 && links) /* another name may become a link to it */
		w->work.made = identity_of(dst);
	if (r == 0)
		w->work.outcome.action = FCOPY_ACTION_COPIED;
	if (r > 0 && w->options.resume && S_ISREG(st->st_mode) && !w->tree->options->dry_run)
		r = update_end_part(w, e, fd, st, dst);
	close(dst);
	return r;
}

/* Most files of a mirror are unchanged and have no extended attributes: two stats and two lists
 * show that, without an open. */
bool update_is_untouched(struct worker *w, const struct entry *e)
{
	const struct fcopy_tree_options *o = w->tree->options;
	const struct stat *dst = &w->work.place.st;
	struct fcopy_error error;
	struct stat src;
	if (o->update != FCOPY_UPDATE_CHANGED || o->checksum || mirror_doubts(&w->tree->mirror) ||
	    e->dir->state != DIRECTORY_OLD ||
	    fstatat(e->dir->src, e->name, &src, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	if (place_borrow(&w->work.place, e->dir->dst, e->as, entry_dst, &error) < 0)
		place_close(&w->work.place);
	w->work.place.dev = e->dir->dst_inode.dev;
	if (!w->work.place.exists || !S_ISREG(src.st_mode) || !S_ISREG(dst->st_mode) ||
	    src.st_size != dst->st_size || links_may_exist(w, &src) ||
	    !equal_times(&w->tree->known.equal, e->dir->dst, &src, dst))
		return false;
	const unsigned preserve = equal_preserves(&w->tree->known.equal, e->dir->dst, &src, dst,
						  o->copy.preserve);
	if (!equal_stats(&w->tree->known.equal, &src, e->dir->dst, dst,
			 preserve & ~(unsigned)FCOPY_ATTR_TIMESTAMPS)) /* these are equal */
		return false;
	if (preserve & (FCOPY_ATTR_XATTR | FCOPY_ATTR_MODE) &&
	    !(xattr_lacks(e->dir->src, e->name, e->follow) &&
	      xattr_lacks(e->dir->dst, e->as, false)))
		return false;
	w->work.facts = (struct facts){.looked = true,
				       .exists = true,
				       .src = src,
				       .old = *dst,
				       .old_output = same_output(&o->copy, dst),
				       .content = CONTENT_EQUAL};
	w->work.decision = decide(&w->tree->root.ground, &w->work.facts, o);
	if (w->work.decision.act != ACT_LEAVE)
		return false;
	/* Where DST takes two names for one, the slow way finds the rival. */
	if (spelling_meets(w, e, &src, false) || !rivals_keep(w->tree, e, dst) ||
	    spelling_note(w, e))
		return false;
	w->work.outcome.action = FCOPY_ACTION_UNCHANGED;
	w->work.outcome.type = S_IFREG;
	return true;
}

bool update_keeps(const struct tree *t, const struct entry *e, const struct stat *st,
		  const struct stat *old)
{
	return !time_is_before(old->st_mtim, st->st_mtim) ||
	       equal_times(&t->known.equal, e->dir->dst, st, old);
}

/* --link-dest: a file that is unchanged in an earlier copy becomes a hard link to that copy's file.
 */

/* Replaces *fd by its directory `name`; -1 after a warning if there is none. */
static void link_dest_enter_name(struct tree *t, const char *name, int *fd)
{
	char path[PATH_MAX];
	struct fcopy_error error = {
	    .err = ENOENT, .path = path, .reason = "does not exist: no file of this SRC is linked"};
	int below = openat(*fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0) {
		int n = snprintf(path, sizeof(path), "%s/%s", t->options->link_dest, name);
		if (errno != ENOENT || n >= PATH_MAX)
			error_call(&error, "open", n < PATH_MAX ? path : name, errno);
		report_operand_warning(t, &error);
	}
	close(*fd);
	*fd = below;
}

int link_dest_open(struct tree *t, int dst, const char *name, int *fd)
{
	const char *path = t->options->link_dest;
	struct stat st, other;
	*fd = -1;
	if (!path)
		return 0;
	*fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return tree_fail(t, "open", path, errno);
	if (fstat(*fd, &st) < 0 || fstat(dst, &other) < 0)
		return tree_fail(t, "fstat", path, errno);
	if (st.st_dev == other.st_dev) {
		if (name && t->operands->dst.kind == OPERAND_INTO)
			link_dest_enter_name(t, name, fd);
		if (*fd >= 0)
			t->linked = mirror_look(*fd);
		return 0;
	}
	close(*fd);
	*fd = -1;
	return tree_refuse(t, path, EXDEV,
			   "is on another file system or subvolume than DST: no file can be linked",
			   FCOPY_ADVICE_USAGE);
}

int link_dest_enter(const struct directory *parent, const char *name)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	return parent->link < 0 ? -1 : openat(parent->link, name, flags);
}

/* Are the bytes of a file of equal size and times equal? Compares them with --checksum, after a
 * possible power cut, and with --verify if the file will be cloned: a hard link is not read.
 * Otherwise returns true. */
static bool link_dest_has_bytes(const struct worker *w, int fd, int found, const struct stat *old)
{
	const struct tree *t = w->tree;
	const struct fcopy_options *o = &t->options->copy;
	const bool verifies = o->verify &&
			      (o->reflink == FCOPY_WHEN_AUTO || o->reflink == FCOPY_WHEN_ALWAYS);
	if (!t->options->checksum && !verifies && !mirror_doubts_file(&t->mirror, old) &&
	    !mirror_doubts_file(&t->linked, old))
		return true;
	const int again = update_reopen(found);
	const bool equal = again >= 0 && update_compare(w, fd, again) == 1;
	io_close(again);
	return equal;
}

/* Would a link let another user change what a copy would not? The owner of the directory can
 * replace a copy anyway. On storage that gives all files to one user, that user owns it. */
static bool link_dest_is_exposed(const struct entry *e, const struct stat *st,
				 const struct stat *old)
{
	struct stat dir;
	return io_is_foreign(old) && old->st_uid != st->st_uid &&
	       (fstat(e->dir->dst, &dir) < 0 || dir.st_uid != old->st_uid);
}

int link_dest_find(const struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct stat old;
	struct equal *equal = &w->tree->known.equal;
	int found = openat(e->dir->link, e->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (found < 0)
		return -1;
	if (fstat(found, &old) == 0 && S_ISREG(old.st_mode) && old.st_size == st->st_size &&
	    !link_dest_is_exposed(e, st, &old) && !(old.st_mode & ~st->st_mode & 06000) &&
	    !same_output(&w->tree->options->copy, &old) && equal_times(equal, found, st, &old) &&
	    equal_attributes(
		equal, fd, st, found, &old,
		equal_preserves(equal, e->dir->dst, st, &old, w->tree->options->copy.preserve)) &&
	    link_dest_has_bytes(w, fd, found, &old))
		return found;
	close(found);
	return -1;
}

bool link_dest_is_made(struct worker *w, const struct entry *e, int fd)
{
	const struct facts *f = &w->work.facts;
	struct stat earlier;
	const int found = e->dir->link < 0 || fd < 0 ? -1 : link_dest_find(w, e, fd, &f->src);
	const bool made = found >= 0 && fstat(found, &earlier) == 0 &&
			  same_inode(&earlier, &f->old);
	if (made && links_may_exist(w, &f->src)) /* another name may become a link to it */
		w->work.made = identity_of(found);
	io_close(found);
	if (made)
		rivals_note_linked(w, e, &f->old, false);
	return made;
}
