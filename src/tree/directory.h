/* SPDX-License-Identifier: MIT
 *
 * A directory that is being copied: how it is opened and walked, its attributes, and its end.
 */
#ifndef TREE_DIRECTORY_H
#define TREE_DIRECTORY_H

#include "tree.h"

#include <errno.h>

struct directory *directory_new(struct directory *parent, const char *name, int src, int dst,
				const struct stat *);
/* Notes the fstat of a merge's destination: which inode it is, and who can rename what is in it. */
void directory_note_inode(struct directory *, const struct stat *dst);
/* The outcome of a complete directory, before its attributes are set. One that was there before is
 * UNCHANGED, or REPAIRED if its attributes differ. Its time follows from its names: alone, it
 * counts as a difference if none of them is made or removed. */
struct outcome directory_outcome(struct tree *, const struct directory *);
/* Sets the attributes; with --update, only if they differ. The outcome stays REPAIRED only if that
 * has changed one: a time or an owner may be one that DST cannot store. */
void directory_repair(struct worker *, struct directory *, struct outcome *);
/* Warns that a directory could not get its mode, which no option asked for. */
void directory_warn_mode(struct worker *, struct directory *, int err);
/* Reports that opened_use failed. */
void directory_report_lost(struct worker *, struct directory *, int err);
/* One item or subdirectory less: the last one sets the directory's attributes and closes it. */
void directory_release(struct worker *, struct directory *);
/* The memory, which outlives the descriptors. */
void directory_ref(struct directory *);
void directory_unref(struct directory *);
/* Does dst, which is open, give no ACL to what is created in it? Only of a private one, in which no
 * other process changes that. */
bool directory_gives_no_acl(struct directory *);
/* Opens the destination directory again, component by component from the operand's. Returns a
 * descriptor or -errno. */
int directory_reopen(const struct directory *);

/* Flushes what was copied. */

/* Must the copy below this directory be flushed entry by entry to be durable? */
bool flush_needs_each(const struct tree *, int dst);
/* How is the copy below this directory flushed? whole: it is a new tree. */
enum flushing flush_find(const struct tree *, int dst, bool whole);
/* Flushes the rest when everything below the operand's directory is complete. each: every entry was
 * flushed. Returns 0 or -errno with the call. */
int flush_tree(int fd, bool each, struct failure *);
/* Is all that was copied below this directory on the disk now? Flushes it if need be. */
bool flush_all(const struct tree *, int dst);
/* Flushes the links and special files that single operands made in this directory, a descriptor.
 * Returns 0 or -errno with the call. */
int flush_singles(struct tree *, int directory, struct failure *);

/* The permissions of new directories: permissions.c. */

/* The permissions that mkdir(2) left of 0777 below this directory, or leaves. */
mode_t permissions_left(const struct tree *, int fd);
/* Gives the owner all of S_IRWXU of a new directory. Returns the bits that it lacked, or -errno. */
int permissions_admit_owner(int parent, const char *name);
/* Sets the mode of an open directory, unless it has it: fchmod(2) clears setgid for a user outside
 * the group. Returns 0 or -errno. */
int permissions_set(int fd, mode_t mode);
/* A mode that no option asked for could not be set. Is that only because the file system has no
 * chmod(2), or no modes? Anything else deserves a warning. */
bool permissions_are_fixed(int err);
/* Do new directories have mode 0700 until their owner and ACL are set? In an existing tree other
 * users could open them. */
bool permissions_are_hidden(const struct tree *);

/* A directory of DST that belongs to this user, who may not list, look up or change the names in
 * it: for the moment the copy gives its owner that right, as rsync -a does. */

/* Is it such a directory, and may the copy change its mode? It may if it also sets the mode that
 * the directory has in the end, or if it is a mirror. st: of the directory. */
bool admit_is_closed(const struct tree *, const struct directory *, const struct stat *st);
/* Is it one whose owner was not admitted yet? Thread-safe. */
static inline bool admit_is_due(const struct directory *d)
{
	return __atomic_load_n(&d->admit, __ATOMIC_ACQUIRE) == ADMIT_DUE;
}
/* If open(2) failed with EACCES: opens the directory with O_PATH if admit_enter() can help. Returns
 * a descriptor or -EACCES. */
int admit_find(const struct tree *, int parent, const char *name);
/* Adds the owner's rights before the directory is first read. st: of *fd, which is opened again.
 * Returns 1 if the mode was changed, 0 or -errno. */
int admit_enter(const struct tree *, int *fd, const struct stat *st);
/* Before the first change of a name in it. */
void admit_changes(struct tree *, struct directory *);
/* After the last one, and after the attributes of SRC were set: unless its mode is SRC's now, the
 * directory gets the one back that it had. */
void admit_end(struct tree *, struct directory *);

/* The same for a directory that was finished: gives the owner of the open directory the rights that
 * it lacks. fd may be O_PATH. Returns false if nothing was changed; otherwise admit_close()
 * restores the mode that *st has. */
bool admit_open(int fd, const struct stat *st);
void admit_close(int fd, const struct stat *st);

/* Which directories are open, and which are closed for now: opened.c. */

/* Opens a directory of the destination; as O_PATH if it cannot be read but searched, and
 * is neither flushed nor given attributes. Returns a descriptor or -errno. */
int directory_open(const struct tree *, int parent, const char *name);
/* Opens the directory that a symlink of this user or of root leads to, with O_RDONLY or O_PATH.
 * Returns a descriptor; -EPERM: it is another user's, and could lead to any directory of this user;
 * -ENOTDIR: it is no symlink, or leads to no directory; -ENOENT: it leads nowhere; or another
 * -errno.
 */
int directory_follow(int parent, const char *name, int flags);
/* The same for one that was there, and may be a symlink with options.keep_directory_symlink.
 * -EPERM: it is another user's. */
int directory_open_old(const struct tree *, int parent, const char *name);
/* For one walk below the operand's directory, which stays open. */
void opened_start(struct tree *, const struct directory *root);
/* A subdirectory was opened; until opened_use it may be closed again. */
void opened_add(struct tree *, struct directory *);
/* Opens it again if need be, and keeps it open until opened_unuse. Returns 0, -ESTALE if its name
 * is of another directory now, or -errno. */
int opened_use(struct tree *, struct directory *);
void opened_unuse(struct tree *, struct directory *);
/* Closes a subdirectory that is in use, for ever. */
void opened_end(struct tree *, struct directory *);
/* Should directories be read to their end, so that they can be closed? */
bool opened_are_many(struct tree *);
/* Which inode the directory in the destination is. */
struct inode opened_inode(struct tree *, struct directory *);
/* Does the name of this directory in SRC, which is open, still lead to it? Not after it was moved,
 * replaced or removed: then what it lists no longer says what SRC has. Returns 0; -ESTALE: it leads
 * to another one; or the -errno of the look. */
int opened_check_name(struct tree *, struct directory *);
/* Has SRC nothing of this name now? False of the operand's directory, and if that cannot be seen.
 */
bool opened_is_lacking(struct tree *, const struct directory *);
/* Does this errno mean that it was moved, replaced or removed? */
static inline bool opened_is_gone(int err)
{
	return err == ESTALE || err == ENOENT || err == ENOTDIR || err == ELOOP;
}

/* Reads directories, and passes what is in them to the pool: walk.c. */

/* Copies everything below root, whose `pending` is 1, in options.threads threads. */
void walk_tree(struct tree *, struct directory *root);
void walk_entry(struct tree *, const struct entry *); /* copies one entry in this thread */

/* Subdirectories. */

/* Opens or creates a subdirectory; pushes what is in it. Takes fd. */
void directory_enter(struct worker *, const struct entry *, int fd, const struct stat *);
/* Creates an empty directory with mode 0700, for a mount point that cannot be read. */
void directory_make_mount_point(struct worker *, const struct entry *);

/* Counts what a tree will copy, for the progress line. */

/* Starts to count the entries and bytes of a tree for options.progress, if the caller
 * wants that; stops it. NULL: nothing is counted. */
struct census;
struct census *census_start(const struct tree *, const struct directory *root);
void census_stop(struct census *);

#endif
