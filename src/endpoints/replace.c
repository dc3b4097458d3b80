/* SPDX-License-Identifier: MIT
 * Replaces a file atomically: the bytes go to an unnamed file, or to one with a temporary name
 * (temporary.c), or into a part (partial.c). It gets the name DST when it is complete (slot.c).
 */
#include "replace.h"
#include "attributes.h"
#include "io/system.h"

#include <linux/capability.h>
#include <sys/syscall.h>

/* Checks before the first byte for everything that would make the commit of an atomic file fail:
 * what forbids the rename, or a new owner. */

#define FIXED (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)

/* Do owner and mode alone show that? Where the file system is read-only, the new file cannot be
 * created. */
static bool owner_may_write(const struct endpoint *e)
{
	const struct place *p = &file_of(e)->place;
	const struct storage *known = file_of(e)->slot.storage;
	return p->flagged && !(p->flags & FIXED) && p->st.st_mode & S_IWUSR &&
	       p->st.st_uid == (known ? known->user : geteuid());
}

/* Whether this thread may act as the owner of a file that is not its own. */
static bool is_privileged(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	return syscall(SYS_capget, &head, data) == 0 &&
	       data[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER);
}

/* statx(2) also reports attributes that forbid a rename. Container filters deny the call, and some
 * file systems fail it; without it assume none of them: the rename then reports the failure. So it
 * is with place.flags. */
static int stat_directory(const struct endpoint *e, struct statx *sx)
{
	struct stat st;
	int dir = file_of(e)->place.dir;
	if (statx(dir, ".", AT_SYMLINK_NOFOLLOW, STATX_MODE | STATX_UID, sx) == 0)
		return 0;
	if (fstatat(dir, ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*sx = (struct statx){.stx_mode = (__u16)st.st_mode, .stx_uid = st.st_uid};
	return 0;
}

/* Refuses a directory that forbids the rename. */
static int check_directory_allows_rename(struct endpoint *e, struct fcopy_error *error)
{
	struct statx sx;
	if (file_has(e, DESTINATION_DIRECTORY_FITS))
		return 0;
	int r = stat_directory(e, &sx);
	if (r < 0)
		return error_operation(error, "statx of its directory", "statx", e->path, -r);
	file_of(e)->slot.private |= !private_is_shared(
	    &(struct stat){.st_mode = sx.stx_mode, .st_uid = sx.stx_uid});
	if (sx.stx_attributes & STATX_ATTR_APPEND)
		return error_refuse(error, e->path, EPERM,
				    "cannot be replaced: its directory is append-only",
				    in_place_advice(e));
	if (file_of(e)->place.exists && sx.stx_mode & S_ISVTX && sx.stx_uid != geteuid() &&
	    file_of(e)->place.st.st_uid != geteuid() && !is_privileged())
		return error_refuse(
		    error, e->path, EPERM,
		    "cannot be replaced: you own neither it nor its sticky directory",
		    in_place_advice(e));
	if (!(sx.stx_mode & S_ISVTX))
		file_of(e)->flags |= DESTINATION_DIRECTORY_FITS;
	return 0;
}

/* Refuses an existing file that no rename can replace. Without force, also refuses one that has
 * other hard links or that the user may not write to. */
static int check_existing(struct endpoint *e, bool force, struct fcopy_error *error)
{
	const uint64_t flags = file_of(e)->place.flags;
	if (file_of(e)->place.st.st_nlink == 0) /* by /proc/PID/fd/N */
		return error_refuse_operand(
		    error, e->path, ENOENT,
		    "has no name to replace: it is a deleted file or a memfd", in_place_advice(e));
	if (flags & STATX_ATTR_MOUNT_ROOT)
		return error_refuse_operand(error, e->path, EBUSY,
					    "is a mount point and cannot be replaced",
					    in_place_advice(e));
	int err = owner_may_write(e)
		      ? 0
		      : place_access(&file_of(e)->place, file_of(e)->place.name, W_OK);
	if (err == EROFS)
		return error_call(error, "open", e->path, EROFS);
	/* erofs reports STATX_ATTR_IMMUTABLE for each of its files. */
	if (flags & FIXED)
		return error_refuse(error, e->path, EPERM, "is immutable or append-only",
				    FCOPY_ADVICE_FLAGS);
	int r = check_directory_allows_rename(e, error);
	if (r < 0 || force)
		return r;
	/* A symlink that was followed may lead out of the tree. */
	const bool in_tree = file_of(e)->place.target < 0;
	const bool replaces_links = file_has(e, DESTINATION_REPLACES_LINKS) && in_tree;
	if (err == EACCES && file_has(e, DESTINATION_REPLACES_READ_ONLY) && in_tree &&
	    file_of(e)->place.st.st_uid == geteuid())
		err = 0;
	const bool links = file_of(e)->place.st.st_nlink > 1 && !replaces_links;
	if (!links && !err)
		return 0;
	/* With force the file is replaced by a rename, which needs the directory. */
	const bool helps = place_access(&file_of(e)->place, ".", W_OK | X_OK) == 0;
	if (links)
		return error_refuse_operand(
		    error, e->path, EMLINK,
		    "has other hard links, which would keep the old content",
		    err && helps ? FCOPY_ADVICE_FORCE
		    : err        ? FCOPY_ADVICE_NONE
		    : helps      ? FCOPY_ADVICE_IN_PLACE_OR_FORCE
				 : FCOPY_ADVICE_IN_PLACE);
	return helps
		   ? error_refuse(error, e->path, err, "is not writable by you", FCOPY_ADVICE_FORCE)
		   : error_refuse(error, e->path, err,
				  "is not writable by you, and neither is its directory",
				  FCOPY_ADVICE_NONE);
}

int replace_advise(const struct endpoint *e, int r, struct fcopy_error *error)
{
	enum fcopy_advice *a = &error->advice;
	if (r < 0 && file_is_shard(e)) {
		*a = *a == FCOPY_ADVICE_IN_PLACE_AUTO       ? FCOPY_ADVICE_NONE
		     : *a == FCOPY_ADVICE_IN_PLACE_OR_FORCE ? FCOPY_ADVICE_FORCE
							    : *a;
	}
	return r;
}

int replace_check_owner(const struct endpoint *e, struct fcopy_error *error)
{
	struct failure fail;
	struct endpoint file = {.fd = -1, .path = e->path}, *probe = &file;
	const struct stat *old = &file_of(e)->place.st;
	struct stat st;
	mode_t mode;
	if (e->options->force || e->options->preserve & FCOPY_ATTR_OWNERSHIP)
		return 0;
	if (e->fd >= 0 && fstat(e->fd, &st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (e->fd >= 0 && st.st_uid == old->st_uid && st.st_gid == old->st_gid)
		return 0;
	int r = temporary_open_probe(file_of(e)->place.dir, probe, &fail);
	r = r < 0 ? error_call(error, fail.call, e->path, -r)
		  : keep_owner(probe, &file_of(e)->place, false, &mode, error);
	temporary_drop(probe);
	return r;
}

int replace_check(struct endpoint *e, struct fcopy_error *error)
{
	const bool shard = file_is_shard(e);
	/* A part has a name, which must be renamed. */
	if (!file_of(e)->place.exists)
		return e->options->resume || shard ? check_directory_allows_rename(e, error) : 0;
	int r = check_existing(e, e->options->force, error);
	if (r == 0 && shard)
		r = replace_check_owner(e, error);
	return replace_advise(e, r, error);
}

/* The mode that the old file has. Without its setuid and setgid bits: the new content must not run
 * with its owner's rights. */
static mode_t old_mode(const struct endpoint *e)
{
	return file_of(e)->place.st.st_mode & 01777;
}

/* Where chmod(2) is refused with err, a new file may lack its mode: no option asked for it. An old
 * file that others may read, or may not, must stay so. */
static int accept_mode(struct endpoint *e, mode_t mode, int err, struct fcopy_error *error)
{
	const bool exists = file_of(e)->place.exists;
	struct stat now;
	error_call(error, "fchmod", e->path, err);
	if (error_is_of_storage(error))
		return -err;
	*error = (struct fcopy_error){0};
	if (fstat(e->fd, &now) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (exists && !e->options->force && (now.st_mode ^ mode) & 0777)
		return error_refuse(error, e->path, err, "its mode cannot be kept",
				    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
	e->mode_lost = mode & ~now.st_mode & 0777 ? err : 0;
	return 0;
}

/* has: the mode that it has now; 0: unknown. */
static int set_final_mode(struct endpoint *e, mode_t has, struct fcopy_error *error)
{
	const struct place *old = &file_of(e)->place;
	mode_t mode = old->exists ? old_mode(e) : file_of(e)->mode;
	int r = 0;
	if (old->exists)
		r = keep_acl(e, old, e->options->force, file_of(e)->local, error);
	const bool done = r == RESULT_NONE && has && (has & 07777) == mode;
	if (r < 0 || done || fchmod(e->fd, mode) == 0)
		return r < 0 ? r : 0;
	int err = errno;
	if (!storage_can(file_of(e)->slot.storage, old->dir, STORAGE_CHANGES_MODES))
		err = EOPNOTSUPP; /* some FUSE file systems return EIO for that */
	return accept_mode(e, mode, err, error);
}

/* As root, change the owner of a named temporary last. The future owner could open it early, even
 * if --preserve later changes the owner again. Root also refuses to resume a part that it does not
 * own. Other users cannot change the owner: for them the copy fails before the first byte. */
static bool owner_waits(const struct endpoint *e)
{
	return file_of(e)->slot.how != HOW_LINK && geteuid() == 0;
}

/* Of shards: a commit that was killed may have given data the owner, group, ACL and security label
 * of a DST that is gone by now. They must not admit users to the copy. */
static int replace_renew(const struct endpoint *e, struct fcopy_error *error)
{
	struct failure fail;
	mode_t mode;
	struct endpoint file = {.fd = -1}, *probe = &file;
	const struct place *new = &file_of(probe)->place;
	int r = temporary_open_probe(file_of(e)->place.dir, probe, &fail);
	if (r < 0)
		error_call(error, fail.call, e->path, -r);
	else if ((r = keep_owner(e, new, false, &mode, error)) < 0 ||
		 (r = keep_acl(e, new, false, false, error)) < 0)
		error_refuse(error, e->path, -r,
			     "the data in its .fcopy-part cannot get the owner and ACL that a new "
			     "file would have",
			     FCOPY_ADVICE_SHARDS);
	temporary_drop(probe);
	return r;
}

int replace_finish(struct endpoint *e, struct fcopy_error *error)
{
	const bool shard = file_is_shard(e); /* its owner waits for the commit, too */
	mode_t has = 0;
	int r = shard && !file_of(e)->place.exists ? replace_renew(e, error) : 0;
	if (file_of(e)->place.exists && (owner_waits(e) || shard) &&
	    !(e->options->preserve & FCOPY_ATTR_OWNERSHIP))
		r = keep_owner(e, &file_of(e)->place, e->options->force, &has, error);
	if (r == 0)
		r = set_final_mode(e, has, error);
	return r < 0 ? replace_advise(e, r, error) : RESULT_CHANGED;
}

/* Records a failure to create or to name the new file. */
static int replace_fail(const struct endpoint *e, const struct failure *fail, int r,
			struct fcopy_error *error)
{
	error_call(error, fail->call, e->path, -r);
	if (r == -EACCES || r == -EPERM || r == -EBUSY || fail->step == STEP_RENAME ||
	    fail->step == STEP_DISPLACE)
		error->advice = in_place_advice(e);
	return r;
}

/* What the commit may replace, and how it shows what failed. */
static void set_commit(struct endpoint *e)
{
	struct file *f = file_of(e);
	struct slot *s = &f->slot;
	const bool exact = file_has(e, DESTINATION_EXACT);
	s->found = s->is.exists ? &f->place.st : NULL;
	s->over = e->options->no_clobber || (exact && !s->found) ? OVER_NOTHING
		  : exact                                        ? OVER_FOUND
								 : OVER_ANY;
	s->backup = e->backup;
	s->fd = &e->fd;
	s->written = e->written;
	s->flushes = f->directory >= 0;
	s->rivals = e->rivals;
}

int replace_commit(struct endpoint *e, struct fcopy_error *error)
{
	struct file *f = file_of(e);
	struct failure fail;
	set_commit(e);
	/* Start writeback: the rename could reach the disk before the bytes, and a power cut would
	 * leave neither file. XFS waits up to 30 s; ext4 starts writeback at a rename itself. */
	if (e->fd >= 0 && f->slot.is.exists && !e->options->fsync)
		sync_file_range(e->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	/* If somebody has moved the part, its name may be that of another copy's part. */
	if (f->partial && !partial_is_named(e))
		return errno && errno != ENOENT
			   ? error_call(error, "fstat", e->path, errno)
			   : error_refuse(error, e->path, ENOENT, PART_REPLACED, FCOPY_ADVICE_NONE);
	int r = slot_commit(&f->slot, f->place.dir, f->place.name, &fail);
	if (f->slot.stage == SLOT_LOST)
		slot_warn_lost(&f->slot, e->options);
	slot_warn_left(&f->slot, f->place.name, e->options);
	if (r == RESULT_TAKEN) {
		f->keep_part = false;
		return e->options->no_clobber ? RESULT_SKIPPED : r;
	}
	if (r == 0 || r == RESULT_RIVAL)
		return r;
	if (!fail.call)
		return error_refuse(error, e->path, -r,
				    "another process exchanged its temporary file",
				    FCOPY_ADVICE_NONE);
	return replace_advise(e, replace_fail(e, &fail, r, error), error);
}

mode_t replace_new_mode(const struct endpoint *src)
{
	/* Those of a disk protect its content; those of a stream do not. */
	bool stored = S_ISREG(src->st.st_mode) || S_ISBLK(src->st.st_mode);
	return stored ? src->st.st_mode & 0777 : 0666;
}

/* Can a file with a temporary name get its final name here? */
static bool can_be_named(const struct endpoint *e)
{
	const struct place *p = &file_of(e)->place;
	return storage_can(file_of(e)->slot.storage, p->dir,
			   file_of(e)->slot.is.exists ? STORAGE_REPLACES_FILES
						      : STORAGE_RENAMES_FILES);
}

/* Why DST cannot have a part here, or NULL. That of --resume is a directory, which is renamed and
 * recognised by its inode number. */
static const char *part_lacks(const struct endpoint *e)
{
	struct storage once = STORAGE_INITIALIZER, *s = file_of(e)->slot.storage;
	const int dir = file_of(e)->place.dir;
	const bool shards = file_is_shard(e);
	if (!e->options->resume && !shards)
		return NULL;
	if (system_is_rclone(dir))
		return shards ? "cannot be copied in shards: " STORAGE_RENAMES_LATE
			      : "cannot be resumed: " STORAGE_RENAMES_LATE;
	if (!can_be_named(e))
		return "cannot have a .fcopy-part: " STORAGE_NO_RENAME;
	s = s ? s : &once;
	if (shards && (!storage_can(s, dir, STORAGE_RENAMES_DIRECTORIES) ||
		       !storage_can(s, dir, STORAGE_KEEPS_INODES)))
		return "cannot be copied in shards: directories cannot be renamed here";
	if (!storage_can(s, dir, STORAGE_RENAMES_DIRECTORIES))
		return "cannot be resumed: directories cannot be renamed here";
	if (!storage_can(s, dir, STORAGE_KEEPS_INODES))
		return "cannot be resumed: a renamed directory gets another inode number here";
	return NULL;
}

/* HOW_RENAME. Where the file could not be renamed, a new one can be created under its final name.
 * An old file stays until the commit, so it cannot be replaced then. */
static int replace_create_named(struct endpoint *e, mode_t mode, struct fcopy_error *error)
{
	struct failure fail;
	const bool exists = file_of(e)->place.exists;
	if (!e->options->scratch && !can_be_named(e))
		return file_of(e)->slot.is.exists
			   ? error_refuse(error, e->path, EOPNOTSUPP,
					  "cannot be replaced: " STORAGE_NO_RENAME,
					  exists ? in_place_advice(e) : FCOPY_ADVICE_IN_PLACE_AUTO)
			   : RESULT_UNFIT;
	int r = temporary_create_named(e, mode, &fail);
	if (r < 0)
		return replace_fail(e, &fail, r, error);
	return exists && file_of(e)->created_mode != 0600
		   ? accept_mode(e, old_mode(e), EOPNOTSUPP, error)
		   : 0;
}

static int open_part(struct endpoint *e, const struct endpoint *src, mode_t mode,
		     struct fcopy_error *error)
{
	const char *lacks = part_lacks(e);
	if (lacks)
		return error_refuse(error, e->path, EOPNOTSUPP, lacks, FCOPY_ADVICE_NO_PART);
	if (!file_is_shard(e))
		return partial_open(e, src, mode, error);
	/* destination_share opens it */
	file_of(e)->mode = temporary_mode(file_of(e)->place.dir, mode, file_of(e)->slot.storage);
	return 0;
}

static int open_temporary(struct endpoint *e, const struct endpoint *src, struct fcopy_error *error)
{
	const bool exists = file_of(e)->place.exists;
	const mode_t mode = replace_new_mode(src);
	struct failure fail;
	int r;
	switch (file_of(e)->slot.how) {
	case HOW_PART: return open_part(e, src, mode, error);
	case HOW_LINK:
		r = temporary_create(e, exists ? old_mode(e) : mode, &fail);
		return r < 0 ? replace_fail(e, &fail, r, error) : r;
	default: return replace_create_named(e, exists ? old_mode(e) : mode, error);
	}
}

/* Gives the new file what it has of the old one, unless that waits until it is complete. */
static int take_attributes(struct endpoint *e, struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	mode_t has;
	int r = 0;
	if (!p->exists)
		return 0;
	if (owner_waits(e))
		return replace_check_owner(e, error);
	const bool unnamed = file_of(e)->slot.how == HOW_LINK;
	if (unnamed && fstat(e->fd, &e->st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (unnamed && e->st.st_uid == p->st.st_uid && e->st.st_gid == p->st.st_gid)
		has = e->st.st_mode;
	else
		r = keep_owner(e, p, e->options->force, &has, error);
	if (r == 0 && unnamed) /* invisible: set its mode early */
		r = set_final_mode(e, has, error);
	return r;
}

/* Must the commit check that nobody has exchanged the temporary name? */
static int note_sharing(struct endpoint *e, struct fcopy_error *error)
{
	struct stat st;
	struct slot *s = &file_of(e)->slot;
	if (s->private || (s->how == HOW_LINK && !file_of(e)->place.exists))
		return 0;
	if (fstatat(file_of(e)->place.dir, ".", &st, 0) < 0)
		return error_operation(error, "stat of its directory", "stat", e->path, errno);
	s->private = !private_is_shared(&st);
	return 0;
}

int replace_open(struct endpoint *e, const struct endpoint *src, struct fcopy_error *error)
{
	int r = open_temporary(e, src, error);
	if (r != 0)
		return r;
	e->positional = true;
	e->st.st_mode = S_IFREG;
	e->finishes = file_of(e)->slot.how != HOW_LINK;
	if (!file_is_shard(e))
		r = take_attributes(e, error);
	return r == 0 ? note_sharing(e, error) : r;
}
