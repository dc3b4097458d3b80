/* SPDX-License-Identifier: MIT
 * Which inode is it? A file that is removed can leave its inode number to a new one: the generation
 * in the file handle differs then, or else the time of birth.
 */
#define _GNU_SOURCE
#include "identity.h"
#include "io/hash.h"
#include "io/libc.h"

#include <fcntl.h>
#include <stddef.h>

/* A hash; 0: the file system has no handles. */
static uint64_t handle_of(int fd)
{
	union {
		struct file_handle head;
		unsigned char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
	int mount;
	if (name_to_handle_at(fd, "", &handle.head, &mount, AT_EMPTY_PATH) < 0)
		return 0;
	const size_t end = offsetof(struct file_handle, f_handle) + handle.head.handle_bytes;
	return hash_add(HASH_START, handle.bytes, end) | 1;
}

struct identity identity_of(int fd)
{
	struct statx sx;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &sx) < 0)
		return (struct identity){.known = false};
	struct identity id = {.dev_major = sx.stx_dev_major,
			      .dev_minor = sx.stx_dev_minor,
			      .ino = sx.stx_ino,
			      .handle = handle_of(fd)};
	if (sx.stx_mask & STATX_BTIME) {
		id.birth_seconds = sx.stx_btime.tv_sec;
		id.birth_nanoseconds = sx.stx_btime.tv_nsec;
	}
	id.known = id.handle || id.birth_seconds || id.birth_nanoseconds;
	return id;
}

bool identity_is_same(const struct identity *a, const struct identity *b)
{
	return a->known && b->known && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->ino == b->ino && a->handle == b->handle &&
	       a->birth_seconds == b->birth_seconds && a->birth_nanoseconds == b->birth_nanoseconds;
}
