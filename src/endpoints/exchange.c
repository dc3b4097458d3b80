/* SPDX-License-Identifier: MIT
 * A rename over one certain entry: see slot.h. rename(2) replaces whatever has the name by then.
 * RENAME_EXCHANGE hands it out instead: if it is not the file that was expected, both are exchanged
 * again.
 */
#define _GNU_SOURCE
#include "io/io.h"
#include "io/libc.h"
#include "io/system.h"
#include "part/private.h"
#include "slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define TRIES 100 /* each fails if another process has just replaced the file, too */

static bool same_entry(const struct stat *a, const struct stat *b)
{
	return same_inode(a, b) && !((a->st_mode ^ b->st_mode) & S_IFMT);
}

bool exchange_is_same(int dir, const struct stat *now, const struct stat *old)
{
	if (now->st_mtim.tv_sec != old->st_mtim.tv_sec ||
	    now->st_mtim.tv_nsec != old->st_mtim.tv_nsec || now->st_size != old->st_size ||
	    (now->st_mode ^ old->st_mode) & S_IFMT)
		return false;
	return same_entry(now, old) ||
	       (now->st_dev == old->st_dev && system_has(dir, SYSTEM_RENUMBERS));
}

static bool is_there(int dir, const char *name, const struct stat *old)
{
	struct stat now;
	return fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       exchange_is_same(dir, &now, old);
}

/* What came out as `from` gets its name back, and ours comes out again. If a third process has
 * replaced ours in the meantime, that one comes out, and goes back. */
static int exchange_back(int home, const char *from, int dir, const char *name,
			 const struct stat *ours)
{
	struct stat out;
	for (int tries = 0; tries < TRIES; tries++) {
		if (renameat2(home, from, dir, name, RENAME_EXCHANGE) == 0) {
			if (fstatat(home, from, &out, AT_SYMLINK_NOFOLLOW) == 0 &&
			    same_entry(&out, ours))
				return -EEXIST;
		} else if (errno != ENOENT) {
			break;
		} else if (private_rename(home, from, dir, name) == 0) {
			return -ESTALE; /* another process has moved ours away */
		}
	}
	return -ENOTRECOVERABLE;
}

/* The old file has come out. If it cannot be removed, it gets its name back: a caller takes `from`
 * for what was not renamed, and drops it. */
static int drop_old(int home, const char *from, int dir, const char *name, const struct stat *ours)
{
	if (unlinkat(home, from, 0) == 0 || errno == ENOENT)
		return 0;
	const int err = errno, r = exchange_back(home, from, dir, name, ours);
	return r == -EEXIST ? -err : r;
}

int exchange_over(int home, const char *from, int dir, const char *name, const struct stat *old,
		  bool hands_out)
{
	struct stat ours, out;
	if (S_ISDIR(old->st_mode))
		return -EISDIR; /* as rename(2): the exchange would hide it, and what it holds */
	if (fstatat(home, from, &ours, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (fstatat(dir, name, &out, AT_SYMLINK_NOFOLLOW) == 0 && !exchange_is_same(dir, &out, old))
		return -EEXIST;
	if (renameat2(home, from, dir, name, RENAME_EXCHANGE) < 0) {
		if (errno == ENOENT) /* the old file is gone */
			return private_rename(home, from, dir, name);
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		/* Here another process can still replace it in between. */
		return !is_there(dir, name, old)             ? -EEXIST
		       : renameat(home, from, dir, name) < 0 ? -errno
							     : 0;
	}
	if (fstatat(home, from, &out, AT_SYMLINK_NOFOLLOW) < 0) /* what came out is unknown */
		return exchange_back(home, from, dir, name, &ours);
	if (!exchange_is_same(dir, &out, old) && !same_entry(&out, &ours))
		return hands_out ? RESULT_EXCHANGED : exchange_back(home, from, dir, name, &ours);
	return drop_old(home, from, dir, name, &ours);
}

/* In a sticky directory a link to another user's file could not be removed: where a rename is
 * forbidden, no link is made. */
int exchange_move(int home, const char *from, int dir, const char *name)
{
	const int r = private_rename(home, from, dir, name);
	if (r == 0 || r == -EEXIST || r == -EPERM || r == -EACCES || r == -EBUSY || r == -ENOENT)
		return r;
	if (linkat(home, from, dir, name, 0) < 0)
		return errno == EEXIST ? -EEXIST : r;
	if (unlinkat(home, from, 0) == 0)
		return 0;
	const int err = errno;
	unlinkat(dir, name, 0);
	return -err;
}
