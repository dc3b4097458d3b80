/* SPDX-License-Identifier: MIT
 * Replaces a file atomically: the bytes go to an unnamed file, or to one with a temporary name
 * (temporary.c), or into a part (partial.c). It gets the name DST when it is complete (slot.c).
 * temporary.c checks before the first byte that this can succeed.
 */
#define _GNU_SOURCE
#include "replace.h"
#include "attributes.h"
#include "error.h"
#include "file.h"
#include "io/system.h"
#include "storage.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The mode that the old file has. Without its setuid and setgid bits: the new content must not run
 * with its owner's rights. */
static mode_t old_mode(const struct endpoint *e)
{
	return file_of(e)->place.st.st_mode & 01777;
}

/* Where chmod(2) is refused with err, a new file may lack its mode: no option asked for it. An old
 * file that others may read, or may not, must stay so. */
static int accept_mode(struct endpoint *e, mode_t mode, const struct fcopy_options *options,
		       int err, struct fcopy_error *error)
{
	const bool exists = file_of(e)->place.exists;
	struct stat now;
	error_call(error, "fchmod", e->path, err);
	if (error_is_of_storage(error))
		return -err;
	*error = (struct fcopy_error){0};
	if (fstat(e->fd, &now) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (exists && !options->force && (now.st_mode ^ mode) & 0777)
		return error_refuse(error, e->path, err, "its mode cannot be kept",
				    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
	e->mode_lost = mode & ~now.st_mode & 0777 ? err : 0;
	return 0;
}

/* has: the mode that it has now; 0: unknown. */
static int set_final_mode(struct endpoint *e, mode_t has, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	const struct place *old = &file_of(e)->place;
	mode_t mode = old->exists ? old_mode(e) : file_of(e)->mode;
	int r = 0;
	if (old->exists)
		r = keep_acl(e, old, options->force, file_of(e)->local, error);
	const bool done = r == RESULT_NONE && has && (has & 07777) == mode;
	if (r < 0 || done || fchmod(e->fd, mode) == 0)
		return r < 0 ? r : 0;
	int err = errno;
	if (!storage_can(file_of(e)->slot.storage, old->dir, STORAGE_CHANGES_MODES))
		err = EOPNOTSUPP; /* some FUSE file systems return EIO for that */
	return accept_mode(e, mode, options, err, error);
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
static int renew(const struct endpoint *e, struct fcopy_error *error)
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

int replace_finish(struct endpoint *e, const struct fcopy_options *options,
		   struct fcopy_error *error)
{
	const bool shard = options->shard.count > 0; /* its owner waits for the commit, too */
	mode_t has = 0;
	int r = shard && !file_of(e)->place.exists ? renew(e, error) : 0;
	if (file_of(e)->place.exists && (owner_waits(e) || shard) &&
	    !(options->preserve & FCOPY_ATTR_OWNERSHIP))
		r = keep_owner(e, &file_of(e)->place, options->force, &has, error);
	if (r == 0)
		r = set_final_mode(e, has, options, error);
	return r < 0 ? replace_advise(options, r, error) : RESULT_CHANGED;
}

/* Records a failure to create or to name the new file. */
static int replace_fail(const struct endpoint *e, const struct failure *fail, int r,
			struct fcopy_error *error)
{
	error_call(error, fail->call, e->path, -r);
	if (r == -EACCES || r == -EPERM || r == -EBUSY || fail->step == STEP_RENAME ||
	    fail->step == STEP_DISPLACE)
		error->advice = replace_in_place_advice(e);
	return r;
}

/* What the commit may replace, and how it shows what failed. */
static void set_commit(struct endpoint *e, const struct fcopy_options *options)
{
	struct file *f = file_of(e);
	struct slot *s = &f->slot;
	const bool exact = file_has(e, DESTINATION_EXACT);
	s->found = s->is.exists ? &f->place.st : NULL;
	s->over = options->no_clobber || (exact && !s->found) ? OVER_NOTHING
		  : exact                                     ? OVER_FOUND
							      : OVER_ANY;
	s->backup = e->backup;
	s->fd = &e->fd;
	s->written = e->written;
	s->flushes = f->directory >= 0;
	s->rivals = e->rivals;
}

int replace_commit(struct endpoint *e, const struct fcopy_options *options,
		   struct fcopy_error *error)
{
	struct file *f = file_of(e);
	struct failure fail;
	set_commit(e, options);
	/* Start writeback: the rename could reach the disk before the bytes, and a power cut would
	 * leave neither file. XFS waits up to 30 s; ext4 starts writeback at a rename itself. */
	if (e->fd >= 0 && f->slot.is.exists && !options->fsync)
		sync_file_range(e->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	/* If somebody has moved the part, its name may be that of another copy's part. */
	if (f->partial && !partial_is_named(e))
		return errno && errno != ENOENT
			   ? error_call(error, "fstat", e->path, errno)
			   : error_refuse(error, e->path, ENOENT, PART_REPLACED, FCOPY_ADVICE_NONE);
	int r = slot_commit(&f->slot, f->place.dir, f->place.name, &fail);
	if (r == RESULT_TAKEN) {
		f->keep_part = false;
		return options->no_clobber ? RESULT_SKIPPED : r;
	}
	if (r == 0 || r == RESULT_RIVAL)
		return r;
	if (!fail.call)
		return error_refuse(error, e->path, -r,
				    "another process exchanged its temporary file",
				    FCOPY_ADVICE_NONE);
	return replace_advise(options, replace_fail(e, &fail, r, error), error);
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
static const char *part_lacks(const struct endpoint *e, const struct fcopy_options *options)
{
	struct storage once = STORAGE_INITIALIZER, *s = file_of(e)->slot.storage;
	const int dir = file_of(e)->place.dir;
	const bool shards = options->shard.count > 0;
	if (!options->resume && !shards)
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
static int create_named(struct endpoint *e, mode_t mode, const struct fcopy_options *options,
			struct fcopy_error *error)
{
	struct failure fail;
	const bool exists = file_of(e)->place.exists;
	if (!options->scratch && !can_be_named(e))
		return file_of(e)->slot.is.exists
			   ? error_refuse(error, e->path, EOPNOTSUPP,
					  "cannot be replaced: " STORAGE_NO_RENAME,
					  exists ? replace_in_place_advice(e)
						 : FCOPY_ADVICE_IN_PLACE_AUTO)
			   : RESULT_UNFIT;
	int r = temporary_create_named(e, mode, &fail);
	if (r < 0)
		return replace_fail(e, &fail, r, error);
	return exists && file_of(e)->created_mode != 0600
		   ? accept_mode(e, old_mode(e), options, EOPNOTSUPP, error)
		   : 0;
}

static int open_part(struct endpoint *e, const struct endpoint *src, mode_t mode,
		     const struct fcopy_options *options, struct fcopy_error *error)
{
	const char *lacks = part_lacks(e, options);
	if (lacks)
		return error_refuse(error, e->path, EOPNOTSUPP, lacks, FCOPY_ADVICE_NO_PART);
	if (options->shard.count == 0)
		return partial_open(e, src, mode, options, error);
	/* destination_share opens it */
	file_of(e)->mode = temporary_mode(file_of(e)->place.dir, mode, file_of(e)->slot.storage);
	return 0;
}

/* HOW_LINK */
static int create_unnamed(struct endpoint *e, mode_t mode, struct fcopy_error *error)
{
	struct failure fail;
	int r = temporary_create(e, mode, &fail);
	return r < 0 ? replace_fail(e, &fail, r, error) : r;
}

static int open_temporary(struct endpoint *e, const struct endpoint *src,
			  const struct fcopy_options *options, struct fcopy_error *error)
{
	const bool exists = file_of(e)->place.exists;
	const mode_t mode = replace_new_mode(src);
	switch (file_of(e)->slot.how) {
	case HOW_PART: return open_part(e, src, mode, options, error);
	case HOW_LINK: return create_unnamed(e, exists ? old_mode(e) : mode, error);
	default: return create_named(e, exists ? old_mode(e) : mode, options, error);
	}
}

/* Gives the new file what it has of the old one, unless that waits until it is complete. */
static int take_attributes(struct endpoint *e, const struct fcopy_options *options,
			   struct fcopy_error *error)
{
	const struct place *p = &file_of(e)->place;
	mode_t has;
	int r = 0;
	if (!p->exists)
		return 0;
	if (owner_waits(e))
		return replace_check_owner(e, options, error);
	const bool unnamed = file_of(e)->slot.how == HOW_LINK;
	if (unnamed && fstat(e->fd, &e->st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (unnamed && e->st.st_uid == p->st.st_uid && e->st.st_gid == p->st.st_gid)
		has = e->st.st_mode;
	else
		r = keep_owner(e, p, options->force, &has, error);
	if (r == 0 && unnamed) /* invisible: set its mode early */
		r = set_final_mode(e, has, options, error);
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

int replace_open(struct endpoint *e, const struct endpoint *src,
		 const struct fcopy_options *options, struct fcopy_error *error)
{
	int r = open_temporary(e, src, options, error);
	if (r != 0)
		return r;
	e->positional = true;
	e->st.st_mode = S_IFREG;
	e->finishes = file_of(e)->slot.how != HOW_LINK;
	if (options->shard.count == 0)
		r = take_attributes(e, options, error);
	return r == 0 ? note_sharing(e, error) : r;
}
