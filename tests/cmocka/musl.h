/* SPDX-License-Identifier: MIT
 * Where the C library is not glibc. off_t always has 64 bits there, so the calls that the tests
 * wrap have no second name; the text that a test gives to a fault stays the name in glibc.
 */
#ifndef CMOCKA_MUSL_H
#define CMOCKA_MUSL_H

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HAS_LOCALES false /* only C, with UTF-8 */

#define close_range(first, last, flags) (int)syscall(SYS_close_range, first, last, flags)

/* The number is enough to find what failed. */
static inline const char *strerrorname_np(int err)
{
	static char text[16];
	snprintf(text, sizeof(text), "errno %d", err);
	return text;
}

#define __wrap_fallocate64 __wrap_fallocate
#define __wrap_fcntl64     __wrap_fcntl
#define __wrap_fstat64     __wrap_fstat
#define __wrap_fstatat64   __wrap_fstatat
#define __wrap_fstatfs64   __wrap_fstatfs
#define __wrap_ftruncate64 __wrap_ftruncate
#define __wrap_lseek64     __wrap_lseek
#define __wrap_mmap64      __wrap_mmap
#define __wrap_open64      __wrap_open
#define __wrap_openat64    __wrap_openat
#define __wrap_pread64     __wrap_pread
#define __wrap_preadv64v2  __wrap_preadv2
#define __wrap_pwrite64    __wrap_pwrite
#define __wrap_pwritev64v2 __wrap_pwritev2
#define __wrap_sendfile64  __wrap_sendfile
#define __real_fallocate64 __real_fallocate
#define __real_fcntl64     __real_fcntl
#define __real_fstat64     __real_fstat
#define __real_fstatat64   __real_fstatat
#define __real_fstatfs64   __real_fstatfs
#define __real_ftruncate64 __real_ftruncate
#define __real_lseek64     __real_lseek
#define __real_mmap64      __real_mmap
#define __real_open64      __real_open
#define __real_openat64    __real_openat
#define __real_pread64     __real_pread
#define __real_preadv64v2  __real_preadv2
#define __real_pwrite64    __real_pwrite
#define __real_pwritev64v2 __real_pwritev2
#define __real_sendfile64  __real_sendfile

#endif
