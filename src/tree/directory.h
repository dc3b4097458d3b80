/* SPDX-License-Identifier: MIT
 *
 * A directory that is being copied: its attributes, and its end.
 */
#ifndef TREE_DIRECTORY_H
#define TREE_DIRECTORY_H

#include "tree.h"

struct directory *directory_new(struct directory *parent, const char *name, int src, int dst,
				const struct stat *);
/* Notes the fstat of a merge's destination: which inode it is, and who can rename what is in it. */
void directory_note_inode(struct directory *, const struct stat *dst);
/* The outcome of a complete directory, before its attributes are set. What was there before is no
 * news of a mirror or a dry run, UNCHANGED, unless its attributes differ. Its time follows from its
 * names: alone, it is news if none of them is made or removed. */
struct outcome directory_outcome(struct tree *, const struct directory *);
/* Sets the attributes, if they differ. The outcome stays REPAIRED only if that has changed one: a
 * time or an owner may be one that DST cannot store. */
void directory_repair(struct worker *, struct directory *, struct outcome *);
/* Sets the attributes of a complete directory. */
void directory_set_attributes(struct worker *, struct directory *);
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

/* The permissions of new directories. */

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

/* A directory of DST that belongs to this user, who may not change the names in it: for the moment
 * the copy gives its owner that right, as rsync -a does. */

/* Is it such a directory, and may the copy change its mode? It may if it also sets the mode that
 * the directory has in the end, or if it is a mirror. st: of the directory. */
bool admit_is_closed(const struct tree *, const struct directory *, const struct stat *st);
/* Is it one whose owner was not admitted yet? Thread-safe. */
static inline bool admit_is_due(const struct directory *d)
{
	return __atomic_load_n(&d->closed, __ATOMIC_ACQUIRE);
}
/* Before the first change of a name in it. */
void admit_changes(struct tree *, struct directory *);
/* After the last one, and after the attributes of SRC were set: unless its mode is SRC's now, the
 * directory gets the one back that it had. */
void admit_end(struct tree *, struct directory *);

/* The same for a directory that was finished: gives the owner of the open directory the right to
 * change names. fd may be O_PATH. Returns false if nothing was changed; otherwise admit_close()
 * restores the mode that *st has. */
bool admit_open(int fd, const struct stat *st);
void admit_close(int fd, const struct stat *st);

#endif
