/* SPDX-License-Identifier: MIT
 *
 * An entry of DST, mostly a directory, that must give up its name before the entry of another type
 * that replaces it can be made. Until then it waits in a private directory:
 *
 *     .fcopy-0123456789abcdef/
 *         lock         names this directory, and is locked as long as the process lives
 *         old/NAME     what had the name NAME beside the private directory
 *
 * A process that is killed leaves it there. The next mirror, and fcopy --clean, recognise it by its
 * lock: left.h. If nothing has the name NAME, they rename it back.
 */
#ifndef PART_OLD_H
#define PART_OLD_H

#include "private.h"

#define PRIVATE_OLD "old"

struct old {
	struct private_directory at;
	int fd; /* of PRIVATE_OLD */
};

/* Renames an entry of the open directory `dir`, which must outlive *o. Returns 0, or -errno:
 * nothing has changed. -EXDEV: no directory can be renamed into another one here. */
int old_take(struct old *o, int dir, const char *name);
/* Renames it back, unless the name exists. Returns 0 or -errno; old_end() follows. */
int old_return(struct old *o, const char *name);
/* Closes everything, and removes what is empty. */
void old_end(struct old *o);
/* Renames an entry, which may be a directory of this user that it may not write to: its .. changes.
 * Replaces nothing. Returns 0 or -errno. */
int old_rename(int from, int to, const char *name);

#endif
