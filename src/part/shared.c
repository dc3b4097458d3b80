/* SPDX-License-Identifier: MIT
 * A directory that others use, too: names that they cannot guess, the rename that replaces nothing,
 * and locks; and what machines that share a file system do not see of each other: the locks of some
 * mounts; and for a while, which names are new, and which are gone.
 */
#include "io/io.h"
#include "io/system.h"
#include "io/words.h"
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define PREFIX       ".fcopy-"
#define LOCK_QUICK   30 /* tries, a millisecond each: most holders are about to end */
#define LOCK_WAIT_MS 10
#define LOCK_TRIES   (LOCK_QUICK + (1000 - LOCK_QUICK) / LOCK_WAIT_MS) /* a second in all */

static const char letters[] = "0123456789abcdefghijklmnopqrstuv";

void temporary_spell(const unsigned char random[TEMPORARY_RANDOM], char name[TEMPORARY_SIZE])
{
	char *end = stpcpy(name, PREFIX);
	for (size_t i = 0; i < TEMPORARY_RANDOM; i++)
		*end++ = letters[random[i] % 32];
	*end = '\0';
}

int temporary_draw(char name[TEMPORARY_SIZE])
{
	unsigned char random[TEMPORARY_RANDOM];
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	temporary_spell(random, name);
	return 0;
}

bool temporary_is_drawn(const char *name)
{
	size_t prefix = sizeof(PREFIX) - 1, length = strlen(name);
	return length == TEMPORARY_SIZE - 1 && strncmp(name, PREFIX, prefix) == 0 &&
	       strspn(name + prefix, letters) == length - prefix;
}

/* Any errno but ENOENT: it may exist. */
static bool private_exists(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* NFS and others lack the flag: there rename(2) replaces no directory that has entries, and a link
 * is a name that replaces nothing. Without links, too, another process can create the name between
 * the check and the rename. */
static int private_rename_unflagged(int from, const char *name, int to, const char *as,
				    struct failure *fail)
{
	struct stat st;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		if (renameat(from, name, to, as) == 0)
			return 0;
		return errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
	}
	if (linkat(from, name, to, as, 0) < 0) {
		/* EIO of rclone, and ERANGE of CryFS, whatever there is. */
		if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK ||
		    errno == EIO || errno == ERANGE)
			return private_exists(to, as)             ? -EEXIST
			       : renameat(from, name, to, as) < 0 ? -errno
								  : 0;
		return fail_at(fail, "linkat");
	}
	if (unlinkat(from, name, 0) == 0)
		return 0;
	const int r = fail_at(fail, "unlinkat");
	unlinkat(to, as, 0);
	return r;
}

int private_rename_as(int from, const char *name, int to, const char *as, struct failure *fail)
{
	if (renameat2(from, name, to, as, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS) /* the file system lacks the flag, or the kernel */
		return -errno;
	return private_rename_unflagged(from, name, to, as, fail);
}

int private_rename(int from, const char *name, int to, const char *as)
{
	return private_rename_as(from, name, to, as, NULL);
}

/* Only EWOULDBLOCK says that another process has the lock. Storage without locks says so by any
 * other errno: ENOLCK (NFS without a lock server), ENOSYS and 524 (Lustre; 524 is a number of the
 * kernel's own), EOPNOTSUPP, EBADF (NFS: not open for writing, flock(2)), EINVAL, EACCES, EPERM and
 * ENOTTY. The lock guards against a second fcopy and nothing else: without it, the copy goes on. */
bool private_lacks_locks(int err)
{
	return err != EWOULDBLOCK && err != EINTR && err != ENOMEM && err != EIO && err != ESTALE;
}

/* On SMB the errno of a lock that another client holds can be EACCES: STATUS_LOCK_NOT_GRANTED in
 * fs/smb/client/smb2maperror.c. */
int private_flock(int fd, int lock)
{
	if (flock(fd, lock | LOCK_NB) == 0)
		return 0;
	const int err = errno;
	return err == EACCES && system_has(fd, SYSTEM_LOCKS_MANDATORY) ? -EWOULDBLOCK : -err;
}

/* After a SIGKILL the kernel holds the lock until it has torn down the dead process's io_uring:
 * 60 to 260 ms on Linux 6.18. */
int private_take_lock(int fd, int lock, const volatile int *cancel)
{
	int r;
	for (int tries = 0; (r = private_flock(fd, lock)) < 0; tries++) {
		if (r != -EWOULDBLOCK || tries == LOCK_TRIES)
			return r;
		if (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED))
			return -EINTR;
		long ms = tries < LOCK_QUICK ? 1 : LOCK_WAIT_MS;
		nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
	}
	return 0;
}

/* NFS with "nolock" shows local_lock; SMB, Lustre and OCFS2. A lock succeeds on all of these. */
bool private_locks_are_local(int fd)
{
	static const char *const names[] = {"nolock", "local_lock=all", "local_lock=flock",
					    "nobrl",  "localflock",     "localflocks"};
	struct mount_list list;
	struct mount m;
	bool local = false;
	if (mount_find(&list, fd, &m))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			local |= words_list_has(m.options, strlen(m.options), names[i]);
	mount_close(&list);
	return local;
}

void private_refresh(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	io_close(fd);
}
