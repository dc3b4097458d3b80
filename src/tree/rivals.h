/* SPDX-License-Identifier: MIT
 *
 * Rivals: two names that lead to one file in DST. The file system may ignore case or normalise
 * Unicode, two symlinks may have one target, and a symlink may lead to a file of the source. The
 * copy of one entry must not replace the copy of another one, or a source.
 *
 * In a merge, the inode that a copy replaces is compared with the inodes that this run made or
 * replaces. Another process can give such a number to its own file: what no other entry of the
 * directory leads to is no rival (namesakes.h). On FUSE every name may have a different inode
 * number: there paths are compared, too (spelling.h). A symlink in DST by which an entry leads to
 * its copy is not replaced either. A new tree needs no such comparison: each of its names is
 * created with O_EXCL.
 */
#ifndef TREE_RIVALS_H
#define TREE_RIVALS_H

#include "tree.h"

/* Does this run replace files of an existing tree? */
static inline bool rivals_possible(const struct tree *t)
{
	return t->root.ground.foreign;
}

/* Only where rivals are possible: held while a name is looked up and then replaced, where one call
 * cannot do both. */
void rivals_lock(struct tree *);
void rivals_unlock(struct tree *);

/* Has this run made what the entry leads to, for another entry? A symlink is not followed. */
bool rivals_have(struct tree *, const struct entry *);
/* The same for what has this stat. */
bool rivals_made(struct tree *, const struct entry *, const struct stat *);
/* Has this run made, or replaced, what this name of the copy's directory leads to? */
bool rivals_made_as(struct tree *, const struct directory *, const char *name, const struct stat *);
/* Claims what it leads to, so that no other entry may replace it. st: of that; NULL: it is looked
 * up. Returns whether no other entry has it; true also if there is no such name, or if rivals are
 * impossible. */
bool rivals_claim(struct tree *, const struct entry *, const struct stat *st);
/* Claims the file that the entry leads to by a symlink in DST, before it is written. An entry that
 * kept it has it, unless the source, src, has several names: both may be names of one file. */
bool rivals_claim_target(struct tree *, const struct entry *, const struct stat *src,
			 const struct stat *st);
/* A claimed entry of DST is being removed. If it is a directory, its number may come back as that
 * of a new one; a file stays claimed. */
void rivals_unclaim(struct tree *, const struct stat *);
/* A claimed entry of DST has its name again: the entry that claimed it comes later. */
void rivals_give_back(struct tree *, const struct stat *);
/* Is the directory an operand, or below one? Returns 1, 0, or -errno. */
int rivals_is_below_source(struct tree *, int dir);
/* Of the worker's copy, after destination_open_place() returned r: claims the file that it replaces
 * and the new one. Returns r; or RESULT_RIVAL, or -errno with the failure in w->file.report.error;
 * then the destination is closed. */
int rivals_claim_file(struct worker *, const struct entry *, int r);

/* Is it what one of several operands names? Then no copy changes it, whatever their order. */
bool rivals_are_source(struct tree *, const struct stat *);

/* An entry of another type has this name in DST: has this run made it, or is it the copy of another
 * name of SRC, which DST lists in another case? */
bool rivals_share(struct tree *, const struct entry *);
/* An entry stays as it is: claims its inode, unless it has other names. Returns whether no other
 * entry has it, nor another name of SRC leads to it. */
bool rivals_keep(struct tree *, const struct entry *, const struct stat *);
/* An entry stays as it is, and another name may become a link to it. Notes the file, so that it is
 * not written through a symlink in DST. Returns whether no other entry replaces it. */
bool rivals_keep_linked(struct tree *, const struct entry *, const struct stat *);
/* Undoes rivals_keep_linked(): the entry becomes a hard link instead. */
void rivals_unkeep(struct tree *, const struct entry *, const struct stat *);
/* An entry stays as it is, and leads to this file by a symlink in DST: another entry may keep the
 * file, too, but not replace it. Returns whether none has replaced it. */
bool rivals_leave_target(struct tree *, const struct entry *, const struct stat *);
/* The entry's name leads to what another entry has made. Its outcome is none if this is the entry
 * itself, which its directory lists twice, otherwise a failure, whose message has the name of the
 * other one for the first failures of a directory. Returns -EEXIST. */
int rivals_report(struct worker *, const struct entry *);
/* In a new tree the entry's name is taken. Returns -EEXIST as rivals_report(); or 0: no entry of
 * SRC has it, so another process has made it, or a server of NFS has carried out one request twice.
 */
int rivals_report_new(struct worker *, const struct entry *);
/* The entry is another process's: reports that. Returns -EEXIST. */
int rivals_report_other(struct worker *, const struct entry *);
/* The entry may become a link to a file of an earlier copy: reads the names of its directory first,
 * unless DST lists each name as it was given. */
void rivals_expect_link(struct tree *, const struct entry *);
/* The entry is a link to a file of an earlier copy, which has this stat. Where DST ignores case, no
 * other entry may replace it then. is_new: the name did not exist. */
void rivals_note_linked(struct worker *, const struct entry *, const struct stat *, bool is_new);

#endif
