/* SPDX-License-Identifier: MIT
 * Replaces a file atomically: the bytes go to an unnamed file, or to one with a temporary name
 * (temporary.c). It gets the name DST when it is complete. Before the first byte, this file checks
 * for everything that would make the rename fail.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"
#include "io/io.h"
#include "io/libc.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* May this user write into the existing file? Returns 0 or errno. Old container runtimes answer
 * faccessat2(2), which glibc calls, with EPERM and not with ENOSYS: then faccessat(2) decides, for
 * the real user. */
static int existing_access(const struct endpoint *e)
{
	const struct place *p = &file_of(e)->place;
	if (faccessat(p->dir, p->name, W_OK, AT_EACCESS) == 0 ||
	    (errno == EPERM && syscall(SYS_faccessat, p->dir, p->name, W_OK) == 0))
		return 0;
	return errno;
}

/* FCOPY_ADVICE_IN_PLACE if that could succeed; files of hugetlbfs have no write(2). */
static enum fcopy_advice advise_in_place(const struct endpoint *e)
{
	struct statfs fs;
	int dir = file_of(e)->place.dir, r = dir == AT_FDCWD ? statfs(".", &fs) : fstatfs(dir, &fs);
	bool writes = r < 0 || (unsigned)fs.f_type != HUGETLBFS_MAGIC;
	return file_of(e)->place.exists && writes && existing_access(e) == 0 ? FCOPY_ADVICE_IN_PLACE
									     : FCOPY_ADVICE_NONE;
}

/* Whether this thread may act as the owner of a file that is not its own. */
static bool is_privileged(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	return syscall(SYS_capget, &head, data) == 0 &&
	       data[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER);
}

/* statx(2) also reports attributes that forbid a rename. Container filters deny the call with
 * EPERM; without it assume none of them: the rename then reports the failure. */
static int stat_attributes(const struct endpoint *e, const char *name, struct statx *sx)
{
	struct stat st;
	int dir = file_of(e)->place.dir;
	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_MODE | STATX_UID, sx) == 0)
		return 0;
	if ((errno != EPERM && errno != EACCES && errno != ENOSYS) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*sx = (struct statx){.stx_mode = (__u16)st.st_mode, .stx_uid = st.st_uid};
	return 0;
}

/* Refuses a directory that forbids the rename. */
static int check_directory_allows_rename(const struct endpoint *e, struct fcopy_error *error)
{
	struct statx sx;
	int r = stat_attributes(e, ".", &sx);
	if (r < 0)
		return error_operation(error, "statx of its directory", "statx", e->path, -r);
	if (sx.stx_attributes & STATX_ATTR_APPEND)
		return error_refuse(error, e->path, EPERM,
				    "cannot be replaced: its directory is append-only",
				    advise_in_place(e));
	if (file_of(e)->place.exists && sx.stx_mode & S_ISVTX && sx.stx_uid != geteuid() &&
	    file_of(e)->place.st.st_uid != geteuid() && !is_privileged())
		return error_refuse(
		    error, e->path, EPERM,
		    "cannot be replaced: its directory is sticky, and you own neither",
		    advise_in_place(e));
	return 0;
}

/* Refuses an existing file that no rename can replace. Without force, also refuses one that has
 * other hard links or that the user may not write to. */
static int check_existing(const struct endpoint *e, bool force, struct fcopy_error *error)
{
	struct statx sx;
	if (file_of(e)->place.st.st_nlink == 0) /* by /proc/PID/fd/N */
		return error_refuse(error, e->path, ENOENT,
				    "has no name to replace: it is a deleted file or a memfd",
				    advise_in_place(e));
	int r = stat_attributes(e, file_of(e)->place.name, &sx);
	if (r < 0)
		return error_call(error, "statx", e->path, -r);
	if (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return error_refuse(error, e->path, EBUSY,
				    "is a mount point and cannot be replaced", advise_in_place(e));
	int err = existing_access(e);
	if (err == EROFS)
		return error_call(error, "open", e->path, EROFS);
	/* erofs reports STATX_ATTR_IMMUTABLE for each of its files. */
	if (sx.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		return error_refuse(error, e->path, EPERM, "is immutable or append-only",
				    FCOPY_ADVICE_FLAGS);
	r = check_directory_allows_rename(e, error);
	if (r < 0 || force)
		return r;
	/* A symlink that was followed may lead out of the tree. */
	bool replaces_links = file_of(e)->replace_links && file_of(e)->place.target < 0;
	if (file_of(e)->place.st.st_nlink > 1 && !replaces_links)
		return error_refuse(error, e->path, EMLINK,
				    "has other hard links, which would keep the old content",
				    err ? FCOPY_ADVICE_FORCE : FCOPY_ADVICE_IN_PLACE_OR_FORCE);
	if (err)
		return error_refuse(error, e->path, err, "is not writable by you",
				    FCOPY_ADVICE_FORCE);
	return 0;
}

/* close(2) reports failed writes on NFS and FUSE, but linkat needs the open descriptor: close a
 * duplicate first. After EINTR the outcome is unknown, so it is a failure too. */
static int close_duplicate(int fd, const char **call)
{
	*call = "fcntl(F_DUPFD)";
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	*call = "close";
	return close(copy) < 0 ? -errno : 0;
}

/* Removes the setuid and setgid bits of an old file: the new content must not run with its owner's
 * rights. */
static int set_final_mode(struct endpoint *e, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	const struct place *old = &file_of(e)->place;
	mode_t mode = old->exists ? old->st.st_mode & 01777 : file_of(e)->mode;
	int r = 0;
	if (old->exists)
		r = metadata_keep_acl(e, old, options->force, error);
	if (r < 0 || fchmod(e->fd, mode) == 0)
		return r;
	int err = errno;
	return temporary_stores_modes(old->dir) ? error_call(error, "fchmod", e->path, err) : 0;
}

/* As root, change the owner of a named temporary last. The future owner could open it early, even
 * if --preserve later changes the owner again. Root also refuses to resume a part that it does not
 * own. Other users cannot change the owner: for them the copy fails before the first byte. */
static bool owner_waits(const struct endpoint *e)
{
	return !file_of(e)->link && geteuid() == 0;
}

/* Shards cannot write in place: removes that advice. */
static int replace_advise(const struct fcopy_options *options, int r, struct fcopy_error *error)
{
	enum fcopy_advice *a = &error->advice;
	if (r < 0 && options->shard.count > 0) {
		*a = *a == FCOPY_ADVICE_IN_PLACE            ? FCOPY_ADVICE_NONE
		     : *a == FCOPY_ADVICE_IN_PLACE_OR_FORCE ? FCOPY_ADVICE_FORCE
							    : *a;
	}
	return r;
}

/* Gives a named temporary file owner and mode, now that it is complete. Earlier, other users could
 * have opened it. */
static int replace_finish(struct endpoint *e, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	const bool shard = options->shard.count > 0; /* its owner waits for the commit, too */
	if (file_of(e)->link)
		return 0;
	int r = shard && !file_of(e)->place.exists ? part_renew(e, error) : 0;
	if (file_of(e)->place.exists && (owner_waits(e) || shard) &&
	    !(options->preserve & FCOPY_ATTR_OWNERSHIP))
		r = metadata_keep_owner(e, &file_of(e)->place, options->force, error);
	if (r == 0)
		r = set_final_mode(e, options, error);
	return r < 0 ? replace_advise(options, r, error) : 1;
}

static void replace_abort(struct endpoint *e)
{
	temporary_drop(e);
	if (file_of(e)->directory >= 0)
		close(file_of(e)->directory);
	file_of(e)->directory = -1;
	place_close(&file_of(e)->place);
}

/* Records a failure to create or to name the new file. */
static int replace_fail(const struct endpoint *e, const char *call, int r,
			struct fcopy_error *error)
{
	error_call(error, call, e->path, -r);
	if (r == -EACCES || r == -EPERM || r == -EBUSY)
		error->advice = advise_in_place(e);
	return r;
}

static int replace_commit(struct endpoint *e, const struct fcopy_options *options,
			  struct fcopy_error *error)
{
	const char *call;
	/* Start writeback: the rename could reach the disk before the bytes, and a power cut would
	 * leave neither file. XFS waits up to 30 s; ext4 starts writeback at a rename itself. */
	if (file_of(e)->place.exists && !options->fsync)
		sync_file_range(e->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	int r = close_duplicate(e->fd, &call);
	/* If somebody has removed the part, its name may be that of another copy's part. */
	const char *name = file_of(e)->temporary;
	if (r == 0 && name[0] && !temporary_is_drawn(name)) {
		call = "stat";
		r = part_is_named(e);
		if (r == -ENOENT) {
			file_of(e)->temporary[0] = '\0'; /* the name of another file */
			file_of(e)->keep_part = false;
			return error_refuse(error, e->path, ENOENT, PART_REPLACED,
					    FCOPY_ADVICE_NONE);
		}
	}
	if (r == 0)
		r = temporary_name(e, options->no_clobber, &call);
	if (r == ENDPOINT_KEPT) {
		file_of(e)->keep_part = false;
		return r;
	}
	if (r < 0)
		return replace_advise(options, replace_fail(e, call, r, error), error);
	if (file_of(e)->directory >= 0 && (r = io_flush_directory(file_of(e)->directory)) < 0) {
		error_operation(error, "fsync of the directory", "fsync", e->path, -r);
		error->advice = FCOPY_ADVICE_FLUSH;
		return r;
	}
	replace_abort(e);
	return 0;
}

/* Opens the directory that the commit will flush: a failure must show before the commit. */
static int open_directory(struct endpoint *e, const struct fcopy_options *options)
{
	if (!options->fsync || options->scratch)
		return 0;
	file_of(e)->directory = openat(file_of(e)->place.dir, ".",
				       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return file_of(e)->directory < 0 ? -errno : 0;
}

/* A named temporary file gets its owner last. Checks now, with a probe, that this will work. */
static int check_owner(const struct endpoint *e, const struct fcopy_options *options,
		       struct fcopy_error *error)
{
	const char *call;
	struct endpoint file = {.fd = -1, .path = e->path}, *probe = &file;
	const struct stat *old = &file_of(e)->place.st;
	struct stat st;
	if (options->force || options->preserve & FCOPY_ATTR_OWNERSHIP)
		return 0;
	if (e->fd >= 0 && fstat(e->fd, &st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (e->fd >= 0 && st.st_uid == old->st_uid && st.st_gid == old->st_gid)
		return 0;
	int r = temporary_open_probe(file_of(e)->place.dir, probe, &call);
	r = r < 0 ? error_call(error, call, e->path, -r)
		  : metadata_keep_owner(probe, &file_of(e)->place, false, error);
	temporary_drop(probe);
	return r;
}

static int open_temporary(struct endpoint *e, const struct endpoint *src,
			  const struct fcopy_options *options, struct fcopy_error *error)
{
	const char *call;
	/* Those of a disk protect its content; those of a stream do not. */
	bool stored = S_ISREG(src->st.st_mode) || S_ISBLK(src->st.st_mode);
	mode_t mode = stored ? src->st.st_mode & 0777 : 0666;
	int r = open_directory(e, options);
	if (r < 0)
		return error_operation(error, "open its directory", "open", e->path, -r);
	if (options->shard.count > 0) {
		file_of(e)->mode = temporary_mode(file_of(e)->place.dir, mode);
		e->st.st_mode = S_IFREG;
		return shared_refuse_source(e, src, error);
	}
	if (options->resume && !options->scratch) {
		if ((r = part_open(e, src, mode, options->cancel, error)) < 0)
			return r;
	} else if ((r = temporary_create(e, !file_of(e)->place.exists ? mode : 0600, &call)) < 0) {
		return replace_fail(e, call, r, error);
	}
	e->st.st_mode = S_IFREG;
	if (!file_of(e)->place.exists || owner_waits(e))
		return file_of(e)->place.exists ? check_owner(e, options, error) : 0;
	r = metadata_keep_owner(e, &file_of(e)->place, options->force, error);
	if (r == 0 && file_of(e)->link) /* an unnamed file is invisible: set its mode early */
		r = set_final_mode(e, options, error);
	return r;
}

static enum endpoint_old replace_old(const struct endpoint *e, const struct stat **st)
{
	*st = file_of(e)->place.exists ? &file_of(e)->place.st : NULL;
	return file_of(e)->place.exists ? OLD_REPLACED : OLD_NONE;
}

static bool replace_leaves_name(const struct endpoint *e, int *dir)
{
	*dir = file_of(e)->place.dir;
	return temporary_is_drawn(file_of(e)->temporary); /* not DST.fcopy-part */
}

int replace_check(struct endpoint *e, const struct fcopy_options *options,
		  struct fcopy_error *error)
{
	const bool shard = options->shard.count > 0;
	/* A part has a name, which must be renamed. */
	if (!file_of(e)->place.exists)
		return options->resume || shard ? check_directory_allows_rename(e, error) : 0;
	int r = check_existing(e, options->force, error);
	if (r == 0 && shard)
		r = check_owner(e, options, error);
	return replace_advise(options, r, error);
}

int replace_open(struct endpoint *e, const struct endpoint *src,
		 const struct fcopy_options *options, struct fcopy_error *error)
{
	static const struct endpoint_ops ops = {.finish = replace_finish,
						.commit = replace_commit,
						.abort = replace_abort,
						.old = replace_old,
						.leaves_name = replace_leaves_name,
						.claim_partial = part_claim,
						.keep_partial = part_keep};
	e->ops = &ops;
	e->positional = true;
	file_of(e)->place.exists &= !options->scratch; /* a scratch file replaces nothing */
	int r = options->shard.count > 0 ? 0 : replace_check(e, options, error);
	if (r < 0 || (r = open_temporary(e, src, options, error)) < 0)
		replace_abort(e);
	return r;
}
