/* SPDX-License-Identifier: MIT
 * The wraps: each __wrap_x defined here is linked in place of x by the rule in tests/tests.mk.
 */
#define _GNU_SOURCE
#include "faults.h"
#include "io/libc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define WRAP(type, call, params, args)                                                             \
	type __real_##call params;                                                                 \
	type __wrap_##call params;                                                                 \
	type __wrap_##call params                                                                  \
	{                                                                                          \
		if (fault_strikes(#call))                                                          \
			return errno == FAULT_ZERO ? (type)0 : (type)-1;                           \
		return __real_##call args;                                                         \
	}

WRAP(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, fault_cut(n)))
WRAP(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, fault_cut(n)))
WRAP(ssize_t, pread64, (int fd, void *buf, size_t n, off_t at), (fd, buf, fault_cut(n), at))
WRAP(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off_t at), (fd, buf, fault_cut(n), at))
WRAP(ssize_t, preadv64v2, (int fd, const struct iovec *v, int count, off_t at, int flags),
     (fd, v, count, at, flags))
WRAP(ssize_t, pwritev64v2, (int fd, const struct iovec *v, int count, off_t at, int flags),
     (fd, v, count, at, flags))
WRAP(ssize_t, sendfile64, (int out, int in, off_t *at, size_t n), (out, in, at, fault_cut(n)))
WRAP(ssize_t, splice, (int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, fault_cut(n), flags))
WRAP(ssize_t, copy_file_range,
     (int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags),
     (in, in_at, out, out_at, fault_cut(n), flags))
WRAP(int, pipe2, (int fd[2], int flags), (fd, flags))
WRAP(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
WRAP(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))

WRAP(int, socket, (int family, int type, int protocol), (family, type, protocol))
WRAP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, listen, (int fd, int most), (fd, most))
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags))
WRAP(int, shutdown, (int fd, int how), (fd, how))
WRAP(ssize_t, recv, (int fd, void *buf, size_t n, int flags), (fd, buf, fault_cut(n), flags))
WRAP(ssize_t, send, (int fd, const void *buf, size_t n, int flags), (fd, buf, fault_cut(n), flags))
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *n),
     (fd, level, name, value, n))

WRAP(off_t, lseek64, (int fd, off_t at, int whence), (fd, at, whence))
WRAP(int, ftruncate64, (int fd, off_t n), (fd, n))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, fsync, (int fd), (fd))

WRAP(int, fstat64, (int fd, struct stat *st), (fd, st))
WRAP(int, fstatat64, (int dir, const char *name, struct stat *st, int flags),
     (dir, name, st, flags))
WRAP(int, fstatfs64, (int fd, struct statfs *fs), (fd, fs))
WRAP(int, statx, (int dir, const char *name, int flags, unsigned mask, struct statx *sx),
     (dir, name, flags, mask, sx))
WRAP(ssize_t, readlink, (const char *path, char *buf, size_t n), (path, buf, n))
WRAP(int, faccessat, (int dir, const char *name, int mode, int flags), (dir, name, mode, flags))

WRAP(int, linkat, (int from, const char *old, int to, const char *name, int flags),
     (from, old, to, name, flags))
WRAP(int, renameat, (int from, const char *old, int to, const char *name), (from, old, to, name))
WRAP(int, renameat2, (int from, const char *old, int to, const char *name, unsigned flags),
     (from, old, to, name, flags))
WRAP(int, mkdirat, (int dir, const char *name, mode_t mode), (dir, name, mode))
WRAP(int, mknodat, (int dir, const char *name, mode_t mode, dev_t dev), (dir, name, mode, dev))
WRAP(int, symlinkat, (const char *target, int dir, const char *name), (target, dir, name))
WRAP(ssize_t, readlinkat, (int dir, const char *name, char *buf, size_t n), (dir, name, buf, n))
WRAP(ssize_t, getdents64, (int fd, void *buf, size_t n), (fd, buf, n))
WRAP(int, syncfs, (int fd), (fd))
WRAP(int, fchownat, (int dir, const char *name, uid_t uid, gid_t gid, int flags),
     (dir, name, uid, gid, flags))
WRAP(int, utimensat, (int dir, const char *name, const struct timespec times[2], int flags),
     (dir, name, times, flags))
WRAP(int, unlinkat, (int dir, const char *name, int flags), (dir, name, flags))
WRAP(int, flock, (int fd, int op), (fd, op))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, chmod, (const char *path, mode_t mode), (path, mode))
WRAP(int, fchmodat, (int dir, const char *name, mode_t mode, int flags), (dir, name, mode, flags))
WRAP(int, fchown, (int fd, uid_t uid, gid_t gid), (fd, uid, gid))
WRAP(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t n),
     (path, name, value, n))
WRAP(ssize_t, llistxattr, (const char *path, char *list, size_t n), (path, list, n))
WRAP(int, fsetxattr, (int fd, const char *name, const void *value, size_t n, int flags),
     (fd, name, value, n, flags))
WRAP(int, fremovexattr, (int fd, const char *name), (fd, name))
WRAP(ssize_t, flistxattr, (int fd, char *list, size_t n), (fd, list, n))
WRAP(int, futimens, (int fd, const struct timespec times[2]), (fd, times))
WRAP(ssize_t, getrandom, (void *buf, size_t n, unsigned flags), (buf, n, flags))

#undef WRAP

/* Those below answer a failure in another way, or take a third argument now and then. */

void *__real_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	/* memory for buffers is another call than the mapping of a source */
	bool now = fault_strikes(fd < 0 ? "mmap64 of memory" : "mmap64");
	return now ? MAP_FAILED : __real_mmap64(at, n, prot, flags, fd, offset);
}

/* Linux closes the descriptor whatever it answers. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	bool now = fault_strikes("close");
	int err = errno, r = __real_close(fd);
	if (!now)
		return r;
	errno = err;
	return -1;
}
#ifndef __GLIBC__
int __wrap_libc_close(int fd);
int __wrap_libc_close(int fd)
{
	return __wrap_close(fd);
}
#endif

int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	return fault_strikes("pthread_create") ? errno : __real_pthread_create(id, attr, f, arg);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return fault_strikes("calloc") ? NULL : __real_calloc(count, size);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return fault_strikes("malloc") ? NULL : __real_malloc(size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
	return fault_strikes("realloc") ? NULL : __real_realloc(old, size);
}

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	return fault_strikes("getaddrinfo") ? EAI_SYSTEM
					    : __real_getaddrinfo(host, port, hints, list);
}

static unsigned long third(va_list args)
{
	unsigned long x = va_arg(args, unsigned long);
	va_end(args);
	return x;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	unsigned long mode = third(args);
	return fault_strikes("open64") ? -1 : __real_open64(path, flags, mode);
}

/* Creating an unnamed file is another step than opening a named one. */
int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	unsigned long mode = third(args);
	bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
	bool now = fault_strikes(unnamed ? "openat64 of O_TMPFILE" : "openat64");
	return now ? -1 : __real_openat64(dir, path, flags, mode);
}

int __real_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...);
int __wrap_fcntl64(int fd, int op, ...)
{
	va_list args;
	va_start(args, op);
	unsigned long arg = third(args);
	bool now = fault_strikes(op == F_SETFL ? "fcntl64 of flags" : "fcntl64");
	return now ? -1 : __real_fcntl64(fd, op, arg);
}

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t n);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t n);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	/* one that only gains time, and may fail */
	const char *call = level == SOL_SOCKET && name == SO_RCVLOWAT ? "setsockopt of SO_RCVLOWAT"
								      : "setsockopt";
	if (fault_strikes(call))
		return -1;
	return __real_setsockopt(fd, level, name, value, n);
}

/* To give back is another call than to take. */
int __real_fallocate64(int fd, int mode, off_t at, off_t n);
int __wrap_fallocate64(int fd, int mode, off_t at, off_t n);
int __wrap_fallocate64(int fd, int mode, off_t at, off_t n)
{
	bool punch = mode & FALLOC_FL_PUNCH_HOLE;
	if (fault_strikes(punch ? "fallocate64 to punch" : "fallocate64"))
		return -1;
	return __real_fallocate64(fd, mode, at, n);
}

/* Without a value, it only asks whether there is one. */
ssize_t __real_fgetxattr(int fd, const char *name, void *value, size_t n);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t n);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t n)
{
	if (fault_strikes(value ? "fgetxattr" : "fgetxattr to ask"))
		return -1;
	return __real_fgetxattr(fd, name, value, n);
}

int __real_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...)
{
	va_list args;
	va_start(args, op);
	unsigned long arg = third(args);
	return fault_strikes("ioctl") ? -1 : __real_ioctl(fd, op, arg);
}
