/* SPDX-License-Identifier: MIT
 *
 * What the file system of a directory can rename, and whether chmod changes modes. Object stores
 * and small FUSE file systems lack some of it, with whatever errno. Each file system is asked once
 * and remembered.
 */
#ifndef ENDPOINTS_STORAGE_H
#define ENDPOINTS_STORAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

enum storage_ability {
	STORAGE_RENAMES_FILES = 1 << 0,
	STORAGE_REPLACES_FILES = 1 << 1, /* renames a file onto another one */
	STORAGE_RENAMES_DIRECTORIES = 1 << 2,
	STORAGE_CHANGES_MODES = 1 << 3, /* chmod has an effect */
	STORAGE_KEEPS_ATTRIBUTES = 1 << 4,
	STORAGE_KEEPS_TIMES = 1 << 5,
	STORAGE_KEEPS_INODES = 1 << 6, /* a directory that is renamed has the same inode number */
};

/* Does it change the modification time of a file when that is closed? */
enum storage_close {
	CLOSE_UNKNOWN,
	CLOSE_KEEPS_TIMES,
	CLOSE_CHANGES_TIMES,
};

#define STORAGE_NO_RENAME "rename is unsupported here"

#define STORAGE_SYSTEMS 8 /* that are remembered; more are asked again */

/* Of one call of the library. All threads of a tree share it. */
struct storage {
	pthread_mutex_t lock;
	unsigned count;
	struct {
		dev_t dev;
		unsigned asked, able; /* sets of enum storage_ability */
	} system[STORAGE_SYSTEMS];
};

#define STORAGE_INITIALIZER                                                                        \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                  \
	}

/* Can the file system of this open directory, or AT_FDCWD, do that? Local file systems and those of
 * network protocols that have rename are known by their type, and assumed to change modes. Others
 * are asked with hidden names, which are removed. Returns true if the directory allows no new name:
 * then the failure of the copy itself says why. storage NULL: remember nothing. */
bool storage_can(struct storage *, int dir, enum storage_ability);
/* Is this an open file of a local file system, by its type, whose attributes are those that were
 * set? st: its fstat. */
bool storage_keeps_attributes(struct storage *, int fd, const struct stat *st);
/* What is remembered of a file system, and what is to be. storage may be NULL. */
enum storage_close storage_at_close(struct storage *, dev_t);
void storage_note_close(struct storage *, dev_t, bool keeps_times);
bool storage_is_known(int dir); /* by its type: it can do all that */

#endif
