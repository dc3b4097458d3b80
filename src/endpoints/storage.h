/* SPDX-License-Identifier: MIT
 *
 * What the file system of a directory can rename, whether chmod changes modes, and how finely it
 * stores times. Object stores and small FUSE file systems lack some of it, with whatever errno.
 * Each file system is asked once and remembered.
 */
#ifndef ENDPOINTS_STORAGE_H
#define ENDPOINTS_STORAGE_H

#include "part/private.h"

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

enum storage_ability {
	STORAGE_RENAMES_FILES = 1 << 0,
	STORAGE_REPLACES_FILES = 1 << 1, /* renames a file onto another one */
	STORAGE_RENAMES_DIRECTORIES = 1 << 2,
	STORAGE_CHANGES_MODES = 1 << 3,  /* chmod has an effect */
	STORAGE_KEEPS_INODES = 1 << 4,   /* a directory that is renamed has the same inode number */
	STORAGE_CHANGES_OWNERS = 1 << 5, /* chown has an effect, for this user */
};

/* Does it change the modification time of a file when that is closed? */
enum storage_close {
	CLOSE_UNKNOWN,
	CLOSE_KEEPS_TIMES,
	CLOSE_CHANGES_TIMES,
};

#define STORAGE_NO_RENAME "rename is unsupported here"

#define STORAGE_RENAMES_LATE "rclone renames a directory only when it has uploaded what is in it"

/* The operation that failed with struct storage.left. */
#define STORAGE_REMOVAL "removal of the hidden files that showed what can be renamed there"

#define STORAGE_SYSTEMS 8 /* that are remembered; more are asked again */

/* What is known, by its type, of the times of a file system. */
struct storage_times {
	bool known;
	int64_t window_ns; /* it stores one of the times that are this close; 0: see below */
	bool cached;       /* what it shows may come from a cache, in front of coarser times */
};

/* How linkat(2) names an unnamed file. */
enum storage_link {
	LINK_UNKNOWN,
	LINK_DESCRIPTOR, /* AT_EMPTY_PATH */
	LINK_PROC,       /* /proc/self/fd/N */
	LINK_NONE,       /* there are none, or no call can name them */
};

/* What is known of one file system. */
struct fs {
	dev_t dev;
	bool typed;    /* its type was asked for; atomic */
	unsigned type; /* 0: unknown */
	enum storage_close close;
	enum storage_link link;
	bool listed;          /* listxattr(2) there names all attributes */
	unsigned asked, able; /* sets of enum storage_ability */
	struct storage_times times;
};

/* Of one call of the library. All threads of a tree share it. */
struct storage {
	pthread_mutex_t lock;
	unsigned count; /* atomic */
	int left;       /* errno: a hidden name with which one was asked could not be removed */
	bool masked;
	mode_t umask;              /* of this process, if masked */
	uid_t user;                /* the effective one */
	unsigned drawn;            /* bytes of `random` that are left */
	unsigned char random[256]; /* one getrandom(2) never returns less, and no signal ends it */
	struct fs system[STORAGE_SYSTEMS];
};

#define STORAGE_INITIALIZER                                                                        \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .user = geteuid()                               \
	}

/* Can the file system of this open directory, or AT_FDCWD, do that? Local file systems and those of
 * network protocols that have rename are known by their type, and assumed to change modes. Others
 * are asked with hidden names, which are removed. Returns true if the directory allows no new name:
 * then the failure of the copy itself says why. storage NULL: remember nothing. */
bool storage_can(struct storage *, int dir, enum storage_ability);
/* Is this an open file of a local file system, by its type, whose attributes are those that were
 * set? st: its fstat; st_dev 0: unknown. */
bool storage_keeps_attributes(struct storage *, int fd, const struct stat *st);
/* Does listxattr(2) name all attributes of this file, also ACLs? SMB and others list none. dev: of
 * its fstat. storage NULL: false. */
bool storage_lists_attributes(struct storage *, int fd, dev_t);
/* What is remembered of a file system, and what is to be. storage may be NULL. */
enum storage_close storage_at_close(struct storage *, dev_t);
void storage_note_close(struct storage *, dev_t, bool keeps_times);
/* How unnamed files are named there, and *listed. dev 0, or storage NULL: unknown. */
enum storage_link storage_link_call(struct storage *, dev_t, bool *listed);
void storage_note_link(struct storage *, dev_t, enum storage_link, bool listed);
/* As temporary_draw(), with one getrandom(2) for many names. */
int storage_draw(struct storage *, char name[TEMPORARY_SIZE]);
bool storage_is_known(int dir); /* by its type: it can do all that */
/* Is `dir`, an open directory, on FUSE? dev: its st_dev. */
bool storage_is_served(struct storage *, int dir, dev_t dev);
/* As storage_can(), for STORAGE_CHANGES_MODES and STORAGE_CHANGES_OWNERS: FAT, NFS and others are
 * asked, too, which ignore or refuse what they cannot store. */
bool storage_stores(struct storage *, int dir, enum storage_ability);
/* What is known of the file system `dev`, which has this open file. storage may be NULL. */
struct storage_times storage_times(struct storage *, int fd, dev_t);
/* Is the modification time of `stored` what such storage makes of `set`? Some file systems of one
 * type store all of a time, and others cut it: ext4 to seconds, if its inodes are small. The kernel
 * cuts the time of the last change in the same step, which nobody can set: so that shows the step
 * of each file, without a probe. Where a cache may answer instead, as with FUSE, any usual step is
 * possible. */
bool storage_time_is_equal(const struct storage_times *, const struct timespec *set,
			   const struct stat *stored);

#endif
