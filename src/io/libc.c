/* SPDX-License-Identifier: MIT
 * Implements libc.h, which is only needed without glibc.
 */
#include "libc.h"

#ifndef __GLIBC__

#include <stdint.h>
#include <sys/syscall.h>

/* The kernel takes the offset in two halves; the second one counts on 32-bit machines only. */
#define HALVES(at) (long)(at), (long)((int64_t)(at) >> 32)

ssize_t getdents64(int fd, void *buffer, size_t size)
{
	return syscall(SYS_getdents64, fd, buffer, size);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int statx(int dir, const char *__restrict name, int flags, unsigned mask,
	  struct statx *__restrict sx)
{
	return (int)syscall(SYS_statx, dir, name, flags, mask, sx);
}

int libc_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return syscall(SYS_preadv2, fd, v, n, HALVES(at), flags);
}

ssize_t pwritev2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	return syscall(SYS_pwritev2, fd, v, n, HALVES(at), flags);
}

#endif
