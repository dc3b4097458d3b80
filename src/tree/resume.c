/* SPDX-License-Identifier: MIT
 * DST.fcopy-part, the tree that an earlier copy did not complete. A file in it that has the size
 * and the modification time of its source is complete, and everything else is copied again: while a
 * part is resumed, a file gets its name only when it is complete and has that time, and record.c
 * sets the times of a tree that is kept. After a power cut this proves nothing unless all was
 * flushed, which the mark notes; without that note the bytes are compared, too.
 *
 * A file in the part, its mark, says that fcopy left this directory: --resume removes what the
 * source does not have, which must not happen to a directory of the user's. The commit removes the
 * mark just before the rename; unmarked.c recognises a part whose commit was killed between the
 * two.
 */
#define _GNU_SOURCE
#include "resume.h"
#include "endpoints/error.h"
#include "permissions.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int resume_refuse(const char *dst, int err, const char *reason, struct fcopy_error *error)
{
	return error_refuse(error, dst, err, reason, FCOPY_ADVICE_REMOVE_PART);
}

static const char mark_text[] =
    "This directory is an unfinished copy. Run the same fcopy command again with --resume to\n"
    "complete it; then fcopy removes this file. Without this file, --resume refuses the "
    "directory.\n";

int resume_mark(int part)
{
	int fd = openat(part, RESUME_MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	(void)!write(fd, mark_text, sizeof(mark_text) - 1); /* an empty file is a mark, too */
	close(fd);
	return 0;
}

static const char proof[] = "Its complete files were on the disk when fcopy ended.\n";

int resume_prove(int part, bool proven)
{
	const off_t at = sizeof(mark_text) - 1;
	int fd = openat(part, RESUME_MARK, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = ftruncate(fd, at) < 0 ? -errno : 0;
	if (r == 0 && (proven ? pwrite(fd, proof, sizeof(proof) - 1, at) : fsync(fd)) < 0)
		r = -errno;
	close(fd);
	return r;
}

bool resume_is_proven(int part)
{
	char text[sizeof(proof)];
	int fd = openat(part, RESUME_MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), sizeof(mark_text) - 1);
	if (fd >= 0)
		close(fd);
	return n == sizeof(proof) - 1 && memcmp(text, proof, sizeof(proof) - 1) == 0;
}

int resume_unmark(int part)
{
	return unlinkat(part, RESUME_MARK, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* An empty directory has nothing to lose: a process that was killed may not have marked it yet.
 * Returns 1 if it has no mark but may get one. */
static int part_check_mark(int fd, const struct operand *from, const struct operand *to,
			   bool follow, struct fcopy_error *error)
{
	struct stat st;
	if (fstatat(fd, RESUME_MARK, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		return 0;
	int r = private_is_empty(fd);
	if (r == 0 && !unmarked_is_copy(fd, from->fd, follow))
		return resume_refuse(
		    to->path, EPERM,
		    "its .fcopy-part was not left by fcopy: it has no " RESUME_MARK, error);
	return r < 0 ? error_call(error, "getdents64 of its .fcopy-part", to->path, -r) : 1;
}

static int part_check_name(int fd, const struct operand *to, const char *part,
			   struct fcopy_error *error)
{
	struct stat st, named;
	if (fstat(fd, &st) < 0 || fstatat(to->place.dir, part, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return error_call(error, "stat of its .fcopy-part", to->path, errno);
	return st.st_dev == named.st_dev && st.st_ino == named.st_ino
		   ? 0
		   : error_refuse(error, to->path, EBUSY,
				  "another copy has just used its .fcopy-part", FCOPY_ADVICE_NONE);
}

/* Before the lock was taken, another copy may have committed the part. */
static int resume_lock(int fd, const struct operand *from, const struct operand *to,
		       const char *part, bool follow, bool *proven, struct fcopy_error *error)
{
	const char *dst = to->path;
	struct stat st;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			   ? error_refuse(error, dst, EBUSY, "another copy writes its .fcopy-part",
					  FCOPY_ADVICE_NONE)
			   : error_call(error, "lock of its .fcopy-part", dst, errno);
	if (fstat(fd, &st) < 0)
		return error_call(error, "fstat of its .fcopy-part", dst, errno);
	int r = part_refuse_shared(to->place.dir, to->place.name, dst, error);
	if (r < 0)
		return r;
	/* Shards could commit it until now: they do not hold its lock. */
	if ((r = part_check_name(fd, to, part, error)) < 0)
		return r;
	/* Another user could write into the part during this copy. */
	const char *unsafe = part_unsafe_reason(to->place.dir, &st);
	if (unsafe)
		return resume_refuse(dst, EPERM, unsafe, error);
	*proven = resume_is_proven(fd);
	r = part_check_mark(fd, from, to, follow, error);
	int set = r < 0 ? 0 : permissions_set(fd, (st.st_mode & 07000) | 0700);
	if (set < 0 && !permissions_are_fixed(-set))
		return error_call(error, "fchmod", dst, -set);
	if (r <= 0)
		return r;
	*proven = private_is_empty(fd) == 1;
	/* Last: an unmarked directory can be removed. */
	return (r = resume_mark(fd)) < 0 ? error_call(error, "open in its .fcopy-part", dst, -r)
					 : 0;
}

int resume_open(const struct operand *from, const struct operand *to, const char *part, mode_t mode,
		bool follow, bool *proven, struct fcopy_error *error)
{
	const char *dst = to->path;
	int parent = to->place.dir;
	bool created = mkdirat(parent, part, mode & 0755) == 0;
	if (!created && errno != EEXIST)
		return error_call(error, "mkdir", dst, errno);
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, part, flags);
	if (fd < 0 && errno == EACCES && created && permissions_admit_owner(parent, part) > 0)
		fd = openat(parent, part, flags);
	int r = fd >= 0 ? resume_lock(fd, from, to, part, follow, proven, error)
		: errno == ENOTDIR || errno == ELOOP
		    ? resume_refuse(dst, errno, "its .fcopy-part is not a directory", error)
		    : error_call(error, "open of its .fcopy-part", dst, errno);
	if (r == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	if (created)
		unlinkat(parent, part, AT_REMOVEDIR);
	return r;
}

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

/* Sets attributes that the options of the earlier run may not have asked for. */
static bool resume_set_attributes(const struct worker *w, const struct entry *e, int fd,
				  const struct stat *st)
{
	struct fcopy_error error;
	bool same = true;
	unsigned preserve = w->tree->options->copy.preserve;
	if (!preserve)
		return true;
	int dst = openat(e->dir->dst, e->as, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (dst < 0)
		return false;
	const struct metadata_pair pair = {fd, dst, st, entry_src, entry_dst, true};
	preserve &= ~FCOPY_ATTR_TIMESTAMPS; /* resume_set_time */
	for (size_t i = 0; i < METADATA_ATTRIBUTES; i++)
		if (preserve & metadata_order[i])
			same &= metadata_copy_attribute(metadata_order[i], &pair, &error) == 0;
	close(dst);
	return same;
}

/* The source's mode and time may be others than in the earlier run. A file system without modes
 * returns EPERM. */
static bool resume_set_mode(const struct worker *w, const struct entry *e, const struct stat *old,
			    const struct stat *st)
{
	const bool preserved = w->tree->options->copy.preserve & FCOPY_ATTR_MODE;
	mode_t mode = st->st_mode & 0777 & (preserved ? 0 : permissions_left(w->tree, e->dir->dst));
	if (S_ISDIR(old->st_mode)) /* setgid is inherited */
		mode |= (old->st_mode & S_ISGID) | (st->st_mode & S_ISVTX);
	return preserved || mode == (old->st_mode & 07777) ||
	       fchmodat(e->dir->dst, e->as, mode, AT_SYMLINK_NOFOLLOW) == 0 || errno == EPERM;
}

static bool resume_set_time(const struct entry *e, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	return utimensat(e->dir->dst, e->as, times, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The earlier run may not have flushed the file, and no syncfs(2) follows. Opened for writing: SMB
 * ignores fsync(2) otherwise (cifs_strict_fsync in fs/smb/client/file.c). */
static bool resume_flush(const struct worker *w, const struct entry *e)
{
	if (!w->tree->flush_each)
		return true;
	int dst = openat(e->dir->dst, e->as, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool flushed = dst >= 0 && fsync(dst) == 0;
	if (dst >= 0)
		close(dst);
	return flushed;
}

/* After kill -9, nobody can know whether what has the right size and time is also on the disk:
 * after a power cut it can be zeros, because a file system writes both before the data. With
 * --fsync, read from the storage: after a failed writeback the page cache may contain data that the
 * disk does not, and the flush at the end would succeed. */
bool resume_has_same_bytes(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	int dst = openat(e->dir->dst, e->as, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct copy c = {.options = &w->options,
			 .report = &w->file,
			 .src = {.fd = fd, .path = entry_src},
			 .dst = {.fd = dst, .path = entry_dst}};
	bool cached, same = false;
	if (dst >= 0) {
		off_t equal = compare_files(&c, 0, st->st_size, w->options.fsync, &cached);
		same = equal == st->st_size;
		close(dst);
	}
	w->file.error = (struct fcopy_error){0};
	return same;
}

bool resume_update(const struct worker *w, const struct entry *e, int fd, const struct stat *old,
		   const struct stat *st)
{
	return resume_set_mode(w, e, old, st) && resume_set_attributes(w, e, fd, st);
}

bool resume_is_current(struct worker *w, const struct entry *e, int fd, const struct stat *old,
		       const struct stat *st)
{
	bool same_time = same_mtime(old, st);
	return S_ISREG(old->st_mode) && old->st_size == st->st_size &&
	       unmarked_near_time(old, st) &&
	       ((same_time && w->tree->proven) || resume_has_same_bytes(w, e, fd, st)) &&
	       (same_time || resume_set_time(e, st)) && resume_update(w, e, fd, old, st) &&
	       resume_flush(w, e);
}

bool resume_is_complete(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct stat old;
	if (fstatat(e->dir->dst, e->as, &old, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	/* --verify promises that every file of the copy was read back. A file with hard links may
	 * have other names in the source now. */
	if (!w->options.verify && old.st_nlink == 1 && resume_is_current(w, e, fd, &old, st))
		return true;
	/* A comparison that was interrupted does not show that the copy differs. */
	if (!tree_stopped(w->tree))
		remove_entry(e->dir->dst, e->as); /* if this fails, its creation reports it */
	return false;
}

bool resume_keeps_part(const struct worker *w, const struct entry *e)
{
	struct stat st;
	char part[NAME_MAX + 1];
	const struct tree *t = w->tree;
	if (!t->options->copy.resume || !t->atomic || t->resume)
		return false;
	int n = snprintf(part, sizeof(part), "%s" PART_SUFFIX, e->as);
	if (t->single || n >= (int)sizeof(part))
		return t->single;
	/* The part of what a symlink leads to can be the copy of another entry. */
	if (fstatat(e->dir->dst, e->as, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return false;
	return fstatat(e->dir->src, part, &st, AT_SYMLINK_NOFOLLOW) < 0;
}
