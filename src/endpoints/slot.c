/* SPDX-License-Identifier: MIT
 * Chooses how a name comes into being, and gives it to what was made.
 */
#define _GNU_SOURCE
#include "slot.h"
#include "exchange.h"
#include "io/io.h"
#include "io/libc.h"
#include "io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What one call makes cannot be overwritten. */
static unsigned choose_made(const struct slot_facts *is, enum slot_how way[4])
{
	unsigned n = 0;
	if (is->foreign)
		way[n++] = HOW_ASIDE;
	way[n++] = is->exists ? HOW_RENAME : HOW_FINAL;
	return n;
}

/* Several names, or nothing that the copy could take: only a new inode will do. */
static unsigned choose_file(const struct slot_facts *is, enum slot_how way[4])
{
	const bool new_inode = is->exists && (is->displaced || is->linked);
	const bool written = (is->special && !new_inode) || is->in_place == FCOPY_WHEN_ALWAYS;
	const bool possible = written || is->in_place == FCOPY_WHEN_AUTO;
	unsigned n = 0;
	if (is->scratch || !written || new_inode) {
		way[n++] = is->part && !is->scratch ? HOW_PART : HOW_LINK;
		if (way[0] == HOW_LINK)
			way[n++] = HOW_RENAME;
	}
	if (!is->scratch && !is->exists && (!is->part || written))
		way[n++] = HOW_FINAL;
	else if (!is->scratch && is->exists && possible)
		way[n++] = new_inode ? HOW_SWAP : HOW_WRITE;
	return n;
}

enum slot_how slot_choose(const struct slot_facts *is)
{
	enum slot_how way[4];
	const unsigned n = is->file ? choose_file(is, way) : choose_made(is, way);
	for (unsigned i = 0; i < n; i++)
		if (!(is->unfit & 1u << way[i]))
			return way[i];
	return HOW_NONE;
}

#define TRIES 8 /* of names: each fails if the drawn one is taken */

int slot_draw(struct slot *s, slot_maker *make, void *arg, const char *made, const char **call)
{
	int r = -EEXIST;
	for (int tries = 0; r == -EEXIST && tries < TRIES; tries++) {
		*call = "getrandom";
		r = s->storage ? storage_draw(s->storage, s->name) : temporary_draw(s->name);
		if (r < 0)
			break;
		*call = made;
		r = make(s->home, s->name, arg);
	}
	if (r < 0)
		s->name[0] = '\0';
	return r;
}

static int displace_by_rename(int dir, const char *drawn, void *name)
{
	return private_rename(dir, name, dir, drawn);
}

static int displace_by_link(int dir, const char *drawn, void *name)
{
	return linkat(dir, name, dir, drawn, 0) < 0 ? -errno : 0;
}

int slot_displace(int dir, const char *name, bool link, char drawn[TEMPORARY_SIZE],
		  const char **call)
{
	struct slot s = {.home = dir};
	const int r = slot_draw(&s, link ? displace_by_link : displace_by_rename, (void *)name,
				link ? "linkat" : "renameat", call);
	strcpy(drawn, s.name);
	return r;
}

int slot_make(struct slot *s, int dir, const char *as, int aside, slot_maker *make, void *arg,
	      const char *made, const char **call)
{
	int r;
	s->home = s->how == HOW_ASIDE ? aside : dir;
	*call = made;
	if (s->how == HOW_RENAME) {
		r = slot_draw(s, make, arg, made, call);
	} else {
		strcpy(s->name, s->how == HOW_ASIDE ? PRIVATE_ENTRY : "");
		r = make(s->home, slot_name(s, as), arg);
	}
	if (r >= 0)
		s->stage = SLOT_MADE;
	return r;
}

/* On any other error, assume that the name exists. */
static bool name_exists(int dir, const char *as)
{
	struct stat st;
	return fstatat(dir, as, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static const char *rename_call(const struct slot *s)
{
	return s->is.file ? "renameat" : "rename";
}

/* rename(2) of two names of one file does nothing, and only a link can be a name of what it
 * replaces. */
static int rename_over(const struct slot *s, int dir, const char *as, const char **call)
{
	*call = rename_call(s);
	if (renameat(s->home, s->name, dir, as) < 0)
		return -errno;
	if (!s->is.file)
		unlinkat(s->home, s->name, 0);
	return 0;
}

/* rename(2) replaces no directory that has entries. */
static int rename_new_directory(const struct slot *s, int dir, const char *as)
{
	if (renameat(s->home, s->name, dir, as) == 0)
		return 0;
	return errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
}

/* Returns -EEXIST if the name is taken. NFS and others lack RENAME_NOREPLACE. Where hard links are
 * unsupported, too, another process can create the name between the check and the rename. */
static int rename_new(const struct slot *s, int dir, const char *as, const char **call)
{
	struct stat st;
	*call = rename_call(s);
	if (renameat2(s->home, s->name, dir, as, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) /* the file system lacks the flag, or the kernel */
		return -errno;
	if (!s->is.file && fstatat(s->home, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!s->is.file && S_ISDIR(st.st_mode))
		return rename_new_directory(s, dir, as);
	*call = "linkat";
	if (linkat(s->home, s->name, dir, as, 0) < 0) {
		if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
			return -errno;
		return name_exists(dir, as) ? -EEXIST : rename_over(s, dir, as, call);
	}
	*call = "unlinkat";
	return unlinkat(s->home, s->name, 0) < 0 && s->is.file ? -errno : 0;
}

/* A part keeps its data by its name: what is replaced cannot come out there. */
static int rename_part(const struct slot *s, int dir, const char *as, const char **call)
{
	struct stat now;
	if (fstatat(dir, as, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? rename_new(s, dir, as, call) : -errno;
	return exchange_is_same(dir, &now, s->found) ? rename_over(s, dir, as, call) : -EEXIST;
}

static int rename_found(struct slot *s, int dir, const char *as, const char **call)
{
	*call = rename_call(s);
	if (s->how == HOW_PART)
		return rename_part(s, dir, as, call);
	const int r = exchange_over(s->home, s->name, dir, as, s->found, s->hands_out);
	if (r == -ENOTRECOVERABLE) /* it is not ours */
		s->name[0] = '\0';
	return r == EXCHANGE_ANOTHER ? SLOT_EXCHANGED : r;
}

static int rename_once(struct slot *s, int dir, const char *as, const char **call)
{
	return s->over == OVER_NOTHING ? rename_new(s, dir, as, call)
	       : s->over == OVER_FOUND ? rename_found(s, dir, as, call)
				       : rename_over(s, dir, as, call);
}

static int close_file(const struct slot *s)
{
	const int fd = *s->fd;
	*s->fd = -1;
	return fd >= 0 && libc_close(fd) < 0 ? -errno : 0;
}

#define RELEASE_MS 1000 /* to wait for storage that releases a closed file later */

/* Some storage renames no file that is open: closes it and tries again. close(2) does not wait for
 * the release of a FUSE file. */
static int rename_patiently(struct slot *s, int dir, const char *as, const char **call)
{
	int r = rename_once(s, dir, as, call);
	if (r >= 0 || r == -EEXIST || !s->fd || s->how == HOW_LINK || storage_is_known(dir))
		return r;
	*call = "close";
	int closed = close_file(s);
	if (closed < 0)
		return closed;
	for (int ms = 1; (r = rename_once(s, dir, as, call)) < 0 && r != -EEXIST && ms < RELEASE_MS;
	     ms *= 2)
		nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
	return r;
}

/* Has another entry of the tree made what has the name now? OVER_FOUND replaces nothing but what
 * was found. */
static bool is_rival(const struct slot *s, int dir, const char *as)
{
	struct stat now;
	if (s->over == OVER_FOUND)
		return s->rivals->is_made(s->rivals->arg, s->found);
	return fstatat(dir, as, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       s->rivals->is_made(s->rivals->arg, &now);
}

static bool meets_rival(const struct slot *s, int dir, const char *as)
{
	if (!s->rivals)
		return false;
	pthread_mutex_lock(s->rivals->lock);
	const bool rival = is_rival(s, dir, as);
	pthread_mutex_unlock(s->rivals->lock);
	return rival;
}

/* A file that had one name when it was opened is claimed: no rival replaces it. */
static int rename_without_rival(struct slot *s, int dir, const char *as, const char **call)
{
	const bool claimed = !s->is.displaced && s->found && s->found->st_nlink == 1;
	if (!s->rivals || claimed)
		return rename_patiently(s, dir, as, call);
	pthread_mutex_lock(s->rivals->lock);
	int r = is_rival(s, dir, as) ? ENDPOINT_RIVAL : rename_patiently(s, dir, as, call);
	pthread_mutex_unlock(s->rivals->lock);
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

int slot_link(int dir, const char *name, void *slot)
{
	const struct slot *s = slot;
	const struct io_path path = io_proc_path(*s->fd);
	const int r = s->link == LINK_DESCRIPTOR
			  ? linkat(*s->fd, "", dir, name, AT_EMPTY_PATH)
			  : linkat(AT_FDCWD, path.text, dir, name, AT_SYMLINK_FOLLOW);
	return r < 0 ? -errno : 0;
}

static int file_flush(const struct slot *s, bool all, const char **call)
{
	*call = all ? "fsync" : "fdatasync";
	return (all ? fsync(*s->fd) : fdatasync(*s->fd)) < 0 ? -errno : 0;
}

/* The file gets a name that can be renamed. The last close(2) shows the failure of a write before
 * the rename, unless the descriptor is needed after that.
 *
 * met: another process created DST during the copy. The later copy wins, as with two cp(1). Flush
 * first: a preallocated file must not replace another before it is on the storage. With a named
 * temporary file, DST can still appear between the check and the rename. */
static int prepare_rename(struct slot *s, bool met, bool flush, bool closes, const char **call)
{
	int r = met ? file_flush(s, false, call) : 0;
	if (r == 0 && s->how == HOW_LINK && !s->name[0])
		r = slot_draw(s, slot_link, s, "linkat", call);
	if (r == 0 && flush)
		r = file_flush(s, true, call);
	if (r == 0 && closes) {
		*call = "close";
		r = close_file(s);
	}
	return r;
}

/* Of a rename: other calls that return EEXIST have failed. */
static int tell_taken(const struct slot *s, int r)
{
	return r == -EEXIST && s->over != OVER_ANY ? SLOT_TAKEN : r;
}

/* Returns as slot_commit(). A commit that is repeated may have closed the file. */
static int commit_file(struct slot *s, int dir, const char *as, const char **call)
{
	const bool flush = must_flush_named(s), only_new = s->over == OVER_NOTHING;
	const bool links = s->how == HOW_LINK && !s->is.exists && !flush && !s->name[0];
	const bool closes = s->private && s->how != HOW_PART && !links;
	bool met = false;
	int r = closes || s->written || *s->fd < 0 ? 0 : io_close_duplicate(*s->fd, call);
	if (r < 0)
		return r;
	if (links) {
		*call = "linkat";
		r = slot_link(dir, as, s);
		if (r == -EEXIST && only_new)
			return meets_rival(s, dir, as) ? ENDPOINT_RIVAL : SLOT_TAKEN;
		if (r != -EEXIST)
			return r;
		met = true;
	} else {
		met = s->how != HOW_LINK && !s->is.exists && !only_new && name_exists(dir, as);
	}
	r = prepare_rename(s, met, flush, s->private && s->how != HOW_PART, call);
	if (r == 0)
		r = tell_taken(s, rename_without_rival(s, dir, as, call));
	if (r == 0) {
		*call = NULL;
		s->name[0] = '\0';
		r = check_renamed(s, dir, as);
	}
	return r;
}

int slot_commit(struct slot *s, int dir, const char *as, const char **call)
{
	int r = 0;
	if (HOW_IS(s, HOW_INVISIBLE))
		r = s->is.file ? commit_file(s, dir, as, call)
			       : tell_taken(s, rename_once(s, dir, as, call));
	if (r == 0 || r == SLOT_EXCHANGED)
		s->stage = SLOT_NAMED;
	return r;
}

/* Some storage removes no file that is open, or writes one back when it is closed: removes it
 * again. */
void slot_drop(struct slot *s)
{
	const bool removes = s->stage == SLOT_MADE && HOW_IS(s, HOW_INVISIBLE) && s->name[0];
	bool removed = removes && unlinkat(s->home, s->name, 0) == 0;
	if (removes && !removed && !s->is.file && errno == EISDIR)
		unlinkat(s->home, s->name, AT_REMOVEDIR);
	if (s->fd)
		(void)close_file(s);
	if (removes && s->is.file)
		unlinkat(s->home, s->name, 0);
	if (s->stage != SLOT_MADE)
		return;
	s->name[0] = '\0';
	s->stage = SLOT_GONE;
}
