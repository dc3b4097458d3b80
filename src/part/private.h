/* SPDX-License-Identifier: MIT
 *
 * Names that other users cannot guess, and directories that other users cannot enter.
 */
#ifndef PART_PRIVATE_H
#define PART_PRIVATE_H

#include "io/io.h"
#include "journal.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Of shared.c.
 * Makes a random name that other users cannot guess. Returns 0 or -errno. */
#define TEMPORARY_SIZE sizeof(".fcopy-0123456789abcdef")
int temporary_draw(char name[TEMPORARY_SIZE]);
/* The name that stands for so many random bytes. */
#define TEMPORARY_RANDOM 16
void temporary_spell(const unsigned char random[TEMPORARY_RANDOM], char name[TEMPORARY_SIZE]);
bool temporary_is_drawn(const char *name); /* could temporary_draw have made it? */

/* A directory with a drawn name. The owner of the directory above can rename it and exchange its
 * name, but cannot reach what is in it: use it by its descriptor. The file `lock` in it is locked
 * as long as its process lives. */
#define PRIVATE_LOCK  "lock"
#define PRIVATE_ENTRY "entry" /* what is made there under this name is renamed then */
struct private_directory {
	int parent; /* the caller's; must outlive it */
	int fd, lock;
	/* By this its lock names it: its inode number; or, where the next mount may show another
	 * one, a random number. */
	uint64_t number;
	char name[TEMPORARY_SIZE];
	bool exposed; /* the storage has no owners or modes: other users may enter it */
};

/* Makes one in the open directory `parent`. Returns 0, or -errno with the failed call; -ESTALE:
 * another process has replaced the directory by its own, each time. Then *p holds nothing. */
int private_make(struct private_directory *p, int parent, struct failure *);
/* Closes it, and removes it if it holds nothing but its lock. */
void private_end(struct private_directory *p);

/* Makes the directory `name` in `parent`, and opens it. Where another user could exchange the name
 * before it is open, it is made in a private directory, and renamed; moves: directories can be
 * renamed here. Where that is impossible, what was opened must be a new and empty directory of this
 * user. left: the mode that mkdir(2) leaves of `mode`; then its owner gets all rights and, if
 * `closed`, nobody else any, before it has its name. Returns a descriptor, or -errno with the
 * failed call. -EEXIST: the name exists; -ESTALE: another process has replaced the directory. */
int private_make_directory(int parent, const char *name, mode_t mode, bool moves, bool closed,
			   mode_t *left, struct failure *);
/* Of shared.c.
 * Renames without replacing anything: the only function that does. Returns 0; -EEXIST: the name is
 * taken; or -errno. Where RENAME_NOREPLACE is unsupported, an empty directory may be replaced by a
 * directory; and where hard links are, too, what another process makes at that moment. */
int private_rename(int from, const char *name, int to, const char *as);
/* As private_rename(), and *fail changes if another call has failed than a rename, and only then.
 */
int private_rename_as(int from, const char *name, int to, const char *as, struct failure *);
/* close(2) does not wait until FUSE has released the file, and some storage renames nothing that is
 * open. Returns true, after a pause, if the rename that failed with `err` is to be tried again; *ms
 * starts as 1. */
bool private_await_release(int err, int *ms);
/* Is this failure of a rename that of the directory or of the disk, and not of a missing operation?
 */
bool private_is_of_disk(int err);

/* Can a user other than root and this one rename what is in a directory with this stat? A group
 * with write permission shows in the mode, also if an ACL gives it. */
static inline bool private_is_shared(const struct stat *dir)
{
	return io_is_foreign(dir) || (dir->st_mode & 022);
}
/* Is this directory, with this stat, one that private_make could have made in `parent`? If not,
 * errno is 0, or why that is unknown. */
bool private_is_ours(int parent, const struct stat *, bool *exposed);
/* 1: the directory has no entries; 0; -errno. */
int private_is_empty(int fd);
/* Has the open directory or file this name in `parent`? If not, errno is 0, or why that is unknown.
 */
bool private_has_name(int fd, int parent, const char *name);
/* Has it this name, or is that unknown? Then rmdir(2) of the name removes an empty directory at
 * most. */
bool private_may_have_name(int fd, int parent, const char *name);
/* shared.c: locks an open file; waits up to a second. lock: LOCK_SH or LOCK_EX. Returns 0 or
 * -errno.
 */
int private_take_lock(int fd, int lock, const volatile int *cancel);
bool private_lacks_locks(int err); /* of a lock that failed: are locks unsupported? */
/* flock(2) with LOCK_NB. Returns 0, -EWOULDBLOCK if another process has the lock, or -errno. */
int private_flock(int fd, int lock);
/* Do locks of this open file fail to reach other machines, as with "nolock"? */
bool private_locks_are_local(int fd);
/* An NFS client asks the server whether a directory has changed when it is opened for reading. */
void private_refresh(int dir);

/* By what this writes to the lock of the open directory `dir`, fcopy --clean recognises the
 * directory. Best effort: what is not signed stays. Returns the number of struct private_directory.
 * rclone creates a file that is empty after close(2), perhaps after its removal. */
uint64_t private_sign(int dir, int lock);
/* This boot and the mount of fd, as the journal notes them. mount 0: unknown. Linux before 6.8
 * reuses mount IDs: an equal ID does not show that a disk was not removed and mounted again. */
void private_here(int fd, struct journal_fact *run);

/* The owner and mode that a new file gets in this directory if it is created with `mode`. It is
 * known by its descriptor from the start, and removed. Returns 0 or -errno. */
int private_probe(int dir, mode_t mode, struct stat *);

#endif
