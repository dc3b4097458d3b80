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

#endif
