/* SPDX-License-Identifier: MIT
 *
 * Namesakes: names of one directory of SRC that lead to one file in DST, because DST ignores case
 * or normalises Unicode, or has symlinks. Messages name both of them.
 *
 * The first search reads the whole directory, and notes to which inode of DST each name leads;
 * after that, each entry that ends is noted. So N names that collide take time in proportion to N.
 */
#ifndef TREE_NAMESAKES_H
#define TREE_NAMESAKES_H

#include "tree.h"

struct search {
	const struct entry *e;
	struct stat src, dst;     /* of the entry; dst.st_nlink 0: DST has no such name */
	unsigned count;           /* how often SRC lists the name */
	bool itself;              /* an entry of that name had ended, and led to the same */
	bool unknown;             /* there is perhaps another name: it was not looked for */
	char rival[NAME_MAX + 1]; /* empty: none, or unknown */
};

/* Searches for another name that leads to the same file. A file that was made in another directory,
 * or by an entry that is still at work, is not noted: then the directory is read again. Unless the
 * search is thorough, that is not done for each of many such files. The caller holds t->replacing.
 */
void namesakes_search(struct search *, bool thorough);
/* The same, for one name. Stats the source, and what its copy was written to: that of a file
 * follows a symlink. Returns whether DST has the name. */
bool namesakes_stat(const struct entry *, const char *name, struct stat *src, struct stat *dst);
/* An entry has ended. */
void namesakes_note(struct tree *, const struct entry *);
void namesakes_forget(struct directory *);

#endif
