/* SPDX-License-Identifier: MIT
 * The commit of a slot: what was made gets its name, and what it replaces its backup.
 */
#include "io/system.h"
#include "slot.h"

#include <time.h>

/* The backup that is wanted of what is replaced, or NULL. */
static struct backup *slot_backup(const struct slot *s)
{
	return s->backup && s->backup->name[0] ? s->backup : NULL;
}

/* On any other error, assume that the name exists. */
static bool name_exists(int dir, const char *as)
{
	struct stat st;
	return fstatat(dir, as, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* rename(2) of two names of one file does nothing, and only a link can be a name of what it
 * replaces. */
static int rename_over(const struct slot *s, int dir, const char *as)
{
	if (renameat(s->home, s->name, dir, as) < 0)
		return -errno;
	if (!s->is.file)
		unlinkat(s->home, s->name, 0);
	return 0;
}

/* A part keeps its data by its name: what is replaced cannot come out there. */
static int rename_part(const struct slot *s, int dir, const char *as, struct failure *fail)
{
	struct stat now;
	if (fstatat(dir, as, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? private_rename_as(s->home, s->name, dir, as, fail)
				       : -errno;
	return exchange_is_same(dir, &now, s->found) ? rename_over(s, dir, as) : -EEXIST;
}

static int rename_found(struct slot *s, int dir, const char *as, struct failure *fail)
{
	if (s->how == HOW_PART)
		return rename_part(s, dir, as, fail);
	const struct backup *b = slot_backup(s);
	return exchange_over(s->home, s->name, dir, as, s->found, b && b->keeps_another);
}

static int rename_once(struct slot *s, enum slot_over over, int dir, const char *as,
		       struct failure *fail)
{
	*fail = (struct failure){s->is.file ? "renameat" : "rename", STEP_RENAME};
	return over == OVER_NOTHING ? private_rename_as(s->home, s->name, dir, as, fail)
	       : over == OVER_FOUND ? rename_found(s, dir, as, fail)
				    : rename_over(s, dir, as);
}

#define RELEASE_MS 1000 /* to wait for storage that releases a closed file later */

/* Some storage renames no file that is open: closes it and tries again. close(2) does not wait for
 * the release of a FUSE file. */
static int rename_patiently(struct slot *s, enum slot_over over, int dir, const char *as,
			    struct failure *fail)
{
	int r = rename_once(s, over, dir, as, fail);
	if (r >= 0 || r == -EEXIST || r == -ENOTRECOVERABLE || !s->fd || s->how == HOW_LINK ||
	    storage_is_known(dir))
		return r;
	int closed = fail_if(fail, slot_close(s), "close");
	if (closed < 0)
		return closed;
	for (int ms = 1; (r = rename_once(s, over, dir, as, fail)) < 0 && r != -EEXIST &&
			 r != -ENOTRECOVERABLE && ms < RELEASE_MS;
	     ms *= 2)
		nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
	return r;
}

/* Of a rename: other calls that return EEXIST have failed. */
static int taken_result(enum slot_over over, int r)
{
	return r == -EEXIST && over != OVER_ANY ? RESULT_TAKEN : r;
}

/* At the last moment another entry has got the name: it has come out, and becomes a backup, too.
 * If it cannot, it gets its name back. */
static int keep_another(struct slot *s, int dir, const char *as, struct failure *fail)
{
	int r = backup_keep(s->backup, s->home, s->name, dir, fail);
	if (r < 0)
		return renameat2(s->home, s->name, dir, as, RENAME_EXCHANGE) == 0
			   ? r
			   : -ENOTRECOVERABLE;
	s->name[0] = '\0';
	return 0;
}

/* The old entry gets its backup just before the rename. If that was a rename, too, the name is
 * free. */
static int rename_backed_up(struct slot *s, int dir, const char *as, struct failure *fail)
{
	struct backup *b = slot_backup(s);
	enum slot_over over = s->over;
	if (over != OVER_FOUND || !b)
		return taken_result(over, rename_patiently(s, over, dir, as, fail));
	int r = taken_result(over, backup_make(b, dir, as, s->found, fail));
	if (r != 0)
		return r;
	over = b->stage == BACKUP_MOVED ? OVER_NOTHING : over;
	r = taken_result(over, rename_patiently(s, over, dir, as, fail));
	if (r == RESULT_EXCHANGED)
		r = keep_another(s, dir, as, fail);
	backup_end(b, dir, as, r == 0);
	return r;
}

static void lock_rivals(const struct slot *s)
{
	if (s->rivals)
		pthread_mutex_lock(s->rivals->lock);
}

static void unlock_rivals(const struct slot *s)
{
	if (s->rivals)
		pthread_mutex_unlock(s->rivals->lock);
}

/* Has another entry of the tree made what has the name now? OVER_FOUND replaces nothing but what
 * was found. */
static bool is_rival(const struct slot *s, int dir, const char *as)
{
	struct stat now;
	if (!s->rivals || s->over == OVER_FOUND)
		return s->rivals && s->rivals->is_made(s->rivals->arg, s->found);
	return fstatat(dir, as, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       s->rivals->is_made(s->rivals->arg, &now);
}

static bool meets_rival(const struct slot *s, int dir, const char *as)
{
	lock_rivals(s);
	const bool rival = is_rival(s, dir, as);
	unlock_rivals(s);
	return rival;
}

/* A file that had one name when it was opened is claimed: no rival replaces it. */
static int rename_without_rival(struct slot *s, int dir, const char *as, struct failure *fail)
{
	const bool claimed = !s->is.displaced && s->found && s->found->st_nlink == 1;
	if (claimed)
		return rename_backed_up(s, dir, as, fail);
	lock_rivals(s);
	int r = is_rival(s, dir, as) ? RESULT_RIVAL : rename_backed_up(s, dir, as, fail);
	unlock_rivals(s);
	return r;
}

/* btrfs before Linux 6.15 does not log a file whose link count is 0 (btrfs_log_inode_parent() in
 * fs/btrfs/tree-log.c): its fsync(2) returns without a write. The fsync of the directory then logs
 * the name without the data, and a power cut leaves DST torn.
 */
static bool must_flush_named(const struct slot *s)
{
	return s->how == HOW_LINK && s->flushes && system_has(*s->fd, SYSTEM_UNLOGGED);
}

/* A user who can rename files in the directory may have exchanged the temporary name just before
 * rename(2). Without a link our file was at DST: a later copy has replaced it. */
static int check_renamed(const struct slot *s, int dir, const char *as)
{
	struct stat st;
	if (s->private || private_has_name(*s->fd, dir, as))
		return 0;
	if (fstat(*s->fd, &st) < 0 || st.st_nlink == 0 || system_has(*s->fd, SYSTEM_RENUMBERS))
		return 0;
	return -ESTALE;
}

static int file_flush(const struct slot *s, bool all, struct failure *fail)
{
	const int r = all ? fsync(*s->fd) : fdatasync(*s->fd);
	return r < 0 ? fail_at(fail, all ? "fsync" : "fdatasync") : 0;
}

/* The commit of a file, with the results of slot_commit(). A commit that is repeated may have
 * closed the file. The last close(2) shows the failure of a write before the rename, unless the
 * descriptor is needed after that. */
static int commit_file(struct slot *s, int dir, const char *as, struct failure *fail)
{
	const bool flush = must_flush_named(s), only_new = s->over == OVER_NOTHING;
	const bool links = s->how == HOW_LINK && !s->is.exists && !flush && !s->name[0];
	const bool closes = s->private && s->how != HOW_PART;
	int r = (closes && !links) || s->written || *s->fd < 0 ? 0
							       : io_close_duplicate(*s->fd, fail);
	if (r < 0)
		return r;
	if (links) {
		r = fail_if(fail, slot_link(dir, as, s), "linkat");
		if (r == -EEXIST && only_new)
			return meets_rival(s, dir, as) ? RESULT_RIVAL : RESULT_TAKEN;
		if (r != -EEXIST)
			return r;
	}
	const bool met = links ||
			 (s->how != HOW_LINK && !s->is.exists && !only_new && name_exists(dir, as));
	/* Another process created DST during the copy. The later copy wins, as with two cp(1).
	 * Flush first: a preallocated file must not replace another before it is on the storage.
	 * With a named temporary file, DST can still appear between the check and the rename. */
	r = met ? file_flush(s, false, fail) : 0;
	if (r == 0 && s->how == HOW_LINK && !s->name[0])
		r = slot_draw(s, slot_link, s, "linkat", fail);
	if (r == 0 && flush)
		r = file_flush(s, true, fail);
	if (r == 0 && closes)
		r = fail_if(fail, slot_close(s), "close");
	if (r == 0)
		r = rename_without_rival(s, dir, as, fail);
	if (r == 0) {
		fail_at(fail, NULL);
		s->name[0] = '\0';
		r = check_renamed(s, dir, as);
	}
	return r;
}

/* HOW_SWAP: what was made has its name. The old entry becomes the backup, or goes. */
static int end_swap(struct slot *s, int dir, struct failure *fail)
{
	int r = 0;
	if (slot_backup(s)) {
		lock_rivals(s);
		r = backup_keep(s->backup, dir, s->name, dir, fail);
		unlock_rivals(s);
	} else if (unlinkat(dir, s->name, 0) < 0 && errno != ENOENT) {
		s->left_err = errno;
		strcpy(s->left, s->name);
	}
	if (r == 0)
		s->name[0] = '\0';
	return r;
}

int slot_commit(struct slot *s, int dir, const char *as, struct failure *fail)
{
	int r = 0;
	if (HOW_IS(s, HOW_INVISIBLE))
		r = s->is.file ? commit_file(s, dir, as, fail) : rename_backed_up(s, dir, as, fail);
	else if (s->how == HOW_SWAP)
		r = end_swap(s, dir, fail);
	if (r == 0)
		s->stage = SLOT_NAMED;
	else if (r == -ENOTRECOVERABLE)
		s->stage = SLOT_LOST;
	return r;
}

void slot_warn_lost(const struct slot *s, const struct fcopy_options *o)
{
	char path[PATH_MAX];
	struct fcopy_error error;
	io_name_path(s->home, s->name, path);
	error_refuse(&error, path, EEXIST,
		     "is what another process made as DST during the commit: rename it back",
		     FCOPY_ADVICE_NONE);
	error_warn(&error, o);
}

void slot_warn_left(struct slot *s, const char *as, const struct fcopy_options *o)
{
	char path[PATH_MAX];
	struct fcopy_error error;
	if (s->left_err == 0 || !o)
		return;
	io_name_path(s->home, s->left[0] ? s->left : as, path);
	if (s->how == HOW_SWAP && s->left[0] && s->stage != SLOT_NAMED)
		error_refuse(&error, path, s->left_err, "is what DST was: rename it back",
			     FCOPY_ADVICE_NONE);
	else
		error_operation(&error, NULL, "remove", path, s->left_err);
	error_warn(&error, o);
	s->left_err = 0;
}
