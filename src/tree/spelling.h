/* SPDX-License-Identifier: MIT
 *
 * Spellings: names that differ only in case. On FUSE every name may have a different inode number;
 * if such storage ignores case, too, inode numbers do not show that two names are one entry. There
 * paths are compared, without case (endpoints/case.h).
 */
#ifndef TREE_SPELLING_H
#define TREE_SPELLING_H

#include "tree.h"

/* Is the entry's name in DST another spelling of what this run has copied from another source? src:
 * the stat of the source. skipped: DST has the name, and stays: the copy may still be at work.
 * False except in merges and with several SRC, on FUSE. */
bool spelling_meets(struct worker *, const struct entry *, const struct stat *src, bool skipped);
/* After spelling_meets(): the copy begins, and with backups claims the name. Returns whether
 * another source has the name since. */
bool spelling_begin(struct worker *, const struct entry *);
/* After spelling_meets(): what has the name is to get another one. Returns whether it is, or is to
 * become, the copy of another source. */
bool spelling_claim(struct worker *, const struct entry *);
/* After spelling_begin() or spelling_claim(): the copy has failed. */
void spelling_fail(struct worker *);
/* After spelling_meets(): DST has the entry now. Notes its spelling. Returns whether another thread
 * has noted the copy of another source since, and both are one entry of DST. */
bool spelling_note(struct worker *, const struct entry *);
/* Both, for a directory that is an operand, and is copied to this place. */
bool spelling_meets_operand(struct tree *, const struct place *, struct spelling *);
void spelling_note_operand(struct tree *, const struct spelling *);
/* Has this run copied, or begun to copy, an entry of this directory to the name, however that was
 * spelled? */
bool spelling_is_begun(struct tree *, const struct directory *, const char *name);
/* Are `name` and the entry's name one entry of DST, which leads to it by both, and on FUSE? */
bool spelling_is_same(struct tree *, const struct entry *, const char *name);
/* Is the entry's name in DST another spelling of its source? src, dst: the st_dev of both. */
bool spelling_is_source(struct tree *, const struct entry *, dev_t src, dev_t dst);
/* Is dst, by another spelling, the directory that is open as src, or one above or below it? */
bool spelling_relates(struct tree *, int src, const struct stat *, const struct place *dst);

#endif
