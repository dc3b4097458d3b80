/* SPDX-License-Identifier: MIT
 * The temporary file of HOW_LINK and HOW_RENAME, which slot_commit() gives its final name:
 *
 *     open(O_TMPFILE) ---- unsupported ----> openat(O_EXCL, .fcopy-RANDOM, 0600)
 *          | unnamed                               | named
 *          | bytes                                 | bytes, then owner and mode
 *          |                                       |
 *     DST is new:   linkat(DST)                    renameat(DST)
 *     DST exists:   linkat(.fcopy-RANDOM),         renameat(DST)
 *                   renameat(DST)
 *     no_clobber:   linkat(DST)                    renameat2(DST, RENAME_NOREPLACE)
 *
 * Where chmod has no effect, the named file has its final mode from the start.
 *
 * A process that is killed leaves nothing of an unnamed file. linkat(2) does not replace a file, so
 * an existing DST takes two calls. An existing DST is not replaced by a named file where unnamed
 * ones are supported: to create it with mode 0600, which fchmod(2) widens, takes as many calls, and
 * about as much time (on tmpfs a tenth less), and it would remain after a kill.
 */
#define _GNU_SOURCE
#include "attributes.h"
#include "error.h"
#include "file.h"
#include "io/io.h"
#include "io/libc.h"
#include "io/system.h"
#include "replace.h"
#include "storage.h"
#include "xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Finds the call that can name an unnamed file here, before the first byte. "." exists: a call that
 * works fails with EEXIST, and one that does not fails with ENOENT for the old name, which
 * do_linkat in fs/namei.c looks up first. */
static enum storage_link find_link_call(struct endpoint *e)
{
	struct slot *s = &file_of(e)->slot;
	for (s->link = LINK_DESCRIPTOR; s->link <= LINK_PROC; s->link++)
		if (slot_link(s->home, ".", s) == -EEXIST)
			return s->link;
	return LINK_UNKNOWN;
}

int temporary_make(int dir, const char *name, void *mode)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	const int fd = openat(dir, name, flags, *(const mode_t *)mode);
	/* cppcheck-suppress resourceLeak */
	return fd < 0 ? -errno : fd;
}

static int create_named(struct endpoint *e, mode_t mode, struct failure *fail)
{
	struct file *f = file_of(e);
	f->created_mode = mode;
	int r = slot_make(&f->slot, f->place.dir, "", -1, temporary_make, &mode, "open", fail);
	e->fd = r < 0 ? -1 : r;
	return r < 0 ? r : 0;
}

static bool read_umask(unsigned *mask)
{
	char line[256];
	bool found = false;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Umask: %o", mask) == 1;
	if (f)
		fclose(f);
	return found;
}

/* umask(2) can only be read by changing it. In a thread with a separate umask, no file of another
 * thread gets a wrong mode during that time. */
static void *change_own_umask(void *mask)
{
	if (unshare(CLONE_FS) == 0)
		*(unsigned *)mask = umask(077);
	return NULL;
}

/* The kernel applies umask and default ACL to an unnamed file, which is created with its final
 * mode. A named file is created with 0600 and gets that mode later. A shortage may pass: try
 * again. There may be no /proc; where a sandbox also refuses the other way, assume the strictest.
 */
mode_t temporary_umask(void)
{
	unsigned mask = 077;
	pthread_t thread;
	for (int tries = 0; tries < 3; tries++)
		if (read_umask(&mask))
			return mask;
	if (pthread_create(&thread, NULL, change_own_umask, &mask) == 0)
		pthread_join(thread, NULL);
	return mask;
}

/* The same, read once. */
static mode_t umask_once(struct storage *s)
{
	if (!s)
		return temporary_umask();
	pthread_mutex_lock(&s->lock);
	if (!s->masked)
		s->umask = temporary_umask();
	s->masked = true;
	const mode_t mask = s->umask;
	pthread_mutex_unlock(&s->lock);
	return mask;
}

mode_t temporary_mode(int dir, mode_t mode, struct storage *storage)
{
	mode_t most;
	return mode & (acl_default_mode(dir, &most) ? most | 07000 : ~umask_once(storage));
}

/* Kernels and file systems without O_TMPFILE see a directory opened for writing. */
static bool lacks_unnamed(int r)
{
	return r == -EOPNOTSUPP || r == -EISDIR || r == -EINVAL || r == -ENOENT || r == -ENOSYS;
}

/* Only where linkat(2) is known to keep the file: with some FUSE file systems it returns 0,
 * st_nlink is 1, and the inode is removed when the file is closed. Most storage that is asked over
 * a network lacks O_TMPFILE: it is not asked for its type. Each file system is asked once. */
static int create_unnamed(struct endpoint *e, mode_t mode)
{
	struct file *f = file_of(e);
	struct slot *s = &f->slot;
	const dev_t dev = f->place.dev ? f->place.dev : f->place.st.st_dev;
	s->home = f->place.dir;
	s->link = storage_link_call(s->storage, dev, &f->local);
	if (s->link == LINK_NONE)
		return -EOPNOTSUPP;
	e->fd = openat(s->home, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	int r = e->fd < 0 ? -errno : 0;
	s->fd = &e->fd;
	if (r == 0 && s->link == LINK_UNKNOWN) {
		const unsigned type = system_type(e->fd);
		f->local = system_type_has(type, SYSTEM_LOCAL);
		if (system_type_has(type, SYSTEM_FAITHFUL))
			s->link = find_link_call(e);
		if (s->link == LINK_UNKNOWN)
			r = -EOPNOTSUPP;
		else
			storage_note_link(s->storage, dev, s->link, f->local);
	}
	if (lacks_unnamed(r) && r != -ENOENT) /* that may be of this directory */
		storage_note_link(s->storage, dev, LINK_NONE, f->local);
	e->faithful = r == 0;
	if (r == 0)
		s->stage = SLOT_MADE;
	else
		endpoint_close(e);
	return r;
}

bool temporary_is_named(int dir)
{
	struct endpoint probe = {.fd = -1};
	file_of(&probe)->place.dir = dir;
	file_of(&probe)->slot = (struct slot){.is.file = true, .how = HOW_LINK};
	int r = create_unnamed(&probe, 0600);
	temporary_drop(&probe);
	return lacks_unnamed(r);
}

int temporary_create(struct endpoint *e, mode_t mode, struct failure *fail)
{
	int r = create_unnamed(e, mode);
	return lacks_unnamed(r) ? RESULT_UNFIT : fail_if(fail, r, "open");
}

int temporary_create_named(struct endpoint *e, mode_t mode, struct failure *fail)
{
	const int dir = file_of(e)->place.dir;
	const bool later = storage_can(file_of(e)->slot.storage, dir, STORAGE_CHANGES_MODES);
	if (!file_of(e)->place.exists) /* else that of the old file counts */
		file_of(e)->mode = temporary_mode(dir, mode, file_of(e)->slot.storage);
	return create_named(e, later ? 0600 : mode, fail);
}

int temporary_open_probe(int dir, struct endpoint *probe, struct failure *fail)
{
	struct place *place = &file_of(probe)->place;
	struct slot *s = &file_of(probe)->slot;
	*s = (struct slot){.is.file = true, .how = HOW_LINK};
	place->dir = dir;
	int r = fail_if(fail, create_unnamed(probe, 0600), "open");
	if (lacks_unnamed(r)) {
		s->how = HOW_RENAME;
		r = create_named(probe, 0600, fail);
	}
	strcpy(place->name, s->name);
	place->target = probe->fd;
	if (r < 0 || fstat(probe->fd, &place->st) == 0)
		return r;
	return fail_at(fail, "fstat");
}

void temporary_drop(struct endpoint *e)
{
	struct file *f = file_of(e);
	f->slot.fd = &e->fd;
	slot_drop(&f->slot, f->place.dir, f->place.name);
}

/* Checks before the first byte for everything that would make the commit of an atomic file fail:
 * what forbids the rename, or a new owner. */

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
	struct failure fail;
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
	int r = temporary_open_probe(file_of(e)->place.dir, probe, &fail);
	r = r < 0 ? error_call(error, fail.call, e->path, -r)
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
