/* SPDX-License-Identifier: MIT
 *
 * The identity of an inode, which a later file with the same inode number does not have.
 */
#ifndef ENDPOINTS_IDENTITY_H
#define ENDPOINTS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct identity {
	bool known; /* false: the file system reports too little, or statx(2) failed */
	uint32_t dev_major, dev_minor;
	uint64_t ino, handle; /* handle: a hash of the file handle; 0: none */
	int64_t birth_seconds;
	uint32_t birth_nanoseconds;
};

struct identity identity_of(int fd); /* also of an O_PATH descriptor */
/* Returns false if one of them is unknown. */
bool identity_is_same(const struct identity *, const struct identity *);

#endif
