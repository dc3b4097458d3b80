/* SPDX-License-Identifier: MIT
 * Locks; and what machines that share a file system do not see of each other: the locks of some
 * mounts; and for a while, which names are new, and which are gone.
 */
#define _GNU_SOURCE
#include "io/system.h"
#include "private.h"

#include <errno.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES   125 /* a second in all */
#define LOCK_WAIT_MS 10
#define LOCK_QUICK   30 /* tries, a millisecond each: most holders are about to end */

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
static bool local_is_named(char *options)
{
	static const char *const names[] = {"nolock", "local_lock=all", "local_lock=flock",
					    "nobrl",  "localflock",     "localflocks"};
	char *rest = NULL;
	for (char *o = strtok_r(options, ",\n", &rest); o; o = strtok_r(NULL, ",\n", &rest))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (strcmp(o, names[i]) == 0)
				return true;
	return false;
}

/* "mnt_id: ID" of /proc/self/fdinfo; 0: unknown. */
static unsigned local_mount(int fd)
{
	char path[40], line[80];
	unsigned id = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "re");
	while (file && id == 0 && fgets(line, sizeof(line), file))
		(void)sscanf(line, "mnt_id: %u", &id);
	if (file)
		fclose(file);
	return id;
}

bool private_locks_are_local(int fd)
{
	const unsigned id = local_mount(fd);
	FILE *file = id ? fopen("/proc/self/mountinfo", "re") : NULL;
	char *line = NULL, *options;
	size_t size = 0;
	unsigned of;
	bool local = false;
	while (file && getline(&line, &size, file) > 0) {
		if (sscanf(line, "%u", &of) != 1 || of != id)
			continue;
		/* "… - TYPE SOURCE OPTIONS": a space in a field is escaped. */
		options = strrchr(line, ' ');
		local = options && local_is_named(options + 1);
		break;
	}
	free(line);
	if (file)
		fclose(file);
	return local;
}

void private_refresh(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}
