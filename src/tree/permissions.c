/* SPDX-License-Identifier: MIT
 * The modes that directories of DST have during the copy. New ones: what mkdir(2) leaves of the
 * source's. Old ones of this user: the owner's rights that they lack are added, so that no other
 * user can enter. After a SIGKILL they stay until the next copy sets the mode of SRC.
 */
#include "directory.h"
#include "endpoints/attributes.h"
#include "io/io.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANGES 0700 /* what its owner needs to list, look up and change names */
#define LOOKS   0500 /* ... without the changes */

static bool admit_set(int fd, mode_t mode)
{
	return fchmod(fd, mode) == 0 || (errno == EBADF && io_chmod(fd, mode) == 0);
}

static bool admit_may(const struct tree *t, const struct stat *st)
{
	const struct fcopy_tree_options *o = t->options;
	return ground_merges(&t->root.ground) && !t->share.by &&
	       (o->delete_extra || o->copy.preserve & FCOPY_ATTR_MODE) &&
	       (st->st_mode & CHANGES) != CHANGES && st->st_uid == geteuid();
}

bool admit_is_closed(const struct tree *t, const struct directory *d, const struct stat *st)
{
	return d->state == DIRECTORY_OLD && admit_may(t, st);
}

int admit_find(const struct tree *t, int parent, const char *name)
{
	struct stat st;
	const int fd = t->options->dry_run
			   ? -1
			   : openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && admit_may(t, &st))
		return fd;
	io_close(fd);
	return -EACCES;
}

int admit_enter(const struct tree *t, int *fd, const struct stat *st)
{
	if ((st->st_mode & LOOKS) == LOOKS || t->options->dry_run || !admit_may(t, st))
		return 0;
	const bool given = admit_open(*fd, st);
	const int again = openat(*fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int err = errno;
	if (again < 0 && given)
		admit_close(*fd, st);
	if (again < 0)
		return -err;
	close(*fd);
	*fd = again;
	return given;
}

bool admit_open(int fd, const struct stat *st)
{
	if ((st->st_mode & CHANGES) == CHANGES || st->st_uid != geteuid() ||
	    faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) == 0 || errno != EACCES)
		return false;
	return admit_set(fd, (st->st_mode & 07777) | CHANGES);
}

void admit_close(int fd, const struct stat *st)
{
	(void)admit_set(fd, st->st_mode & 07777);
}

void admit_changes(struct tree *t, struct directory *d)
{
	if (!admit_is_due(d) || t->options->dry_run)
		return;
	pthread_mutex_lock(&t->lock);
	if (admit_is_due(d))
		__atomic_store_n(&d->admit, admit_open(d->dst, &d->was) ? ADMIT_GIVEN : ADMIT_NONE,
				 __ATOMIC_RELEASE);
	pthread_mutex_unlock(&t->lock);
}

void admit_end(struct tree *t, struct directory *d)
{
	const mode_t open = (d->was.st_mode & 07777) | CHANGES;
	const bool copied = t->options->copy.preserve & FCOPY_ATTR_MODE && !tree_stopped(t);
	struct stat now;
	if (d->admit != ADMIT_GIVEN || fstat(d->dst, &now) < 0)
		return;
	d->admit = ADMIT_NONE;
	/* chmod(2) clears setgid if this user is not in the group. */
	const mode_t most = 07777 & ~(mode_t)S_ISGID;
	if (((now.st_mode ^ open) & most) == 0 &&
	    !(copied && ((now.st_mode ^ d->st.st_mode) & most) == 0))
		admit_close(d->dst, &d->was);
}

bool permissions_are_hidden(const struct tree *t)
{
	const unsigned last = FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_MODE;
	return t->root.ground.foreign && t->options->copy.preserve & last &&
	       !t->root.ground.fixed_modes;
}

int permissions_admit_owner(int parent, const char *name)
{
	struct stat st;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	mode_t lacks = 0700 & ~st.st_mode;
	if (lacks && fchmodat(parent, name, (st.st_mode & 07777) | lacks, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return (int)lacks;
}

/* A default ACL replaces the umask (acl(5)). A directory inherits the one that it was created
 * under. */
mode_t permissions_left(const struct tree *t, int fd)
{
	mode_t mode;
	return acl_default_mode(fd, &mode) ? mode : 0777 & ~t->known.umask;
}

int permissions_set(int fd, mode_t mode)
{
	struct stat st;
	if ((fstat(fd, &st) == 0 && (st.st_mode & 07777) == mode) || fchmod(fd, mode) == 0)
		return 0;
	return -errno;
}

bool permissions_are_fixed(int err)
{
	return err == EPERM || err == ENOSYS || err == EOPNOTSUPP;
}
