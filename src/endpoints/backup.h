/* SPDX-License-Identifier: MIT
 *
 * A backup: the other name that an entry of DST gets when the commit of a slot replaces it. Only
 * the commit makes one:
 *
 *       slot_commit()
 *            |
 *      backup_make()       a link: the entry keeps its own name until the rename replaces it. Where
 *            |             links are impossible, the entry is renamed
 *       the rename
 *            |
 *       backup_end()       made: an older backup of that name goes. Failed: the entry has its own
 *                          name again, and the older backup its own
 *
 * HOW_SWAP has taken the entry's name before: backup_keep() gives it that of the backup.
 */
#ifndef ENDPOINTS_BACKUP_H
#define ENDPOINTS_BACKUP_H

#include "part/private.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct backup {
	char name[NAME_MAX + 1]; /* that the entry gets; empty: no backup is wanted */
	bool numbered;           /* an older backup keeps its name: another number is chosen */
	ino_t met;               /* what had the name when it was chosen; 0: nothing */
	bool any; /* what gets the entry's name at the last moment is replaced, and kept, too */
	/* Chooses a name again, because another process has made the backup of this number, or
	 * another entry that of this name. Returns 0, or -errno with the call. */
	int (*choose)(struct backup *, const char **call);
	/* It is made, and has this stat. Returns 0 or -errno. */
	int (*note)(struct backup *, const struct stat *);
	void *arg; /* of both */

	enum { BACKUP_NONE, BACKUP_LINKED, BACKUP_MOVED } stage;
	const struct stat *found;   /* of the entry */
	char older[TEMPORARY_SIZE]; /* what had the name, until the commit ends; empty: nothing */
	int left;                   /* errno: the commit has succeeded, and `older` is left */
};

/* `as` in `dir` is about to be replaced. found: which entry that is. Returns 0; -EEXIST: it is
 * another one; or another -errno with the call. Then nothing is changed. */
int backup_make(struct backup *, int dir, const char *as, const struct stat *found,
		const char **call);
/* After backup_make(). */
void backup_end(struct backup *, int dir, const char *as, bool made);
/* The entry `name` in `home` has been replaced: it becomes a backup in `dir`. Returns 0, or -errno
 * with the call; then it is still `name`. */
int backup_keep(struct backup *, int home, const char *name, int dir, const char **call);

#endif
