/* SPDX-License-Identifier: MIT
 *
 * System calls that musl declares in no version, or in recent versions only. The macros take
 * precedence over a declaration, so this works with every version.
 */
#ifndef IO_LIBC_H
#define IO_LIBC_H

#include <sys/stat.h>

#ifndef __GLIBC__

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef STATX_TYPE
#include <linux/stat.h>
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#undef getdents64
#define getdents64(fd, buf, n) syscall(SYS_getdents64, fd, buf, n)
#define renameat2(from_dir, from, to_dir, to, flags)                                               \
	(int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags)
#define statx(dir, name, flags, mask, sx) (int)syscall(SYS_statx, dir, name, flags, mask, sx)

/* The kernel takes the offset in two halves; the second one counts on 32-bit machines only. */
#define LIBC_HALVES(at)               (long)(at), (long)((int64_t)(at) >> 32)
#define preadv2(fd, v, n, at, flags)  syscall(SYS_preadv2, fd, v, n, LIBC_HALVES(at), flags)
#define pwritev2(fd, v, n, at, flags) syscall(SYS_pwritev2, fd, v, n, LIBC_HALVES(at), flags)

#endif
#endif
