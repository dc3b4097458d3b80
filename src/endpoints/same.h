/* SPDX-License-Identifier: MIT
 *
 * Is SRC also DST?
 */
#ifndef ENDPOINTS_SAME_H
#define ENDPOINTS_SAME_H

#include "endpoint.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The same inode, or two device nodes of one disk. */
bool same_file(const struct stat *, const struct stat *);
/* Is the open file fd, whose fstat is *st, the source? Also recognises the source under another
 * inode number. Returns 1, 0, or -errno. */
int same_is_source(const struct endpoint *src, int fd, const struct stat *st);

/* Records that SRC and DST are one file. Returns -errno. */
int same_refuse(const char *src, const char *dst, struct fcopy_error *);

/* The file that the caller writes during the copy and that *st is the stat of; NULL: none. */
const struct fcopy_output *same_output(const struct fcopy_options *, const struct stat *);
/* Refuses it as DST of a copy that is no entry of a tree. Returns -errno. */
int same_refuse_output(const struct fcopy_output *, const char *dst, struct fcopy_error *);

/* The identity of an inode, which a later file with the same inode number does not have. */

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
