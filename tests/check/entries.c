/* SPDX-License-Identifier: MIT
 * Entries in thought.
 */
#define _GNU_SOURCE
#include "entries.h"

#include <errno.h>

const struct fcopy_output written = {.taken = "is written by this run"};

bool confirm(void *user, const char *dst)
{
	(void)user, (void)dst;
	return true;
}

static const mode_t types[] = {S_IFREG, S_IFLNK, S_IFIFO, S_IFDIR};

static struct stat stat_of(enum kind kind, ino_t ino)
{
	return (struct stat){.st_mode = types[kind] | 0644,
			     .st_dev = 1,
			     .st_ino = ino,
			     .st_nlink = 1,
			     .st_size = kind == FILE_ ? 10 : 0};
}

const char *const dst_names[DSTS] = {"absent",     "older",   "newer",    "equal", "other-size",
				     "two-names",  "to-file", "dangling", "fifo",  "directory",
				     "same-inode", "to-src",  "output"};

struct facts facts_of(enum kind src, int dst)
{
	struct facts f = {.looked = true, .src = stat_of(src, 1), .exists = dst != ABSENT};
	f.err = f.exists ? 0 : ENOENT;
	f.keeps = dst == NEWER || dst == EQUAL || dst == SAME_INODE || dst == TO_SRC;
	f.content = dst == EQUAL || dst == SAME_INODE || dst == TO_SRC ? CONTENT_EQUAL
								       : CONTENT_DIFFERS;
	f.old = stat_of(FILE_, 2);
	if (dst == OTHER_SIZE)
		f.old.st_size = 11;
	if (dst == TWO_NAMES)
		f.old.st_nlink = 2;
	if (dst == FIFO_)
		f.old = stat_of(FIFO, 2);
	if (dst == DIRECTORY_)
		f.old = stat_of(DIRECTORY, 2);
	if (dst == SAME_INODE) {
		f.src.st_nlink = 2;
		f.old = f.src;
	}
	if (dst == TO_FILE || dst == DANGLING || dst == TO_SRC) {
		f.old = stat_of(SYMLINK, 2);
		f.leads = dst == DANGLING ? LEADS_NOWHERE : LEADS;
		f.target = dst == TO_SRC ? f.src : stat_of(FILE_, 3);
		f.target_err = dst == DANGLING ? ENOENT : 0;
	}
	if (dst == OUTPUT)
		f.old_output = &written;
	return f;
}

bool is_unusable(const struct ground *g, const struct facts *f, const struct fcopy_tree_options *o)
{
	const bool copied = S_ISREG(f->src.st_mode) && !o->link && !o->symbolic_link &&
			    !o->attributes_only;
	const bool leads = S_ISLNK(f->old.st_mode) && f->leads == LEADS;
	return f->exists && copied &&
	       (S_ISDIR(f->old.st_mode) ||
		(decide_follows(g, f->src.st_mode, o) && !leads && !S_ISREG(f->old.st_mode)));
}

struct fcopy_tree_options options_of(unsigned bits, unsigned update)
{
	return (struct fcopy_tree_options){
	    .link = bits & LINKS,
	    .symbolic_link = bits & SYMLINKS,
	    .attributes_only = bits & ATTRIBUTES,
	    .backup = bits & BACKUP ? FCOPY_BACKUP_SIMPLE : FCOPY_BACKUP_NONE,
	    .remove_destination = bits & REMOVES,
	    .confirm = bits & ASKS ? confirm : NULL,
	    .delete_extra = bits & DELETES,
	    .hard_links = bits & HARD_LINKS,
	    .update = (enum fcopy_update)update,
	    .copy = {.force = bits & FORCE, .no_clobber = bits & NO_CLOBBER},
	};
}
