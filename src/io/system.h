/* SPDX-License-Identifier: MIT
 *
 * What is known of a file system by its type, which statfs(2) returns.
 */
#ifndef IO_SYSTEM_H
#define IO_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

enum system_property {
	SYSTEM_RENAMES = 1 << 0, /* renames files and directories, and replaces files */
	/* Keeps the attributes that are set, and what linkat(2) names, or returns an error. */
	SYSTEM_FAITHFUL = 1 << 1,
	/* The page cache keeps what a killed process wrote, and st_size is where reads end. */
	SYSTEM_LOCAL = 1 << 2,
	SYSTEM_REMOTE = 1 << 3,  /* a server may copy by itself; may be FUSE, which hides that */
	SYSTEM_ORDERED = 1 << 4, /* one thread has to write a file, in order */
	SYSTEM_NAMES = 1 << 5,   /* lists a new name with the bytes that it was given */
	SYSTEM_LOCKS_MANDATORY = 1 << 7, /* a lock is one of the server, which others cannot pass */
	SYSTEM_RECOVERS = 1 << 6, /* its check puts what it finds into lost+found, at its top */
	SYSTEM_DRAWS = 1 << 8,    /* inode numbers are not stored: another mount may show others */
};

/* The f_type of an open file's file system, or of that of AT_FDCWD; 0: unknown. */
unsigned system_type(int fd);
bool system_type_has(unsigned type, enum system_property);
bool system_has(int fd, enum system_property);
/* The step in which all file systems of this type store modification times, in ns; 0: they store
 * all of them, or not all have the same step. */
int64_t system_type_time_step(unsigned type);
/* Is this open file, or directory, on a mount of rclone? Whether that renames a directory depends
 * on the moment: on which of its files were uploaded. */
bool system_is_rclone(int fd);
/* Is `name` in the open directory lost+found at the top of such a file system? */
bool system_is_lost_found(int dir, const char *name);

#endif
