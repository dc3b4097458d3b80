/* SPDX-License-Identifier: MIT
 * A tree in DST.fcopy-part that an earlier run did not complete. The journal says which files are
 * complete, and what their sources were: a file is copied again unless its source still has the
 * same size, mtime and ctime. What the journal does not prove is compared: see part/part.h.
 */
#define _GNU_SOURCE
#include "resume.h"
#include "copy/compare.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int resume_make_directory(int dir, const char *name, mode_t mode, bool *fresh)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		bool open = (st.st_mode & 0700) == 0700;
		mode_t mode_open = (st.st_mode & 07777) | 0700;
		return open || fchmodat(dir, name, mode_open, AT_SYMLINK_NOFOLLOW) == 0 ? 0
											: -errno;
	}
	int r = remove_entry(dir, name);
	if (r == 0)
		r = mkdirat(dir, name, mode) < 0 ? -errno : 0;
	*fresh = r == 0;
	return r;
}

/* With --fsync, reads from the storage: after a failed writeback the page cache may contain data
 * that the disk does not, and the flush at the end would succeed. */
bool resume_has_same_bytes(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	int dst = openat(e->dir->dst, e->as, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct copy c = {.options = &w->options,
			 .report = &w->file,
			 .src = {.fd = fd, .path = entry_src},
			 .dst = {.fd = dst, .path = entry_dst}};
	bool cached, same = false;
	if (dst >= 0) {
		off_t equal = compare_files(&c, 0, st->st_size, w->tree->options->copy.fsync, false,
					    &cached);
		same = equal == st->st_size;
		close(dst);
	}
	w->file.error = (struct fcopy_error){0};
	return same;
}

/* Opened for writing: SMB ignores fsync(2) otherwise (cifs_strict_fsync in fs/smb/client/file.c).
 */
bool resume_flush(const struct worker *w, const struct entry *e)
{
	if (w->tree->root.ground.flush != FLUSH_EACH)
		return true;
	int dst = openat(e->dir->dst, e->as, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool flushed = dst >= 0 && fsync(dst) == 0;
	if (dst >= 0)
		close(dst);
	return flushed;
}

/* A file that was compared is noted again: from then on its bytes are known. */
static bool resume_may_reuse(struct worker *w, const struct entry *e, int fd, const struct stat *st,
			     const struct journal_fact *done, bool sure)
{
	/* --verify promises that every file of the copy was read back, and --fsync that it was
	 * flushed: a writeback that failed is reported only once. */
	if (sure && !w->options.verify && !journal_is_recent(&done->source, &done->when))
		return resume_flush(w, e);
	if (!resume_has_same_bytes(w, e, fd, st) || !resume_flush(w, e))
		return false;
	record_add(w, e, st);
	return true;
}

bool resume_is_complete(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct part *part = w->tree->root.record->part;
	const struct journal_source now = record_source(w->tree->root.record, st);
	struct journal_fact done;
	struct stat old;
	char path[PATH_MAX];
	bool sure;
	if (fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	entry_path_below(e, path, sizeof(path));
	const bool noted = journal_find(&part->journal, path, w->tree->options->copy.fsync, &done,
					&sure) &&
			   journal_same_source(&done.source, &now);
	if (noted && S_ISREG(old.st_mode) && old.st_size == st->st_size &&
	    resume_may_reuse(w, e, fd, st, &done, sure))
		return true;
	/* A comparison that was interrupted does not show that the copy differs. */
	if (tree_stopped(w->tree))
		return false;
	if (noted)
		part_note_again(part, path);
	remove_entry(e->dir->dst, e->as); /* if this fails, its creation reports it */
	return false;
}
