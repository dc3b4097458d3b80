/* SPDX-License-Identifier: MIT
 *
 * Namesakes: the names of one directory of SRC that lead to one entry of DST. Aliases: the entries
 * that DST lists under other names than SRC, such as those in another case.
 */
#ifndef TREE_NAMESAKES_H
#define TREE_NAMESAKES_H

#include "tree.h"

/* The names that the copy's directory had when it was first asked for them. It is read once, so
 * that many names take time in proportion to their number. NULL: there is no memory; no name at all
 * (.name is NULL): it could not be read. */
const struct name_list *namesakes_list(struct directory *);
/* Frees what this file keeps of a directory. */
void namesakes_forget(struct directory *);

/* Does this name in the copy's directory lead to the file? A symlink is not followed. */
bool namesakes_lead(const struct entry *, const char *name, const struct stat *);
/* Does the name lead to this file only because DST ignores case? The letters of ASCII show whether
 * it does; of other names, and where it does, the list of the directory is read. */
bool namesakes_differ_in_case(struct tree *, const struct entry *, const struct stat *,
			      bool is_new);
/* Can no other name of the directory be this entry of DST? DST keeps each name as it is, and does
 * not ignore case. */
bool namesakes_are_impossible(const struct entry *, const struct stat *);
/* Does SRC list the entry twice? The list is read once. */
bool namesakes_are_twice(struct tree *, const struct entry *);

/* The search for another name of SRC that leads to the same file. */
struct search {
	const struct entry *e;
	struct stat src, dst;     /* of the entry; dst.st_nlink 0: DST has no such name */
	unsigned count;           /* how often SRC lists the name */
	bool unknown;             /* it was not looked for */
	char rival[NAME_MAX + 1]; /* empty: none, or unknown */
};

/* Fills in *s for s->e. Each search takes time in proportion to the names: unless it is thorough,
 * only the first ones of a directory are made. */
void namesakes_search(struct tree *, struct search *s, bool thorough);
/* Has an entry of this name made what it leads to? */
bool namesakes_are_one(struct tree *, const struct search *);
/* Are the entry and the rival hard links of one file, on storage where no two names are one?
 * Another copy of SRC, at the same time, has linked them. */
bool namesakes_are_links(const struct tree *, const struct search *);
/* Two names of one source, of which one leads to the other in DST: both have its bytes. */
bool namesakes_have_one_source(const struct search *);

/* A key for the entry's name in DST, for sets of inodes: the inode of its directory, XORed with a
 * 64-bit hash of the name. */
struct stat namesakes_key(const struct entry *);
/* The same for the name that a symlink in DST leads to. */
struct stat namesakes_key_of_target(const struct entry *);
/* The entry's name leads to st by symlinks in DST: adds them to SET_FOLLOWED. Returns whether they
 * still lead there, and this run has made none of them. */
bool namesakes_follow(struct tree *, const struct entry *, const struct stat *st);

struct alias {
	struct inode inode;
	bool listed; /* DST lists a name of it */
};

struct aliases {
	struct alias *of; /* sorted, each inode once; the caller frees it */
	size_t count;
	bool unknown; /* there are some, and inode numbers are unreliable: any entry may be one */
};

/* Finds the copies of those names of SRC that DST does not list. src, dst: the names of both
 * directories. Returns 0, or -ENOMEM with the call. */
int aliases_find(struct aliases *, const struct directory *, const struct name_list *src,
		 const struct name_list *dst, struct failure *);
/* Is this inode one of the aliases? */
bool aliases_have(const struct aliases *, const struct stat *);

#endif
