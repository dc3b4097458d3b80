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
	SYSTEM_REMOTE = 1 << 3,   /* a server may copy by itself; may be FUSE, which hides that */
	SYSTEM_ORDERED = 1 << 4,  /* one thread has to write a file, in order */
	SYSTEM_NAMES = 1 << 5,    /* lists a new name with the bytes that it was given */
	SYSTEM_RECOVERS = 1 << 6, /* its check puts what it finds into lost+found, at its top */
	SYSTEM_LOCKS_MANDATORY = 1 << 7, /* a lock is one of the server, which others cannot pass */
	SYSTEM_DRAWS = 1 << 8,     /* inode numbers are not stored: another mount may show others */
	SYSTEM_RENUMBERS = 1 << 9, /* the inode number of a file may change */
	SYSTEM_SERVED = 1 << 10,   /* by a process: FUSE */
	SYSTEM_BLIND = 1 << 11,    /* syncfs(2) does not suffice: see system.c */
	SYSTEM_SYNCS_ALL = 1 << 12,   /* ... but nothing else flushes symlinks and special files */
	SYSTEM_NO_WRITE = 1 << 13,    /* files have no write(2) */
	SYSTEM_ALLOCATES = 1 << 14,   /* a write into allocated blocks costs half the CPU time */
	SYSTEM_ONE_WRITER = 1 << 15,  /* more threads in one file save less than 15 % */
	SYSTEM_OVERSTATES = 1 << 16,  /* f_bfree has space that no file can get */
	SYSTEM_UNLOGGED = 1 << 17,    /* fsync(2) of an unnamed file may write nothing */
	SYSTEM_READS_WRONG = 1 << 18, /* Linux 5.10 reads other bytes of a small file directly */
};

/* The f_type of an open file's file system, or of that of AT_FDCWD; 0: unknown. */
unsigned system_type(int fd);
bool system_type_has(unsigned type, enum system_property);
/* Does the directory ignore the case of names (casefold of ext4, f2fs, tmpfs)? True also if it is
 * open as O_PATH, and cannot be asked. */
bool system_folds(int dir);
bool system_has(int fd, enum system_property);
/* Is the open directory the root of a mount? 1; 0: no, as a subvolume of btrfs, which has another
 * device than the directory above it; -1: the kernel does not say. */
int system_is_mount_root(int fd);
/* Writes back what is cached of a file system, as far as syncfs(2) does. Returns 0 or -errno. */
int system_sync(int fd);
/* Does a file keep its inode number as long as it exists, also for the next mount? */
bool system_numbers_last(int fd);
/* The step in which all file systems of this type store modification times, in ns; 0: they store
 * all of them, or not all have the same step. */
int64_t system_type_time_step(unsigned type);
/* Is this open file, or directory, on a mount of rclone? Whether that renames a directory depends
 * on the moment: on which of its files were uploaded. */
bool system_is_rclone(int fd);
/* Is it on a mount of sshfs? New attributes of a symlink there become those of its target on the
 * server, also outside of the mount. */
bool system_is_sshfs(int fd);
/* Is `name` in the open directory lost+found at the top of such a file system? */
bool system_is_lost_found(int dir, const char *name);

#endif
