/* SPDX-License-Identifier: MIT
 * Owner, group, mode, ACL and security label that a copy keeps of the file that it replaces.
 */
#include "attributes.h"
#include "replace.h"

#include <stdio.h>
#include <sys/xattr.h>

#define LOOKUP_TRIES 8 /* while another copy replaces the name */

/* Without /proc only an open file can be asked, which needs the permission to read it. Returns
 * ENOENT if the name is not that of the regular file that was found. */
static ssize_t get_opened_attribute(const struct place *p, const char *name, char *value,
				    size_t size)
{
	struct stat st;
	ssize_t n = -1;
	int err = ENOENT;
	int fd = openat(p->dir, p->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		errno = ENOENT;
		return -1;
	}
	if (fstat(fd, &st) == 0 && same_inode(&st, &p->st)) {
		n = fgetxattr(fd, name, value, size);
		err = errno;
	}
	close(fd);
	errno = err;
	return n;
}

#define PROC_PATH_SIZE (sizeof("/proc/self/fd/") + 12 + NAME_MAX)

static const char *proc_path(const struct place *p, char path[PROC_PATH_SIZE])
{
	if (p->dir == AT_FDCWD)
		return p->name;
	snprintf(path, PROC_PATH_SIZE, "/proc/self/fd/%d/%s", p->dir, p->name);
	return path;
}

/* A file without a name is asked by its descriptor. On a FUSE file system the name can be missing
 * for an instant while another copy renames a file over it: rename(2) is not atomic for a
 * concurrent lookup there. */
static ssize_t get_place_attribute(const struct place *p, const char *name, char *value,
				   size_t size)
{
	char path[PROC_PATH_SIZE];
	if (p->name[0] == '\0')
		return fgetxattr(p->target, name, value, size);
	ssize_t n = -1;
	errno = ENOENT;
	for (int tries = 0; n < 0 && errno == ENOENT && tries < LOOKUP_TRIES; tries++)
		n = lgetxattr(proc_path(p, path), name, value, size);
	if (n < 0 && errno == ENOENT && S_ISREG(p->st.st_mode) && access("/proc/self/fd", F_OK) < 0)
		return get_opened_attribute(p, name, value, size);
	return n;
}

/* Gives fd the attribute that the file at the place has. If that has none, removes what a default
 * ACL or the security module gave to fd. Some storage answers with EIO or another errno where it
 * has no attributes: one that cannot be read counts as none. Asks for the size first: most files
 * lack the attribute, and the kernel allocates and clears a buffer of the requested size. */
static int keep_attribute(int fd, const struct place *old, const char *name)
{
	char value[XATTR_VALUE];
	struct xattr_blame blame;
	ssize_t n = get_place_attribute(old, name, NULL, 0);
	if (n > 0)
		n = get_place_attribute(old, name, value, sizeof(value));
	if (n >= 0)
		return fsetxattr(fd, name, value, (size_t)n, 0) < 0 ? -errno : 0;
	if (errno == ENOENT || errno == ENOMEM)
		return -errno;
	const bool absent = xattr_is_absent(errno);
	int r = xattr_remove(&(struct xattr_file){.fd = fd}, name, &blame);
	return absent && r < 0 ? r : 0;
}

int keep_owner(const struct endpoint *e, const struct place *old, bool force, mode_t *mode,
	       struct fcopy_error *error)
{
	struct stat st;
	*mode = 0;
	if (fstat(e->fd, &st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (st.st_uid == old->st.st_uid && st.st_gid == old->st.st_gid) {
		*mode = st.st_mode;
		return 0;
	}
	int r = attributes_set_owner(e->fd, false, old->st.st_uid, old->st.st_gid);
	if (r < 0 && error_call(error, "fchown", e->path, -r) < 0 && error_is_of_storage(error))
		return r;
	*error = (struct fcopy_error){0};
	if (r == 0 || force)
		return 0;
	return error_refuse(error, e->path, -r, "its owner or group cannot be kept",
			    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}

/* Has neither file an attribute? Only where a list has all of them: SMB lists no ACL. */
static bool lacks_attributes(int fd, const struct place *old)
{
	char path[PROC_PATH_SIZE];
	return old->name[0] && llistxattr(proc_path(old, path), NULL, 0) == 0 &&
	       flistxattr(fd, NULL, 0) == 0;
}

int keep_acl(const struct endpoint *e, const struct place *old, bool force, bool listed,
	     struct fcopy_error *error)
{
	if (listed && lacks_attributes(e->fd, old))
		return RESULT_NONE;
	const char *name;
	int r = 0;
	for (size_t i = 0; r == 0 && (name = xattr_kept(i)); i++)
		r = keep_attribute(e->fd, old, name);
	if (r == 0 || force)
		return 0;
	if (r == -ENOENT && access("/proc/self/fd", F_OK) == 0)
		return error_refuse(error, e->path, ENOENT, "was removed during the copy",
				    FCOPY_ADVICE_NONE);
	if (r == -ENOENT)
		return error_proc(error, "lgetxattr", e->path, -r);
	return error_refuse(error, e->path, -r, "its ACL or security label cannot be kept",
			    FCOPY_ADVICE_IN_PLACE_OR_FORCE);
}
