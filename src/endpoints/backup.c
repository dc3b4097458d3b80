/* SPDX-License-Identifier: MIT
 * Makes and ends backups: see slot.h.
 */
#include "io/system.h"
#include "slot.h"

#include <stdio.h>

#define TRIES 100 /* each fails if another process makes the backup of this number first */

/* Exchanges b->older, which has a link to the entry, and the older backup of the name. Where the
 * file system cannot exchange two names, the older backup has none of them in between. */
static int exchange_older(struct backup *b, int dir)
{
	char drawn[TEMPORARY_SIZE];
	struct failure fail;
	if (renameat2(dir, b->older, dir, b->name, RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) /* the file system lacks the flag, or the kernel */
		return -errno;
	int r = slot_displace(dir, b->name, false, drawn, &fail);
	if (r < 0)
		return r;
	if (renameat(dir, b->older, dir, b->name) == 0) {
		strcpy(b->older, drawn);
		return 0;
	}
	r = -errno;
	(void)exchange_move(dir, drawn, dir, b->name);
	return r;
}

/* Links the entry where there is an older backup, which is kept under a drawn name until the commit
 * ends. */
static int link_over(struct backup *b, int dir, const char *as, struct failure *fail)
{
	int r = slot_displace(dir, as, true, b->older, fail);
	if (r < 0)
		return r;
	r = fail_if(fail, exchange_older(b, dir), "renameat2");
	if (r < 0) {
		unlinkat(dir, b->older, 0);
		b->older[0] = '\0';
	}
	return r;
}

/* Links are impossible: renames the entry, and before that an older backup. */
static int move_entry(struct backup *b, int dir, const char *as, bool met, struct failure *fail)
{
	int r = met ? slot_displace(dir, b->name, false, b->older, fail) : 0;
	if (r == 0) {
		*fail = (struct failure){"renameat", STEP_DISPLACE};
		r = private_rename(dir, as, dir, b->name);
	}
	if (r == 0)
		b->stage = BACKUP_MOVED;
	if (r < 0 && b->older[0])
		(void)exchange_move(dir, b->older, dir, b->name);
	if (r < 0)
		b->older[0] = '\0';
	return r;
}

/* Can a call have failed with r because files have only one name here? */
static bool lacks_links(int r)
{
	return r == -EPERM || r == -EOPNOTSUPP || r == -ENOSYS || r == -EMLINK;
}

/* Returns -EEXIST if another name has to be chosen. */
static int make_once(struct backup *b, int dir, const char *as, struct failure *fail)
{
	struct stat st;
	if (linkat(dir, as, dir, b->name, 0) == 0) {
		b->stage = BACKUP_LINKED;
		return 0;
	}
	int r = fail_at(fail, "linkat");
	const bool there = fstatat(dir, b->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there ? b->numbered || st.st_ino != b->met : r == -EEXIST)
		return -EEXIST;
	if (there && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (r == -EEXIST) {
		r = link_over(b, dir, as, fail);
		if (r == 0)
			b->stage = BACKUP_LINKED;
		if (!lacks_links(r))
			return r;
	}
	return move_entry(b, dir, as, there, fail);
}

int backup_make(struct backup *b, int dir, const char *as, const struct stat *found,
		struct failure *fail)
{
	struct stat st;
	int r = make_once(b, dir, as, fail);
	for (int tries = 1; r == -EEXIST && tries < TRIES; tries++)
		if ((r = b->choose(b, fail)) == 0)
			r = make_once(b, dir, as, fail);
	if (r < 0) /* without the entry, another decision is due */
		return r == -EEXIST ? -EBUSY : r == -ENOENT ? -EEXIST : r;
	b->found = found;
	fail_at(fail, "fstatat");
	if (fstatat(dir, b->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = errno == ENOENT ? -EEXIST : -errno;
	else if (st.st_ino != found->st_ino && !system_has(dir, SYSTEM_RENUMBERS))
		r = -EEXIST;
	if (r == 0)
		r = b->note(b, &st);
	if (r < 0)
		backup_end(b, dir, as, false);
	return r;
}

/* Has the name another file than its backup? The commit has failed, but after the copy got the
 * name; or another process has replaced the entry. Then the backup has the only name of what was
 * there. With FUSE, two names of one file may show different times: that of the entry is compared,
 * too. Returns 1, 0, or -errno if that cannot be seen. */
static int is_needed(const struct backup *b, int dir, const char *as)
{
	struct stat backup, now;
	if (fstatat(dir, b->name, &backup, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(dir, as, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 1 : -errno;
	return !(exchange_is_same(dir, &now, &backup) || exchange_is_same(dir, &now, b->found));
}

/* Gives the entry its own name back if it lacks it. Returns 0 if it has it; 1 if the backup has to
 * stay; or -errno if that cannot be seen. */
static int backup_give_back(const struct backup *b, int dir, const char *as)
{
	if (b->stage == BACKUP_MOVED)
		return private_rename(dir, b->name, dir, as) != 0;
	if (linkat(dir, b->name, dir, as, 0) == 0)
		return 0;
	return errno == EEXIST ? is_needed(b, dir, as) : 1;
}

void backup_end(struct backup *b, int dir, const char *as, bool made)
{
	const int needed = made ? 1 : backup_give_back(b, dir, as);
	const bool back = needed == 0;
	if (needed < 0 && b->older[0]) { /* nothing that may be the only one goes */
		b->left = -needed;
		return;
	}
	if (back && b->older[0]) {
		/* Both names of one file stay after a rename. */
		if (renameat(dir, b->older, dir, b->name) == 0)
			unlinkat(dir, b->older, 0);
	} else if (back && b->stage == BACKUP_LINKED) {
		unlinkat(dir, b->name, 0);
	} else if (b->older[0] && unlinkat(dir, b->older, 0) < 0 && errno != ENOENT) {
		b->left = errno;
		return;
	}
	b->older[0] = '\0';
	b->stage = BACKUP_NONE;
}

/* Does the backup that is made hold it already? Only its content has changed since. */
static bool is_kept(const struct backup *b, int home, const char *name, int dir)
{
	struct stat st, kept;
	return b->stage == BACKUP_LINKED && fstatat(home, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dir, b->name, &kept, AT_SYMLINK_NOFOLLOW) == 0 && same_inode(&st, &kept);
}

int backup_keep(struct backup *b, int home, const char *name, int dir, struct failure *fail)
{
	struct backup another = *b;
	struct stat st;
	int r = -EEXIST;
	if (is_kept(b, home, name, dir))
		return unlinkat(home, name, 0) < 0 ? fail_at(fail, "unlinkat") : 0;
	for (int tries = 0; r == -EEXIST && tries < TRIES; tries++) {
		if ((r = b->choose(&another, fail)) < 0)
			return r;
		*fail = (struct failure){"renameat", STEP_DISPLACE};
		r = exchange_move(home, name, dir, another.name);
		if (r == -EEXIST && !b->numbered) /* an older backup */
			r = renameat(home, name, dir, another.name) < 0 ? -errno : 0;
	}
	if (r == 0 && fstatat(dir, another.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		(void)b->note(b, &st);
	return r;
}
