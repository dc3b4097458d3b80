/* SPDX-License-Identifier: MIT
 * Checks before the first byte for everything that would make the commit of an atomic file fail:
 * what forbids the rename, or a new owner.
 */
#define _GNU_SOURCE
#include "replaceable.h"
#include "error.h"
#include "file.h"
#include "io/libc.h"
#include "io/system.h"
#include "keep.h"
#include "temporary.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
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

enum fcopy_advice replace_in_place_advice(const struct endpoint *e)
{
	const bool writes = !system_has(file_of(e)->place.dir, SYSTEM_NO_WRITE);
	return file_of(e)->place.exists && writes && existing_access(e) == 0
		   ? FCOPY_ADVICE_IN_PLACE_AUTO
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
				    replace_in_place_advice(e));
	if (file_of(e)->place.exists && sx.stx_mode & S_ISVTX && sx.stx_uid != geteuid() &&
	    file_of(e)->place.st.st_uid != geteuid() && !is_privileged())
		return error_refuse(
		    error, e->path, EPERM,
		    "cannot be replaced: you own neither it nor its sticky directory",
		    replace_in_place_advice(e));
	if (!(sx.stx_mode & S_ISVTX))
		file_of(e)->flags |= DESTINATION_DIRECTORY_FITS;
	return 0;
}

/* With force the file is replaced by a rename, which needs the directory. */
static bool force_helps(const struct endpoint *e)
{
	const int dir = file_of(e)->place.dir;
	return faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) == 0 ||
	       (errno == EPERM && syscall(SYS_faccessat, dir, ".", W_OK | X_OK) == 0);
}

/* Refuses an existing file that no rename can replace. Without force, also refuses one that has
 * other hard links or that the user may not write to. */
static int check_existing(struct endpoint *e, bool force, struct fcopy_error *error)
{
	const uint64_t flags = file_of(e)->place.flags;
	if (file_of(e)->place.st.st_nlink == 0) /* by /proc/PID/fd/N */
		return error_refuse_operand(
		    error, e->path, ENOENT,
		    "has no name to replace: it is a deleted file or a memfd",
		    replace_in_place_advice(e));
	if (flags & STATX_ATTR_MOUNT_ROOT)
		return error_refuse_operand(error, e->path, EBUSY,
					    "is a mount point and cannot be replaced",
					    replace_in_place_advice(e));
	int err = owner_may_write(e) ? 0 : existing_access(e);
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
	const bool helps = force_helps(e);
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

int replace_advise(const struct fcopy_options *options, int r, struct fcopy_error *error)
{
	enum fcopy_advice *a = &error->advice;
	if (r < 0 && options->shard.count > 0) {
		*a = *a == FCOPY_ADVICE_IN_PLACE_AUTO       ? FCOPY_ADVICE_NONE
		     : *a == FCOPY_ADVICE_IN_PLACE_OR_FORCE ? FCOPY_ADVICE_FORCE
							    : *a;
	}
	return r;
}

int replace_check_owner(const struct endpoint *e, const struct fcopy_options *options,
			struct fcopy_error *error)
{
	const char *call;
	struct endpoint file = {.fd = -1, .path = e->path}, *probe = &file;
	const struct stat *old = &file_of(e)->place.st;
	struct stat st;
	mode_t mode;
	if (options->force || options->preserve & FCOPY_ATTR_OWNERSHIP)
		return 0;
	if (e->fd >= 0 && fstat(e->fd, &st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (e->fd >= 0 && st.st_uid == old->st_uid && st.st_gid == old->st_gid)
		return 0;
	int r = temporary_open_probe(file_of(e)->place.dir, probe, &call);
	r = r < 0 ? error_call(error, call, e->path, -r)
		  : keep_owner(probe, &file_of(e)->place, false, &mode, error);
	temporary_drop(probe);
	return r;
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
		r = replace_check_owner(e, options, error);
	return replace_advise(options, r, error);
}
