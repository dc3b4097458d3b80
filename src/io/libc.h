/* SPDX-License-Identifier: MIT
 *
 * System calls that musl declares in no version, or in recent versions only. libc.c defines them,
 * as those versions do: they are functions, so that a test can wrap them.
 */
#ifndef IO_LIBC_H
#define IO_LIBC_H

#include <sys/stat.h>

#ifndef __GLIBC__

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>
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
ssize_t getdents64(int fd, void *buffer, size_t size);
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int statx(int dir, const char *__restrict name, int flags, unsigned mask,
	  struct statx *__restrict sx);
ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags);
ssize_t pwritev2(int fd, const struct iovec *v, int n, off_t at, int flags);

/* musl hides EINTR, with which a FUSE file system or NFS may report that a write is lost. */
int libc_close(int fd);

#else

#define libc_close close

#endif

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000 /* Linux 5.8: the headers may be older */
#endif

#endif
